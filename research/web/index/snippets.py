"""The passage of a page that best matches a query, as plain text."""

from __future__ import annotations

import codecs
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ...sentences import fold, spans
from .terms import is_unspaced, terms

LONGEST = 300  # characters of a snippet
_WINDOW = 240  # characters in which the words should stand together
_MOST_WORDS = 32  # of the query
_MOST_PLACES = 500  # of one word that are looked at
_SHORT = 4  # characters; a shorter word must match whole, a longer one may go on: "rate", "rates"

_INLINE = "a|b|big|code|em|i|img|kbd|s|small|span|strong|sub|sup|u"
_BLOCK = "blockquote|br|center|dd|details|div|dl|dt|h[1-6]|hr|li|ol|p|pre|summary|table|tbody|td|th|thead|tr|ul"
_MARKUP = [
    (re.compile(r"^(?=[^\n]*---)[ \t:|-]+$", re.MULTILINE), " "),  # rules of tables and between sections
    (re.compile(r"^[ \t]*(?:#{1,6}|[*+>-])[ \t]+", re.MULTILINE), " "),  # headings, list items, quotations
    (re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,300}\)"), r"\1"),
    (re.compile(r"\*\*(?=\S)([^*]{1,300})\*\*"), r"\1"),
    (re.compile(rf"</?(?:{_INLINE})(?:\s[^<>]{{0,300}})?/?>|`", re.I), ""),
    (re.compile(rf"</?(?:{_BLOCK})(?:\s[^<>]{{0,300}})?/?>|\|", re.I), " "),
    (re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"), " "),
]


class _Flat(dict[int, str]):
    """Character → one folded character, so that places in the folded text are those in the text."""

    def __missing__(self, code: int) -> str:
        self[code] = flat = fold(chr(code))[:1] or chr(code)
        return flat


_FLAT = _Flat()


def _to_ascii(error: UnicodeError) -> tuple[str, int]:
    """Folds what can't be encoded, and puts "?" where that can't be either."""
    assert isinstance(error, UnicodeEncodeError)
    flat = error.object[error.start : error.end].translate(_FLAT)
    return "".join(char if char.isascii() else "?" for char in flat), error.end


codecs.register_error("research-flat", _to_ascii)


def snippet(text: str, query: str) -> str:
    """The best matching passage of `text` in at most 300 characters, of whole sentences where they fit.

    Its beginning where no word of the query stands in it. Takes time linear in the text's length.
    """
    if len(text) <= LONGEST:
        return plain(text)
    start, end = _best(text, terms(_flat(query))[:_MOST_WORDS])
    return plain(_excerpt(text, start, end))


def plain(text: str) -> str:
    """`text` on one line, without Markdown, tags and control characters."""
    for pattern, instead in _MARKUP:
        text = pattern.sub(instead, text)
    return " ".join(text.split())


def _flat(text: str, ascii_only: bool = False) -> str:
    """`text` folded, character for character; ten times as fast where only ASCII words are looked for."""
    if ascii_only:
        return text.encode("ascii", "research-flat").decode("ascii").lower()
    return text.translate(_FLAT)


def _best(text: str, wanted: Sequence[str]) -> tuple[int, int]:
    """Where the most telling words stand together: the first such place, as (start, end)."""
    flat = _flat(text, ascii_only=all(map(str.isascii, wanted)))
    places = [list(_places(flat, term)) for term in wanted]
    weights = [_weight(len(found), len(text)) for found in places]
    marks = sorted((at, index) for index, found in enumerate(places) for at in found)
    best, span = 0.0, (0, 0)
    inside: Counter[int] = Counter()
    first, score = 0, 0.0
    for at, index in marks:
        score += 0 if inside[index] else weights[index]
        inside[index] += 1
        end = at + len(wanted[index])
        while end - marks[first][0] > _WINDOW and marks[first][0] < at:
            gone = marks[first][1]
            inside[gone] -= 1
            score -= 0 if inside[gone] else weights[gone]
            first += 1
        if score > best + 1e-9:
            best, span = score, (marks[first][0], end)
    return span


def _weight(count: int, length: int) -> float:
    """BM25's inverse document frequency, the page's own passages being the documents."""
    passages = max(length / LONGEST, count)
    return math.log1p((passages - count + 0.5) / (count + 0.5))


def _places(flat: str, term: str) -> Iterator[int]:
    spaced, whole = not is_unspaced(term), len(term) < _SHORT
    at = flat.find(term)
    for _ in range(_MOST_PLACES):
        if at < 0:
            return
        end = at + len(term)
        if not spaced or not (flat[at - 1 : at].isalnum() or (whole and flat[end : end + 1].isalnum())):
            yield at
        at = flat.find(term, end)


def _excerpt(text: str, start: int, end: int) -> str:
    """The sentences around text[start:end] that fit, else the words around it."""
    offset = max(0, start - LONGEST)
    near = [(offset + a, offset + b) for a, b in spans(text[offset : end + 2 * LONGEST])]
    begin = next((a for a, b in near if b > start), start)
    if end - begin > LONGEST:  # amid a long sentence
        begin = _word_start(text, max(begin, start - (LONGEST - (end - start)) // 2), start)
    latest = begin + LONGEST
    stop = max((b for _, b in near if end <= b <= latest), default=begin)
    return text[begin : stop if stop - begin >= LONGEST // 2 else _word_end(text, max(end, begin), latest)]


def _word_start(text: str, earliest: int, latest: int) -> int:
    """The first word's start at or behind `earliest`; `latest` itself where no white space comes before it."""
    gap = re.compile(r"\s+").search(text, earliest, latest)
    return gap.end() if gap else latest


def _word_end(text: str, earliest: int, latest: int) -> int:
    """The last word's end that is no later than `latest`; `latest` itself where no white space stands before it."""
    if latest >= len(text):
        return len(text)
    last = max(text.rfind(gap, earliest, latest + 1) for gap in " \n")
    return last if last > 0 else latest
