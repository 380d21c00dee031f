"""Whether facts answer a question at all: the decision between an answer and "not answered"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .evidence import covered, holds, is_named, missing_names
from .question import Asked, read
from .statements import names_its_source
from .subjects import passes, without_lists
from .terms import terms
from .vocabulary import Kind

# How much of a question must stand in one fact. Chosen for the largest mean difference between the shares answered of
# answerable and of unanswerable questions over the English rows of qa-freshqa-wiki (false premises as unanswerable),
# qa-nomiracl, qa-clapnq, qa-rgb and the sample web, by `bench.extractive`; the sample web stood for a fifth of it.
#   ENOUGH 0.6, no TOPIC_ENOUGH: qa-clapnq 0.68 and 0.31, qa-freshqa-wiki 0.88 and 0.65, sample web 0.90 and 0.30
#   ENOUGH 0.5, TOPIC_ENOUGH 0.6: qa-clapnq 0.70 and 0.33, qa-freshqa-wiki 0.77 and 0.43, sample web 0.95 and 0.10
ENOUGH = 0.5  # of the question's weight
TOPIC_ENOUGH = 0.6  # of the weight of the words that are neither names nor dates; not asked of other languages, which
# have neither stems nor stop words here: 0 costs qa-rgb's Chinese rows nothing (0.75 and 0.47), 0.5 would 0.1 of each


@dataclass(frozen=True)
class Fact:
    """A numbered fact as synthesis is given it.

    `words` are those of claim and quote, `around` those of its page's title and of its
    table's head; `source` numbers the page that it stands in (0 where that was not given).
    """

    id: int
    source: int
    title: str
    claim: str
    quote: str
    site: str
    date: str
    words: frozenset[str]
    around: frozenset[str]

    @property
    def all_words(self) -> frozenset[str]:
        return self.words | self.around


@dataclass(frozen=True)
class Verdict:
    """`reason` why the question is not answered ("" where it is), and which parts of it are `missing`."""

    reason: str = ""
    missing: tuple[str, ...] = ()


def read_fact(given: Mapping[str, object]) -> Fact:
    claim, quote = str(given.get("claim") or ""), str(given.get("quote") or "")
    title, site, date = (str(given.get(key) or "") for key in ("title", "site", "date"))
    own, around = f"{claim}\n{quote}", title
    if " | " in quote:  # the last row is what is told; those above it only say what it means
        head, _, own = quote.rstrip().rpartition("\n")
        around = f"{title}\n{head}\n{claim}"
    number, source = int(str(given["id"])), int(str(given.get("source") or 0))
    return Fact(number, source, title, claim, quote, site, date, frozenset(terms(own)), frozenset(terms(around)))


def judge(asked: Asked, facts: Sequence[Fact]) -> Verdict:
    """Whether `facts` answer the question. Each part of a compound one is judged by itself;
    a part that only refers back ("and how does that compare?") stands and falls with the others."""
    if len(asked.parts) == 1:
        return Verdict(_why_not(asked, facts))
    parts = [part for part in map(read, asked.parts) if part.topic or part.names]
    reasons = [_why_not(part, facts) for part in parts]
    if not reasons or all(reasons):
        return Verdict(reasons[0] if reasons else _why_not(asked, facts))
    return Verdict("", tuple(part.text for part, reason in zip(parts, reasons, strict=True) if reason))


def _why_not(asked: Asked, facts: Sequence[Fact]) -> str:
    """Why no page answers a question, by the one that comes nearest; empty where one does."""
    telling = [fact for fact in facts if not names_its_source(fact.quote)]
    if not telling:
        return "no source says anything about it"
    if dates := _missing_dates(asked, telling):
        return f"no passage that was found tells it for {' '.join(asked.spelled((date,)) for date in dates)}"
    if all(passes(asked, fact.quote) for fact in telling if _is_near(asked, fact)) and any(
        passes(asked, fact.quote) for fact in telling
    ):
        return "the sources tell of it, but not what it is"
    return min((_why_not_page(asked, page) for page in _by_page(facts)), key=lambda reason: reason[0])[1]


def _why_not_page(asked: Asked, facts: Sequence[Fact]) -> tuple[int, str]:
    """How many of the checks the facts of one page fell short of, and the first that they failed; (0, "") for none."""
    telling = [fact for fact in facts if not names_its_source(fact.quote)]
    credits = frozenset(word for fact in facts if fact not in telling for word in fact.words)
    named = [fact for fact in telling if not missing_names(asked, [fact.all_words | credits])]
    if not named:
        names = missing_names(asked, [fact.all_words | credits for fact in telling])
        return 3, f"no passage that was found is about {' and '.join(asked.spelled(name) for name in names)}"
    near = [fact for fact in named if _is_near(asked, fact)]
    if not near:
        return 2, "no passage that was found bears on all of it"
    if not any(_holds(asked, fact) for fact in (near if asked.kind is Kind.WHY else telling)):
        return 1, f"the sources give no {asked.kind.value.removeprefix('a ')} for it"
    return 0, ""


def _holds(asked: Asked, fact: Fact) -> bool:
    """Whether a fact has the kind of answer asked for; a figure counts for no name that is only listed beside it."""
    if asked.kind is Kind.COUNT and (rest := without_lists(fact.quote)) != fact.quote:
        words = frozenset(terms(rest)) | fact.around
        if any(is_named(name, fact.words) and not is_named(name, words) for name in asked.names):
            return False
    return holds(asked.kind, fact.quote, asked)


def _is_near(asked: Asked, fact: Fact) -> bool:
    words = fact.all_words
    return covered(asked.weights, words) >= ENOUGH and covered(asked.topic, words) >= topic_enough(asked)


def _by_page(facts: Sequence[Fact]) -> list[list[Fact]]:
    pages: dict[object, list[Fact]] = {}
    for fact in facts:
        pages.setdefault(fact.source or fact.title or fact.id, []).append(fact)
    return list(pages.values())


def _missing_dates(asked: Asked, facts: Sequence[Fact]) -> list[str]:
    """The question's years and months that no fact of the right kind has beside another word of the question."""
    about = asked.weights.keys() - set(asked.dates)
    dated = [fact.all_words for fact in facts if (not about or about & fact.all_words) and _has_figure(asked, fact)]
    return [date for date in asked.dates if not any(date in words for words in dated)]


def _has_figure(asked: Asked, fact: Fact) -> bool:
    return asked.kind is not Kind.COUNT or _holds(asked, fact)


def topic_enough(asked: Asked) -> float:
    """The share of the weight of the question's topic words that a fact must have."""
    return TOPIC_ENOUGH if asked.text.isascii() or asked.english else 0.0
