"""Where a quote stands in a page's text, how surely, and what surrounds it.

Whatever the grade, the passage is the page's own: `text[start:end]`. What a model
changed in copying is never shown or checked as evidence.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nlargest

from ..records import Grade
from ..sentences import STOP_WORDS, UNSPACED
from .normal import Word, comparable, placed_words, places_of, view
from .sections import non_evidence_spans

__all__ = ["FEWEST_WORDS", "NEGATIONS", "SHORTEST_QUOTE", "Located", "locate", "non_evidence_spans", "surroundings"]

FEWEST_WORDS = 3
SHORTEST_QUOTE = 12  # characters
LONGEST_FUZZY = 200  # words
FUZZY_SHARE = 0.85  # of a quote's words that must stand in the passage, in their order
LONGEST_GAP = 400  # characters that an ellipsis may stand for
_TRIES = 200  # places of one wording that are looked at
_CANDIDATES = 5  # alignments of a fuzzy quote that are looked at

_NEGATIONS = (
    "not no never none nobody nothing neither nor cannot without n't nicht kein keine nie ohne ne pas jamais sans no "
    "nunca sin non mai senza niet geen não nem не нет ни без"
)
NEGATIONS = frozenset(_NEGATIONS.split())
_ELLIPSIS = re.compile(r"\s*(?:[\[(]\s*(?:…|\.{3}|\. \. \.)\s*[\])]|…|\.{3,}|\. \. \.)\s*")
_WRAPPING = "\"'“”„‘’«»‹›「」『』"
_IS_UNSPACED = re.compile(rf"[{UNSPACED}]")
_UNIT = re.compile(r"\d\s?[%‰$€£¥°]|[$€£¥]\s?\d")


@dataclass(frozen=True)
class Located:
    """`text[start:end]` is the passage that a quote was found to be."""

    start: int
    end: int
    grade: Grade


def locate(quote: str, text: str, excluded: Sequence[tuple[int, int]] = ()) -> Located | None:
    """The first place of `quote` in `text` that touches no `excluded` span, in the best grade there is.

    *Exact*: character by character. *Normalised*: up to Unicode form, white space,
    invisible characters, quotes and dashes. *Fuzzy*: elided with …, or up to case,
    accents, punctuation and a few words, though never a number or a negation. None: it
    stands nowhere, cuts a word or number in two, or is too short to be evidence (under
    three words or twelve characters, unless it holds a number with something beside it).
    """
    quote = quote.strip()
    if _says_too_little(quote):
        return None
    found = _exact(quote, text, excluded) or _normalised(quote, text, excluded)
    return found or _elided(quote, text, excluded) or _fuzzy(quote, text, excluded)


def surroundings(text: str, start: int, end: int, width: int = 200) -> tuple[str, str]:
    """Up to `width` characters before and after `text[start:end]`, cut at word boundaries."""
    before = text[max(0, start - width) : start]
    if start > width and not text[start - width - 1].isspace():
        before = _after_first_space(before)
    after = text[end : end + width]
    if end + width < len(text) and not text[end + width].isspace():
        after = _after_first_space(after[::-1])[::-1]
    return before, after


def _after_first_space(text: str) -> str:
    space = re.search(r"\s", text)
    return text[space.end() :] if space else text


def _says_too_little(quote: str) -> bool:
    tokens = placed_words(quote[:1_000])
    if any(word.text[0].isdigit() for word in tokens):
        return len(tokens) < 2 and not _UNIT.search(quote)
    if len(_IS_UNSPACED.findall(quote[:1_000])) >= SHORTEST_QUOTE // 2:
        return False
    return len(tokens) < FEWEST_WORDS or len(quote) < SHORTEST_QUOTE


def _exact(quote: str, text: str, excluded: Sequence[tuple[int, int]]) -> Located | None:
    for start in _places(quote, text):
        if _fits(text, start, start + len(quote), excluded):
            return Located(start, start + len(quote), Grade.EXACT)
    return None


def _normalised(quote: str, text: str, excluded: Sequence[tuple[int, int]]) -> Located | None:
    seen = view(text)
    plain = comparable(quote).strip()
    for wanted in dict.fromkeys((plain, plain.strip(_WRAPPING).strip())):
        for place in _places(wanted, seen.text):
            start, end = seen.span(place, place + len(wanted))
            if _fits(text, start, end, excluded):
                return Located(start, end, Grade.NORMALISED)
    return None


def _places(wanted: str, text: str, start: int = 0, end: int | None = None) -> Iterator[int]:
    stop = len(text) if end is None else end
    for _ in range(_TRIES):
        start = text.find(wanted, start, stop)
        if start < 0 or not wanted:
            return
        yield start
        start += 1


def _fits(text: str, start: int, end: int, excluded: Sequence[tuple[int, int]]) -> bool:
    """Whether a passage is whole: it cuts no word, number or accent, and touches nothing excluded."""
    if any(start < stop and begin < end for begin, stop in excluded):
        return False
    if _joined(text, start) or _joined(text, end):
        return False
    ahead = text[max(0, start - 2) : start]
    if text[start].isdigit() and (re.search(r"\d[.,]\Z", ahead) or re.search(r"[-−–]\Z", ahead)):
        return False  # "5 percent" of "3.5 percent", of "-5 percent", of "3–5 percent"
    return not (text[end - 1].isdigit() and re.match(r"[.,]\d", text[end : end + 2]))


def _joined(text: str, place: int) -> bool:
    """Whether the characters on both sides of `place` belong to one word."""
    if not 0 < place < len(text):
        return False
    left, right = text[place - 1], text[place]
    if unicodedata.combining(right):
        return True
    spaced = not (_IS_UNSPACED.match(left) or _IS_UNSPACED.match(right))
    return left.isalnum() and right.isalnum() and spaced


def _elided(quote: str, text: str, excluded: Sequence[tuple[int, int]]) -> Located | None:
    """A quote with …: its parts in order, close together, nothing negated in between."""
    parts = [comparable(part).strip(_WRAPPING + " ") for part in _ELLIPSIS.split(quote[:5_000])]
    parts = [part for part in parts if part]
    if not _ELLIPSIS.search(quote) or not parts or all(_says_too_little(part) for part in parts):
        return None
    seen = view(text)
    for first in _places(parts[0], seen.text):
        end = _follow(parts[1:], seen.text, first + len(parts[0]))
        if end is not None:
            start, stop = seen.span(first, end)
            if _fits(text, start, stop, excluded):
                return Located(start, stop, Grade.FUZZY)
    return None


def _follow(parts: Sequence[str], text: str, end: int) -> int | None:
    for part in parts:
        limit = end + LONGEST_GAP + len(part)
        inside = (place for place in _places(part, text, end, limit) if not _joined(text, place))
        place = next(inside, None)
        if place is None or any(_is_negation(word.text) for word in placed_words(text, end, place)):
            return None
        end = place + len(part)
    return end


def _fuzzy(quote: str, text: str, excluded: Sequence[tuple[int, int]]) -> Located | None:
    wanted = placed_words(quote[: 40 * LONGEST_FUZZY])
    if not FEWEST_WORDS <= len(wanted) <= LONGEST_FUZZY:
        return None
    for start, end in _windows([word.text for word in wanted], text):
        passage = _aligned(wanted, placed_words(text, start, end))
        if passage and _fits(text, passage[0], passage[1], excluded):
            return Located(*passage, Grade.FUZZY)
    return None


def _windows(wanted: Sequence[str], text: str) -> Iterator[tuple[int, int]]:
    """Where a text most likely holds the wanted words: places that many of them agree on."""
    at: dict[str, list[int]] = {}
    for index, word in enumerate(wanted):
        at.setdefault(word, []).append(index)
    begins, hits = places_of(at, text)
    votes: Counter[int] = Counter()
    for place, word in hits:
        for index in at[word][:2]:
            votes[(place - index) // 4] += 1
    near = {bucket: count + max(votes.get(bucket - 1, 0), votes.get(bucket + 1, 0)) for bucket, count in votes.items()}
    best = nlargest(_CANDIDATES, near, key=lambda bucket: (near[bucket], -bucket))
    slack = 4 + len(wanted) // 8
    for bucket in best:
        if near[bucket] >= FUZZY_SHARE * len(at) / 2:
            first, last = 4 * bucket - slack, 4 * bucket + len(wanted) + 4 + slack
            yield begins[max(0, first)], begins[last] if last < len(begins) else len(text)


def _aligned(wanted: Sequence[Word], window: Sequence[Word]) -> tuple[int, int] | None:
    """The passage of `window` that says what `wanted` says, as offsets in the text."""
    ours, theirs = [word.text for word in wanted], [word.text for word in window]
    codes = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    if codes and codes[0][0] == "insert":
        codes = codes[1:]
    if codes and codes[-1][0] == "insert":
        codes = codes[:-1]
    edges = [code for code in codes if code[0] == "equal"]
    if not edges:
        return None
    lost = sum(max(i2 - i1, j2 - j1) for kind, i1, i2, j1, j2 in codes if kind != "equal")
    if lost > (1 - FUZZY_SHARE) * len(ours):
        return None
    if not all(_harmless(ours[i1:i2], theirs[j1:j2]) for kind, i1, i2, j1, j2 in codes if kind != "equal"):
        return None
    return window[codes[0][3]].start, window[codes[-1][4] - 1].end


def _harmless(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether these words may stand for those: no number, no negation, no other content word."""
    if any(word[0].isdigit() or _is_negation(word) for word in (*ours, *theirs)):
        return False
    return all(word in STOP_WORDS or any(_same_word(word, other) for other in theirs) for word in ours)


def _same_word(ours: str, theirs: str) -> bool:
    """A slip of the pen: increased is not decreased, million is not billion."""
    return ours[0] == theirs[0] and len(ours) > 3 and SequenceMatcher(None, ours, theirs).ratio() >= 0.8


def _is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")
