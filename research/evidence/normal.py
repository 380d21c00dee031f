"""The form in which texts are compared, with the way back to the original's offsets.

Case and every letter are kept. Unicode spellings of one character (NFKD, one character
at a time), white space, quotes, dashes and invisible characters are made the same.
Normalising whole strings is avoided: `unicodedata.normalize` sorts runs of combining
marks by insertion, so that a hostile page takes quadratic time.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ..sentences import UNSPACED, words

_CHUNK = re.compile(r"[!-,./-~]++|-++|\s++|.", re.DOTALL)
_DOUBLE_QUOTES = "“”„‟«»″‶〃〝〞〟"
_SINGLE_QUOTES = "‘’‚‛‹›′‵ʼʹˈ´`"
UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # invisible, though letters and marks by category

# One word of the original, with the joiners and marks that folding takes out.
_INSIDE = (
    "\u00ad\u034f\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
)
_INSIDE += "\u0f71-\u0f84\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200d\u2060\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\ufeff"
_WORD = re.compile(
    rf"\d++(?:[.,]\d++)*+|[{UNSPACED}]"
    rf"|[^\W\d_{UNSPACED}](?:[^\W_{UNSPACED}]|[{_INSIDE}])*+(?:['’][^\W\d_]++)*+"
)


def is_variation(char: str) -> bool:
    """Whether `char` selects a glyph's variant: invisible, and used to smuggle text."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


@dataclass(frozen=True)
class View:
    """A text in comparable form. `span` turns offsets in `text` into the original's."""

    text: str
    places: list[int]  # where each chunk begins in `text`
    origins: list[int]  # where it begins in the original
    ends: list[int]  # where it ends there

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original's offsets of the non-empty `text[start:end]`, whole characters only."""
        first = bisect_right(self.places, start) - 1
        last = bisect_right(self.places, end - 1) - 1
        return self._inside(first, start), self._inside(last, end - 1) + self._width(last)

    def _as_it_was(self, chunk: int) -> bool:
        following = self.places[chunk + 1] if chunk + 1 < len(self.places) else len(self.text)
        return following - self.places[chunk] == self.ends[chunk] - self.origins[chunk]

    def _inside(self, chunk: int, place: int) -> int:
        return self.origins[chunk] + (place - self.places[chunk] if self._as_it_was(chunk) else 0)

    def _width(self, chunk: int) -> int:
        return 1 if self._as_it_was(chunk) else self.ends[chunk] - self.origins[chunk]


@lru_cache(maxsize=4)
def view(text: str) -> View:
    """`text` in comparable form. The last few are kept: a page's quotes come one after another."""
    return _viewed(text)


def comparable(text: str) -> str:
    """`text` in the form of `view`, without surrounding white space."""
    return _viewed(text).text.strip()


def _viewed(text: str) -> View:
    made: list[str] = []
    places: list[int] = []
    origins: list[int] = []
    ends: list[int] = []
    length, spaced = 0, False
    for match in _CHUNK.finditer(text):
        piece = _piece(match[0])
        if not piece or (spaced and piece == " "):
            continue
        spaced = piece[-1] == " "
        made.append(piece)
        places.append(length)
        origins.append(match.start())
        ends.append(match.end())
        length += len(piece)
    return View("".join(made), places, origins, ends)


def _piece(chunk: str) -> str:
    if chunk[0] == "-":
        return "-"
    if "!" <= chunk[0] <= "~" and chunk != "`":
        return chunk
    return " " if chunk.isspace() else canonical(chunk)


@lru_cache(maxsize=4_000)
def canonical(char: str) -> str:
    """One character in comparable form; empty for what can't be seen."""
    if char in _DOUBLE_QUOTES:
        return '"'
    if char in _SINGLE_QUOTES:
        return "'"
    category = unicodedata.category(char)
    if category in ("Cf", "Cc") or char in UNSEEN or is_variation(char):
        return ""
    if category == "Cs":
        return "\ufffd"
    if category == "Pd" or char == "\u2212":
        return "-"
    if char == "\u2800":
        return " "
    plain = unicodedata.normalize("NFKD", char)
    form = unicodedata.decomposition(char).partition(" ")[0]
    if form == "<super>" and plain.isdigit():
        return "^" + plain  # 10² is not 102
    return f" {plain}".replace("\u2044", "/") if form == "<fraction>" else plain


class Word(NamedTuple):
    """A folded word and where it stands in the original."""

    text: str
    start: int
    end: int


def placed_words(text: str, start: int = 0, end: int | None = None) -> list[Word]:
    """The words of `text[start:end]` with their offsets in `text`; CJK characters one by one."""
    stop = len(text) if end is None else end
    found = (Word(_folded(match[0]), match.start(), match.end()) for match in _WORD.finditer(text, start, stop))
    return [word for word in found if word.text]


def places_of(wanted: Container[str], text: str) -> tuple[list[int], list[tuple[int, str]]]:
    """Where each word of `text` begins, and those that are `wanted`, as (which word, its folded form)."""
    begins: list[int] = []
    hits: list[tuple[int, str]] = []
    for match in _WORD.finditer(text):
        word = _folded(match[0])
        if word in wanted:
            hits.append((len(begins), word))
        begins.append(match.start())
    return begins, hits


def _folded(token: str) -> str:
    return _short(token) if len(token) <= 40 else _join(token)


@lru_cache(maxsize=4_000)
def _short(token: str) -> str:
    return _join(token)


def _join(token: str) -> str:
    return "".join(words(_without_joiners(token)))


def _without_joiners(token: str) -> str:
    return token if token.isascii() else "".join(char for char in token if unicodedata.category(char) != "Cf")
