"""A question file: checked whole, then read row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from research.errors import UsageError
from research.questions.entries import Entries, Entry, Problem, encoding_of, lines_of
from research.questions.rows import Reader, Row
from research.questions.tables import table
from research.questions.trees import json_file, json_lines, yaml_file

FORMATS = ("txt", "csv", "tsv", "json", "jsonl", "yaml")
_SUFFIXES = {
    ".txt": "txt", ".text": "txt", ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "json", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".yaml": "yaml", ".yml": "yaml",
}  # fmt: skip
SHOWN = 50  # problems that are told one by one


@dataclass
class Checked:
    """What reading a file once has shown. `first` is its first row."""

    rows: int = 0
    problems: list[Problem] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)  # that the questions stand in, the most used first
    first: Row | None = None
    answers: int = 0  # rows with reference answers

    def told(self, path: Path) -> str:
        """All problems as a message, those of one kind on one line."""
        alike: dict[str, list[int]] = {}
        for problem in self.problems:
            alike.setdefault(problem.what, []).append(problem.line)
        lines = [f"{path}: {_numbered(numbers)}: {what}" for what, numbers in [*alike.items()][:SHOWN]]
        if len(alike) > SHOWN:
            lines.append(f"{path}: and {sum(map(len, [*alike.values()][SHOWN:])):,} lines more")
        return "\n".join(lines)


def _numbered(lines: list[int]) -> str:
    """
    >>> _numbered([7]), _numbered([2, 3, 4]), _numbered([*range(2, 300, 2)])
    ('line 7', 'lines 2, 3, 4', 'lines 2, 4, 6, 8, 10 and 144 more')
    """
    shown = ", ".join(map(str, lines[:5]))
    more = f" and {len(lines) - 5:,} more" if len(lines) > 5 else ""
    return f"line{'s' if len(lines) > 1 else ''} {shown}{more}"


@dataclass(frozen=True)
class Questions:
    """A question file. `column` and `ids` name the columns of question and id where their names don't tell."""

    path: Path
    column: str | None = None
    ids: str | None = None
    encoding: str | None = None
    format: str | None = None

    def check(self) -> Checked:
        """Read all of it.

        Raises: UsageError if it can't be read at all, or has neither rows nor problems.
        """
        checked, reader = Checked(), Reader(self.column, self.ids)
        for row in reader.rows(self._entries()):
            if isinstance(row, Problem):
                checked.problems.append(row)
                continue
            checked.rows += 1
            checked.first = checked.first or row
            checked.answers += bool(row.answers)
        checked.columns = [name for name, _ in reader.used.most_common()]
        if not checked.rows and not checked.problems:
            raise UsageError(f"{self.path}: there are no questions in it")
        return checked

    def rows(self) -> Iterator[Row]:
        """The rows, without what is a problem."""
        for row in Reader(self.column, self.ids).rows(self._entries()):
            if isinstance(row, Row):
                yield row

    def _entries(self) -> Entries:
        """Raises: UsageError, also for what the operating system says about the file."""
        kind = self._kind()
        try:
            encoding = encoding_of(self.path, self.encoding)
            if kind == "json":
                yield from json_file(self.path, encoding)
            elif kind == "yaml":
                yield from yaml_file(self.path, encoding)
            else:
                yield from self._by_lines(kind, lines_of(self.path, encoding))
        except OSError as error:
            raise UsageError(f"{self.path}: it can't be read: {error.strerror or error}") from None

    def _by_lines(self, kind: str, lines: Iterator[str]) -> Entries:
        if kind == "txt":
            return (Entry(number, {"": line}) for number, line in enumerate(lines, start=1) if line.strip())
        if kind == "jsonl":
            return json_lines(lines)
        return table(lines, tabs=kind == "tsv", column=self.column)

    def _kind(self) -> str:
        kind = self.format or _SUFFIXES.get(self.path.suffix.lower(), "")
        if kind not in FORMATS:
            raise UsageError(
                f"{self.path}: {self.path.suffix or 'a name without a suffix'} tells no format that is read; "
                f"name it with --format ({', '.join(FORMATS)}), or export the file as CSV"
            )
        return kind
