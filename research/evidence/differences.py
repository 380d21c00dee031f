"""Values that differ for the same thing, side by side with source and date.

Conservative: two statements are about the same thing only if their clauses have the same
unit, the same stated period, and the same words but for a few on one side; where they
name nothing, their pages' titles must be alike. A difference that is missed costs less
than an alarm that is false.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..records import Fact
from ..sentences import content_words, spans, stem, words
from .checks import names_in
from .normal import comparable
from .quantities import Date, Number, quantities

ALIKE = 0.6  # share of the words of both titles that must be common, where the clauses name nothing
FEWEST_SHARED = 2  # words that two clauses must share
MOST_EXTRA = 2  # words that one of them may have beyond the other's
WIDEST = 2  # how many times the one value may be the other where the clauses' words differ

_CLAUSE = re.compile(
    r"[;:()]|,(?!\d)| - "
    r"|\b(?:compared (?:with|to)|(?:up|down) from|versus|vs\.?|than|after|while|whereas|against|but)\b",
    re.IGNORECASE,
)
_NEUTRAL_WORDS = (
    "rose increased climbed grew reached stood totalled amounted hit said says reported report according announced "
    "estimated shows showed show now currently latest official approximately about around nearly annual data figures"
)
_NEUTRAL = frozenset(stem(word) for word in _NEUTRAL_WORDS.split())
# One of these on one side only makes it another thing.
_QUALIFIER_WORDS = (
    "core monthly quarterly weekly daily average median mean maximum minimum gross net real nominal adjusted "
    "seasonally preliminary forecast expected projected target goal men women male female urban rural north south "
    "east west northern southern eastern western new old first second third fourth quarter half previous last next "
    "not no excluding including without less fell declined dropped decreased lowest highest record only other"
)
_QUALIFIERS = frozenset(stem(word) for word in _QUALIFIER_WORDS.split())
_RELATIVE = re.compile(r"\b(?:it|its|they|their|ago|earlier|later|before|prior|previous|same|another)\b", re.IGNORECASE)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_AMERICAN = re.compile(r"\b(?:U\.S\.A?\.?|US)(?![\w$])")  # else taken for the pronoun
_LABEL = re.compile(
    r"\b(?:chapters?|tables?|figures?|sections?|pages?|parts?|volumes?|days?|weeks?|steps?|levels?|versions?|numbers?|no\.?"
    r"|episodes?|seasons?|routes?|groups?|phases?|articles?|rank(?:ed)?|grades?|rooms?|lines?|types?|class|rounds?|games?"
    r"|match|top|aged?|#) ?$",
    re.IGNORECASE,
)

Period = tuple[int | None, int | None, int | None]


@dataclass(frozen=True)
class Stated:
    """A value that a fact's quote states, in its clause."""

    fact: Fact
    value: str  # as the source spells it
    clause: str
    number: Number
    kind: str  # its unit, else the word counted ("people")
    period: Period
    words: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True)
class Disagreement:
    """What sources give different values for; `values` has one entry for each source and value."""

    values: tuple[Stated, ...]

    def __str__(self) -> str:
        return " against ".join(f"{one.value} ({_source(one.fact)})" for one in self.values)


def disagreements(facts: Sequence[Fact]) -> list[Disagreement]:
    """Where `facts` of different pages state different values for the same thing and period."""
    groups: list[list[Stated]] = []
    for stated in (one for fact in facts for one in statements(fact)):
        group = next((group for group in groups if _same_thing(group[0], stated)), None)
        if group is None:
            groups.append([stated])
        else:
            group.append(stated)
    return [Disagreement(_once(group)) for group in groups if _differ(group)]


def statements(fact: Fact) -> Iterator[Stated]:
    """The values in the fact's quote whose clause tells what they are the value of."""
    titled = quantities(fact.title).dates  # "1984 season": when, if the sentence does not say
    quote = comparable(_AMERICAN.sub("USA", fact.quote))
    for start, end in spans(quote):
        sentence = quote[start:end]
        whole = quantities(sentence).dates or titled
        for clause in map(str.strip, _CLAUSE.split(sentence)):
            found = quantities(clause)
            dates = found.dates or (whole if len(whole) == 1 else ())
            if _RELATIVE.search(clause):
                continue  # of what, or when, stands elsewhere
            if len(found.numbers) == 1 and len(dates) <= 1 and not (whole and not dates):
                yield from _stated(fact, clause, found.numbers[0], found.dates, dates)


def _stated(fact: Fact, clause: str, number: Number, inside: Sequence[Date], dates: Sequence[Date]) -> Iterator[Stated]:
    rest = clause.replace(number.text, " ", 1)
    for date in inside:
        rest = rest.replace(date.text, " ", 1)
    following = content_words(clause[number.start + len(number.text) :][:60])
    labelled = _LABEL.search(clause[: number.start]) or _ORDINAL.fullmatch(number.text)
    kind = number.unit or (following[0] if following and not labelled else "")
    told = frozenset(content_words(rest)) - _NEUTRAL - frozenset(content_words(fact.site))
    if kind and len(told) >= FEWEST_SHARED:
        period = dates[0].parts if dates else (None, None, None)
        names = frozenset(word for name in names_in(rest) for word in words(name)) - frozenset(words(fact.site))
        yield Stated(fact, number.text, clause, number, kind, period, told, names)


def _same_thing(one: Stated, other: Stated) -> bool:
    if one.kind != other.kind or one.period != other.period or one.names != other.names:
        return False
    if not any(one.period) and _years_apart(one.fact, other.fact):
        return False
    if not one.names and not _alike(one.fact.title, other.fact.title):
        return False
    shared = one.words & other.words
    extra = one.words ^ other.words
    if len(shared) < FEWEST_SHARED or extra & _QUALIFIERS:
        return False
    if not extra:
        return True
    one_sided = one.words <= other.words or other.words <= one.words
    return one_sided and len(extra) <= MOST_EXTRA and _near(one.number, other.number)


def _alike(title: str, other: str) -> bool:
    """Whether two pages may be about the same thing, by their titles; unknown ones may."""
    ours, theirs = frozenset(content_words(title)), frozenset(content_words(other))
    return not (ours and theirs) or len(ours & theirs) >= ALIKE * len(ours | theirs)


def _years_apart(one: Fact, other: Fact) -> bool:
    """Whether two undated statements come from pages of different years: the value may have changed."""
    return bool(one.date and other.date and one.date[:4] != other.date[:4])


def _near(one: Number, other: Number) -> bool:
    low, high = sorted((abs(one.value), abs(other.value)))
    return high <= WIDEST * low and (one.value < 0) == (other.value < 0)


def _differ(group: Sequence[Stated]) -> bool:
    first = group[0]
    return any(one.fact.url != first.fact.url and not _agree(one.number, first.number) for one in group)


def _agree(one: Number, other: Number) -> bool:
    return one.says(other) or other.says(one)


def _once(group: Sequence[Stated]) -> tuple[Stated, ...]:
    kept: dict[tuple[str, str], Stated] = {}
    for one in group:
        kept.setdefault((one.fact.url, str(one.number.value.normalize())), one)
    return tuple(kept.values())


def _source(fact: Fact) -> str:
    named = fact.site or fact.title or fact.url
    return f"{named}, {fact.date}" if fact.date else named
