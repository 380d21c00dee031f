"""Which column is what, by the names that people give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

# In the order in which they are looked for; without case, spaces, dashes and underscores.
QUESTION = (
    "question", "query", "prompt", "problem", "input", "questiontext", "querytext", "prompttext", "problemtext",
    "inputtext", "userquestion", "userquery", "userprompt", "userinput", "instruction", "task", "request", "text",
)  # fmt: skip
ID = ("id", "qid", "uid", "key", "questionid", "queryid", "promptid", "problemid", "rowid", "exampleid", "topicid")
ANSWER = (
    "answer", "answers", "expectedanswer", "expectedanswers", "expected", "expectedoutput", "referenceanswer",
    "referenceanswers", "reference", "references", "groundtruth", "groundtruths", "goldanswer", "goldanswers", "gold",
    "correctanswer", "target", "ideal", "solution",
)  # fmt: skip
CLASS = ("class", "category", "questiontype", "kind", "type", "facttype", "topic", "domain")
_NUMBERED_ANSWER = re.compile(r"answer\d+")
_ASSERTED = re.compile(r"(?:(i?contains|equals|factuality|[a-z][a-z-]*)(?:\([^)]*\))?:)?(.*)", re.DOTALL)
_LITERAL = (None, "contains", "icontains", "equals", "factuality")


@lru_cache(maxsize=1024)
def plain(name: str) -> str:
    """
    >>> plain("Question_Text")
    'questiontext'
    """
    return re.sub(r"[\W_]", "", name).casefold()


def is_question(name: str) -> bool:
    return plain(name) in QUESTION


@lru_cache(maxsize=1024)
def is_known(name: str) -> bool:
    """Whether a column of that name is surely no question."""
    return name.startswith("__") or plain(name) in (*ID, *ANSWER, *CLASS) or bool(_NUMBERED_ANSWER.match(plain(name)))


def find(names: Iterable[str], known: Iterable[str]) -> str | None:
    """The column with the first of the known names."""
    return _found(tuple(names), tuple(known))


@lru_cache(maxsize=64)  # the rows of a table have the same names
def _found(names: tuple[str, ...], known: tuple[str, ...]) -> str | None:
    by_name = {plain(name): name for name in reversed(names)}
    return next((by_name[one] for one in known if one in by_name), None)


def question_column(values: Mapping[str, Any]) -> str | None:
    """The column of the question; where no name tells, the only one that is nothing else. None if none can be told."""
    if [*values] == [""]:
        return ""
    filled = [name for name, value in values.items() if value not in (None, "", [])]
    found = find(filled, QUESTION) or find(values, QUESTION)
    if found is not None:
        return found
    free = [name for name in values if name and not is_known(name)]
    free = free or [name for name in values if plain(name) in CLASS]
    if len(free) == 1:
        return free[0]
    worded = [name for name in free if " " in str(values[name]).strip()]
    return worded[0] if len(worded) == 1 and all(name.isdecimal() for name in values) else None


def id_column(values: Mapping[str, Any], question: str) -> str | None:
    """The column of the ids: by its name, or the first of two without names."""
    found = find((name for name in values if name != question), ID)
    return "1" if found is None and [*values] == ["1", "2"] and question == "2" else found


def question_text(value: Any) -> str | None:
    """The question in a cell: text, or the last message of the user's in a chat. None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        said = [turn.get("content") for turn in value if isinstance(turn, dict) and turn.get("role") == "user"]
        if said and isinstance(said[-1], list):
            parts = [part.get("text") for part in said[-1] if isinstance(part, dict)]
            return "\n".join(part for part in parts if isinstance(part, str)) or None
        return said[-1] if said and isinstance(said[-1], str) else None
    return None


def answers(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The reference answers of a row, each once."""
    found: list[str] = []
    for name, value in values.items():
        if value == "" or not _holds_answers(name):
            continue
        if name.startswith("__"):
            if isinstance(value, str):
                found += _asserted(*_ASSERTED.fullmatch(value.strip()).groups())  # type: ignore[union-attr]
        elif name == "assert":
            tests = value if isinstance(value, list) else []
            for one in tests:
                if isinstance(one, dict) and one.get("type"):
                    found += _asserted(one["type"], one.get("value"))
        else:
            if isinstance(value, str) and "::" in value and plain(name).endswith("s"):
                value = value.split("::")
            found += _texts(value)
    return tuple(dict.fromkeys(text for text in map(str.strip, found) if text))


@lru_cache(maxsize=1024)
def _holds_answers(name: str) -> bool:
    if name.startswith("__expected") or name == "assert":
        return True
    return plain(name) in ANSWER or bool(_NUMBERED_ANSWER.fullmatch(plain(name)))


def _asserted(kind: Any, value: Any) -> list[str]:
    return _texts(value) if kind in _LITERAL else []


def _texts(value: Any) -> list[str]:
    """Of a value, or of all values of a list. One that is nested too deeply to be a list of answers has none."""
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        import json

        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
    if isinstance(value, list):
        try:
            return [text for one in value for text in _texts(one)]
        except RecursionError:
            return []
    if isinstance(value, bool) or value is None or isinstance(value, dict):
        return []
    return [str(value)]


def class_of(values: Mapping[str, Any]) -> str:
    name = find(values, CLASS)
    value = None if name is None else values[name]
    return value.strip() if isinstance(value, str) else ""
