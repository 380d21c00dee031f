"""Tables: csv and tsv, with a header somewhere near the top, or none."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from research.errors import UsageError
from research.questions.columns import is_known, is_question, plain
from research.questions.entries import Entries, Entry, Problem

HEADER_WITHIN = 20  # records
LOOKED_AT = 200  # lines, for delimiter and quotes
_WORD = re.compile(r"[A-Za-z_][\w.\[\]:-]*")
_DELIMITERS = ",;\t|"

Record = tuple[int, list[str]]  # the line where it begins, its cells


def table(lines: Iterable[str], tabs: bool, column: str | None) -> Entries:
    """The records of a table as entries, by the names in its header; without one columns are "1", "2", …

    `column` is the question's, if it is known. A quote that is never closed costs its line only.
    """
    lines = iter(lines)
    first = list(islice(lines, LOOKED_AT))
    delimiter = "\t" if tabs else _delimiter(first)
    quoted = not tabs or _is_quoted(first)
    records = _records(chain(first, lines), delimiter, quoted)
    top = list(islice((record for record in records), HEADER_WITHIN))
    at = _header(top, column)
    names = _names(top, at)
    for record in chain(top[0 if at is None else at + 1 :], records):
        if isinstance(record, Problem):
            yield record
        elif any(cell.strip() for cell in record[1]):
            yield _entry(record, names)


def _entry(record: Record, names: list[str]) -> Entry | Problem:
    line, cells = record
    extra = [cell for cell in cells[len(names) :] if cell.strip()]
    if extra:
        return Problem(
            line, f"{len(cells)} cells in a table of {len(names)} columns; put cells that hold the delimiter in quotes"
        )
    if len(cells) == 1 < len(names):
        return Problem(line, f"1 cell in a table of {len(names)} columns; put cells that hold line breaks in quotes")
    padded = [*cells, *[""] * (len(names) - len(cells))]
    return Entry(line, {name: cell for name, cell in zip(names, padded, strict=False) if name})


def _delimiter(lines: list[str]) -> str:
    """The one that the first line with names in it uses most; a comma where there is none."""
    for line in lines[:HEADER_WITHIN]:
        counts = {mark: line.count(mark) for mark in _DELIMITERS}
        best = max(counts, key=lambda mark: counts[mark])
        cells = line.split(best)
        if counts[best] and any(is_question(cell.strip().strip('"')) for cell in cells):
            return best
    counts = {mark: sum(line.count(mark) for line in lines) for mark in _DELIMITERS}
    tabs_or_commas = max(("\t", ","), key=lambda mark: counts[mark])
    return tabs_or_commas if counts[tabs_or_commas] else max(counts, key=lambda mark: counts[mark])


def _is_quoted(lines: list[str]) -> bool:
    """Whether quotes mark cells in a table of tabs, rather than being part of what is said."""
    reader = csv.reader(lines, delimiter="\t", strict=True)
    widths: list[int] = []
    last = 0
    try:
        for cells in reader:
            widths.append(len(cells))
            last = reader.line_num
    except csv.Error as error:  # the last of these lines may be in the middle of a cell
        if "unexpected end" not in str(error) or len(lines) < LOOKED_AT or len(lines) - last > HEADER_WITHIN:
            return False
    widths = [width for width in widths if width]
    return not widths or max(widths) == widths[0]


def _records(lines: Iterator[str], delimiter: str, quoted: bool) -> Iterator[Record | Problem]:
    source = _Source(lines)
    reader = _reader(source, delimiter, quoted)
    while True:
        source.mark()
        begin = source.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Problem(begin, _explained(str(error)))
            source.back_to(begin)
            reader = _reader(source, delimiter, quoted)
        else:
            yield begin, cells


def _reader(source: _Source, delimiter: str, quoted: bool) -> Iterator[list[str]]:
    if quoted:
        return csv.reader(source, delimiter=delimiter, strict=True)
    return csv.reader(source, delimiter=delimiter, quoting=csv.QUOTE_NONE)


class _Source:
    """Numbered lines, with those of the record in hand kept so that reading can go on after its first."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._ahead: deque[str] = deque()
        self._kept: list[str] = []
        self.number = 0  # of the line that was given last

    def __iter__(self) -> _Source:
        return self

    def __next__(self) -> str:
        line = self._ahead.popleft() if self._ahead else next(self._lines)
        self.number += 1
        self._kept.append(line)
        return line

    def mark(self) -> None:
        self._kept.clear()

    def back_to(self, line: int) -> None:
        """Go on after `line`, which is the first of those kept."""
        self._ahead.extendleft(reversed(self._kept[1:]))
        self.number = line
        self._kept.clear()


def _explained(error: str) -> str:
    if "unexpected end" in error or "field larger" in error:
        return "a quote is opened here and never closed"
    if "expected after" in error:
        return "something stands between a closing quote and the next delimiter; double the quotes inside a cell"
    return f"it can't be read as a row: {error}"


def _header(top: list[Record | Problem], column: str | None) -> int | None:
    """Which of the first records holds the names; None where all are data."""
    records = [(at, record[1]) for at, record in enumerate(top) if not isinstance(record, Problem)]
    if column is not None and column.isdecimal():
        found = next((at for at, cells in records if any(map(is_question, cells))), None)
        return found
    for at, cells in records:
        names = [cell.strip() for cell in cells]
        if column in names if column is not None else any(map(is_question, names)):
            return at
    filled = [(at, [cell.strip() for cell in cells]) for at, cells in records if any(map(str.strip, cells))]
    if not filled:
        return None
    at, names = filled[0]
    words = [name for name in names if name]
    looks_like_names = len(set(words)) == len(words) > 1 and all(map(_WORD.fullmatch, words))
    return at if looks_like_names or any(map(is_known, words)) else None


def _names(top: list[Record | Problem], at: int | None) -> list[str]:
    """The names of the columns; one that comes twice gets a number.

    Raises: UsageError for two columns that could both be the question.
    """
    if at is None:
        width = max((len(record[1]) for record in top if not isinstance(record, Problem)), default=1)
        return [str(number) for number in range(1, width + 1)]
    record = top[at]
    assert not isinstance(record, Problem)
    names: list[str] = []
    for cell in record[1]:
        name = " ".join(cell.split())
        if name in names:
            if is_question(name):
                raise UsageError(f"line {record[0]}: two columns are called {name!r}; rename one of them")
            name = f"{name} {sum(plain(other).startswith(plain(name)) for other in names) + 1}" if name else ""
        names.append(name)
    return names
