"""What a file's format gives before anybody asks what its columns mean: entries and problems, with line numbers."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.errors import UsageError

LONGEST_LINE = 4 << 20  # characters
LARGEST_WHOLE = 256 << 20  # bytes of a file that can't be read piece by piece
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class Entry:
    """One record of a file. `line` is where it begins, counted from 1; text alone has the column ""."""

    line: int
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """Something in a file that is no question, and why."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


Entries = Iterator[Entry | Problem]
NO_TEXT = "bytes that are no UTF-8 text; save the file as UTF-8, or name its encoding with --encoding"


def is_text(value: str) -> bool:
    """Whether it was decoded without loss."""
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


def encoding_of(path: Path, given: str | None) -> str:
    """The encoding to read `path` with: as given, as its byte order mark says, else UTF-8.

    Raises: UsageError for one that nobody knows, and for UTF-16 and UTF-32 without a mark.
    """
    with open(path, "rb") as file:
        head = file.read(64)
    if given is not None:
        try:
            return codecs.lookup(given).name
        except LookupError:
            raise UsageError(f"--encoding {given!r}: there is no such encoding; write it as utf-8, cp1252, …") from None
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    if b"\0" in head:
        raise UsageError(f"{path}: that is no text file; export a spreadsheet as CSV, or name its --encoding")
    return "utf-8"


def lines_of(path: Path, encoding: str) -> Iterator[str]:
    """The lines of a file with their ends, whichever of the three kinds these are.

    Raises: UsageError where a line has no end in sight, or where the encoding is another one.
    """
    number = 0
    try:
        with open(path, encoding=encoding, errors="surrogateescape", newline="") as file:
            while line := file.readline(LONGEST_LINE):
                number += 1
                if len(line) >= LONGEST_LINE:
                    raise UsageError(f"{path}: line {number} is longer than {LONGEST_LINE:,} characters; split it")
                yield line
    except UnicodeError as error:
        raise UsageError(f"{path}: line {number + 1}: it is no {encoding}: {error}; name its --encoding") from None


def whole(path: Path, encoding: str) -> str:
    """All of a file.

    Raises: UsageError for one that is too large for that.
    """
    size = path.stat().st_size
    if size > LARGEST_WHOLE:
        raise UsageError(f"{path}: {size:,} bytes are too many for one {path.suffix} value; write one JSON a line")
    return "".join(lines_of(path, encoding))
