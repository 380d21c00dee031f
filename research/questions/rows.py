"""From entries to rows: a question each, an id, and whatever else stands beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from research.questions.columns import answers, class_of, id_column, question_column, question_text
from research.questions.entries import NO_TEXT, Entries, Entry, Problem, is_text
from research.records import Question
from research.store import digest

LONGEST_ID = 200  # characters
DEEPEST = 100  # lists and objects within each other, in one value


@dataclass(frozen=True)
class Row:
    """One question of a file.

    position  among the file's rows, from 1, and the line where it begins
    id        as given; else of the text, with a number for the second of the same text
    answers   reference answers, as far as there are any
    columns   everything but id and question, as it stands in the file
    """

    position: int
    line: int
    id: str
    question: Question
    answers: tuple[str, ...] = ()
    kind: str = ""  # the class that the file puts it in
    columns: Mapping[str, Any] = ()  # type: ignore[assignment]


class Reader:
    """Makes rows of entries. `column` and `ids` name the columns of question and id, if the user did; "" for no ids."""

    def __init__(self, column: str | None = None, ids: str | None = None) -> None:
        self.column = column
        self.ids = ids
        self.used: Counter[str] = Counter()  # the question columns, and how often
        self._lines: dict[str, int] = {}  # id → where it was given
        self._texts: Counter[str] = Counter()
        self._rows = 0

    def rows(self, entries: Entries) -> Iterator[Row | Problem]:
        for entry in entries:
            made = entry if isinstance(entry, Problem) else self._row(entry)
            if made is not None:
                yield made

    def _row(self, entry: Entry) -> Row | Problem | None:
        values = entry.values
        column = self.column if self.column is not None else question_column(values)
        if column is None or column not in values:
            return Problem(entry.line, self._unknown(values))
        if any(map(_is_deep, values.values())):
            return Problem(entry.line, "a value is nested too deeply")
        if not all(map(_decoded, values.values())):
            return Problem(entry.line, NO_TEXT)
        text = question_text(values[column])
        if text is None:
            return Problem(entry.line, f"{_called(column)} is no text")
        if text.startswith("file://"):
            return Problem(entry.line, f"{_called(column)} stands in another file ({text}); write it here")
        try:
            question = Question(text=text)
        except ValidationError as error:
            return Problem(entry.line, error.errors()[0]["msg"].removeprefix("Value error, "))
        ids = id_column(values, column) if self.ids is None else self.ids
        given = values.get(ids) if ids is not None else None
        row_id = self._id(given, question.text, entry.line)
        if isinstance(row_id, Problem):
            return row_id
        self.used[column] += 1
        self._rows += 1
        rest = {name: value for name, value in values.items() if name not in (column, ids)}
        return Row(self._rows, entry.line, row_id, question, answers(rest), class_of(rest), rest)

    def _id(self, given: Any, text: str, line: int) -> str | Problem:
        named = "" if given is None or isinstance(given, bool | dict | list) else " ".join(str(given).split())
        if not named:
            made = digest(text)[:12]
            self._texts[made] += 1
            named = made if self._texts[made] == 1 else f"{made}-{self._texts[made]}"
        if len(named) > LONGEST_ID:
            return Problem(line, f"its id has {len(named)} characters; at most {LONGEST_ID} are read")
        if named in self._lines:
            return Problem(
                line,
                f"the id {named} is that of line {self._lines[named]} too; give each row its own, or use --id none",
            )
        self._lines[named] = line
        return named

    def _unknown(self, values: Mapping[str, Any]) -> str:
        if self.column is not None:
            return f"there is no column {self.column!r}; {_listed(values)}"
        return f"no column is called question, query, prompt or the like; {_listed(values)}. Name it with --column"


def _listed(values: Mapping[str, Any]) -> str:
    named = [name for name in values if name]
    return f"there are {', '.join(named)}" if named else "there are none"


def _called(column: str) -> str:
    return f"the question (column {column})" if column else "the question"


def _is_deep(value: Any, levels: int = DEEPEST) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(inner) and (levels == 0 or any(_is_deep(one, levels - 1) for one in inner))


def _decoded(value: Any) -> bool:
    if isinstance(value, str):
        return is_text(value)
    if isinstance(value, dict):
        return all(map(_decoded, value)) and all(map(_decoded, value.values()))
    return not isinstance(value, list) or all(map(_decoded, value))
