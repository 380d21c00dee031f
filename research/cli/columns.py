"""Text for terminals of any width: wrapped between words, tables as blocks where their columns don't fit."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

USUAL, LEAST, WIDEST = 88, 40, 100  # columns of text


def columns(stream: TextIO | None = None) -> int:
    """How wide text is written: as wide as the terminal, and no wider than is good to read.

    `stream` is that to which it is written, if that is not stdout.
    """
    return min(WIDEST, _terminal(stream))


def _terminal(stream: TextIO | None = None) -> int:
    if stream is not None and not os.environ.get("COLUMNS"):
        with contextlib.suppress(OSError, ValueError):  # no terminal; no file at all
            return max(LEAST, os.get_terminal_size(stream.fileno()).columns)
    return max(LEAST, shutil.get_terminal_size((USUAL, 24)).columns)


def room() -> int | None:
    """How wide lines of stdout may be that are lists: None where no terminal reads them, and COLUMNS is not set."""
    return _terminal() if sys.stdout.isatty() or os.environ.get("COLUMNS") else None


def hung(text: str, width: int | None, indent: int = 2) -> str:
    """A line, wrapped where it is too long; what follows its first line is indented.

    >>> print(hung("expected $0 for 7 calls", 12))
    expected $0
      for 7
      calls
    """
    if width is None or len(text) <= width:
        return text
    return textwrap.fill(
        text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False, tabsize=4
    )


def aligned(rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """A table, whose first row is its head; where it is too wide, each row as a block of its own.

    >>> print(*aligned([("stage", "calls"), ("plan", "1")], None), sep="|")
    stage  calls|plan   1
    >>> print(*aligned([("stage", "calls"), ("plan", "1")], 10), sep="|")
    plan|  calls: 1
    """
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(size) for cell, size in zip(row, wide, strict=True)).rstrip() for row in rows]
    if width is None or max(map(len, lines)) <= width:
        yield from lines
        return
    head, *rest = rows
    for name, *cells in rest:
        yield name
        yield from (hung(f"  {title}: {cell}", width, 4) for title, cell in zip(head[1:], cells, strict=True) if cell)


def printed(lines: Iterable[str], indent: int = 2) -> None:
    """Lists and tables to stdout, each line as wide as there is room."""
    width = room()
    for line in lines:
        print(hung(line, width, indent))
