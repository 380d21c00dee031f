"""A page's text as statements: its sentences and the rows of its tables, each with what it is read together with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ... import sentences
from .terms import terms

LONGEST_ROW = 300  # characters of a table's row; more is prose in a table that only lays out the page
HEADING_WORDS = 9  # a line of fewer content words and without a full stop is a heading
HEADING_WORTH = 0.3  # of a statement's score
QUESTION_WORTH = 0.3  # a page that asks does not tell
SOURCE_WORTH = 0.2  # where figures come from, who holds the rights

_ENDS = re.compile(r"[.!?…。！？।۔؟:][^\w\s]*\s*(?:\[\w+\])*$")
_ASKS = re.compile(r"[?？؟][^\w\s]*$")
_SOURCE = re.compile(
    r"\W*(?:(?:data |figure |photo |image )?(?:sources?|credits?|references?|copyright|see also|read more|related|"
    r"last (?:updated|refresh\w*|successful\w*)|updated|published|quellen?|fuentes?|источник\w*|数値の出典|出典|資料)\b"
    r"[^.!?]{0,30}[:：]|©)",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"(?<![\w.,])(?!(?:1\d|20)\d\d(?![\w.,]))\d[\d.,]*")  # a number that is no year
_LEANS = re.compile(r"\W{0,3}(?:He|She|It|They|His|Her|Its|Their|This|These|That|Those|Here|There)\b")


@dataclass(frozen=True)
class Statement:
    """`text[start:end]` with its words, and the words of what it is read together with.

    `lead` is where a quote begins that can be understood alone: the sentence before, or
    the head of the table. `worth` is what such a statement counts as evidence, up to 1.
    """

    start: int
    end: int
    words: frozenset[str]
    around: frozenset[str]
    lead: int
    worth: float = 1.0
    head: tuple[str, ...] = ()  # the lines above a row that name its columns


def read(text: str) -> list[Statement]:
    """The statements of `text` in order; the head of a table is part of its rows only."""
    spans = [piece for span in sentences.spans(text) for piece in _cells_apart(text, span)]
    found: list[Statement] = []
    index = 0
    while index < len(spans):
        end = index + 1
        if _is_row(text, spans[index]):
            while end < len(spans) and _is_row(text, spans[end]):
                end += 1
            found += _rows(text, spans[index:end], found[-1] if found else None)
        else:
            found.append(_sentence(text, spans[index], found[-1] if found else None))
        index = end
    return found


def _cells_apart(text: str, span: tuple[int, int]) -> list[tuple[int, int]]:
    """The sentences of the cells of what is no row, but a page laid out as a table."""
    start, end = span
    if " | " not in text[start:end] or _is_row(text, span):
        return [span]
    pieces = []
    for cell in text[start:end].split(" | "):
        pieces += [(start + one, start + other) for one, other in sentences.spans(cell)]
        start += len(cell) + len(" | ")
    return pieces


def _is_row(text: str, span: tuple[int, int]) -> bool:
    """Whether the line that holds the span is a row of a table."""
    if span[1] - span[0] > LONGEST_ROW:
        return False
    before = text[max(0, span[0] - LONGEST_ROW - 1) : span[0]].rpartition("\n")[2]
    after = text[span[1] : span[1] + LONGEST_ROW + 1].partition("\n")[0]
    line = (before + text[slice(*span)] + after).strip()
    return len(line) <= LONGEST_ROW and (" | " in line or line.startswith("|") or line.endswith(" |"))


def _sentence(text: str, span: tuple[int, int], before: Statement | None) -> Statement:
    start, end = span
    words = frozenset(terms(text[start:end]))
    lead = start
    if (
        before
        and before.words
        and not before.head
        and _LEANS.match(text, start)
        and text[before.end : start].count("\n") < 2
    ):
        lead = before.start
    return Statement(start, end, words, before.words if before else frozenset(), lead, worth(text[start:end]))


def names_its_source(sentence: str) -> bool:
    """Whether a line only says where figures come from: it holds names and dates of publications, not of the topic."""
    return _SOURCE.match(sentence) is not None


def worth(statement: str) -> float:
    """What a statement counts as evidence, up to 1: little for headings, questions, and where figures come from."""
    if names_its_source(statement):
        return SOURCE_WORTH
    ending = statement[-40:]
    if _ASKS.search(ending):
        return QUESTION_WORTH
    tells = _ENDS.search(ending) or _FIGURE.search(statement) or len(terms(statement)) >= HEADING_WORDS
    return 1.0 if tells or " | " in statement else HEADING_WORTH


def _rows(text: str, spans: Sequence[tuple[int, int]], caption: Statement | None) -> list[Statement]:
    """The rows of one table. Its head is what stands above the last line of dashes, else what
    has one cell only (a caption) and the first row below that."""
    lines = [text[slice(*span)] for span in spans]
    rules = [index for index, line in enumerate(lines) if not any(map(str.isalnum, line))]
    captions = next((index for index, line in enumerate(lines) if line.strip(" |").count(" | ")), len(lines))
    body = min((rules[-1] if rules else captions) + 1, len(lines) - 1)
    above = tuple(line for index, line in enumerate(lines[:body]) if index not in rules)
    around = frozenset(terms(" ".join(above))) | (caption.words if caption else frozenset())
    return [
        Statement(start, end, frozenset(terms(text[start:end])), around, spans[0][0], 1.0, above)
        for start, end in spans[body:]
    ]
