"""JSON, one value a line or one for the file, and promptfoo's YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from research.errors import UsageError
from research.questions.columns import QUESTION, find
from research.questions.entries import Entries, Entry, Problem, lines_of, whole

LISTS = ("questions", "tests", "data", "examples", "rows", "items", "queries", "test_cases")
LARGEST_TEST = 100_000  # values of one YAML test, aliases written out
_SPACE = re.compile(r"[ \t\r\n]*")


def json_lines(lines: Iterable[str]) -> Entries:
    """One JSON value a line."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield entry(number, json.loads(line, parse_constant=_refused))
            except (ValueError, RecursionError) as error:
                yield Problem(number, _no_json(error))


def entry(line: int, value: Any) -> Entry | Problem:
    """A JSON value as an entry: an object, whose `vars` are columns as well, or a text."""
    if isinstance(value, str):
        return Entry(line, {"": value})
    if not isinstance(value, dict):
        return Problem(line, f'a {_kind(value)}; write an object such as {{"question": …}}, or a text')
    variables = value.get("vars")
    if isinstance(variables, dict):
        rest = {name: inner for name, inner in value.items() if name != "vars" and name not in variables}
        return Entry(line, {**variables, **rest})
    return Entry(line, value)


def json_file(path: Path, encoding: str) -> Entries:
    """A list, an object that holds one, or one value a line after all."""
    first = next((line for line in lines_of(path, encoding) if line.strip()), "")
    if _is_row(first):
        yield from json_lines(lines_of(path, encoding))
        return
    text = whole(path, encoding)
    begin = _list_in(text, path)
    yield from _listed(text, begin)


def _listed(text: str, begin: int) -> Entries:
    """The values of the list that begins at `begin`, one by one."""
    line = _Line(text)
    at = _past(text, begin + 1)
    decoder = json.JSONDecoder(parse_constant=_refused)
    while text[at : at + 1] != "]":
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            where = error.pos if isinstance(error, json.JSONDecodeError) else at
            yield Problem(line.of(where), f"{_no_json(error)}; what follows could not be read")
            return
        yield entry(line.of(at), value)
        at = _past(text, end)
        if text[at : at + 1] == ",":
            at = _past(text, at + 1)
        elif text[at : at + 1] != "]":
            yield Problem(line.of(min(at, len(text) - 1)), "a comma or ] is missing; what follows could not be read")
            return


class _Line:
    """Line numbers of places that are asked for in rising order."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._number = text, 0, 1

    def of(self, place: int) -> int:
        self._number += self._text.count("\n", self._at, max(place, self._at))
        self._at = max(place, self._at)
        return self._number


def _list_in(text: str, path: Path) -> int:
    """Where the list of questions begins: the value itself, or the first list under a known name in an object.

    Raises: UsageError if there is none.
    """
    at = _past(text, 0)
    if text[at : at + 1] == "[":
        return at
    decoder = json.JSONDecoder(parse_constant=_refused)
    lists: dict[str, int] = {}
    try:
        at = _past(text, at + 1) if text[at : at + 1] == "{" else len(text)
        while text[at : at + 1] == '"':
            name, at = decoder.raw_decode(text, at)
            at = _past(text, _past(text, at) + 1)
            if text[at : at + 1] == "[":
                lists[name] = at
            _, at = decoder.raw_decode(text, at)
            at = _past(text, _past(text, at) + 1)
    except (ValueError, RecursionError) as error:
        if not lists:
            raise UsageError(f"{path}: {_no_json(error)}") from None
    found = next((lists[name] for name in LISTS if name in lists), None)
    if found is None and len(lists) != 1:
        raise UsageError(f'{path}: no list of questions; write [{{"question": …}}, …], or one such object a line')
    return next(iter(lists.values())) if found is None else found


def _past(text: str, at: int) -> int:
    """The next place that is no white space."""
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]


def _is_row(line: str) -> bool:
    """Whether a line is an object with a question, so that each line is one."""
    try:
        made = entry(1, json.loads(line)) if line.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(made, Entry) and find(made.values, QUESTION) is not None


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _no_json(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON: {error.msg} at column {error.colno}"
    return "no JSON: nested too deeply" if isinstance(error, RecursionError) else f"no JSON: {error}"


def _kind(value: Any) -> str:
    return {list: "list", bool: "true or false", int: "number", float: "number"}.get(type(value), "null")


def yaml_file(path: Path, encoding: str) -> Entries:
    """promptfoo's `tests`, or a list of its own. All scalars stay the text they are.

    Raises: UsageError for what is no YAML, and where PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise UsageError(f"{path}: YAML needs PyYAML: `pip install PyYAML`, or write the file as JSON") from None
    loader = yaml.BaseLoader(whole(path, encoding))
    try:
        root = loader.get_single_node()
        nodes = list(_tests(root, yaml, path))
        for node in nodes:
            line = node.start_mark.line + 1
            if _size(node, {}) > LARGEST_TEST:
                yield Problem(line, "it is far larger than it looks, by aliases of aliases")
            else:
                yield entry(line, loader.construct_document(node))
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise UsageError(f"{path}: {where}no YAML: {getattr(error, 'problem', '') or 'nested too deeply'}") from None
    finally:
        loader.dispose()


def _tests(root: Any, yaml: Any, path: Path) -> Iterator[Any]:
    """The nodes of the tests in a file."""
    if isinstance(root, yaml.MappingNode):
        named = {key.value: node for key, node in root.value}
        root = next((named[name] for name in LISTS if name in named), None)
        if isinstance(root, yaml.ScalarNode):
            raise UsageError(f"{path}: its tests are in {root.value}; give that file instead")
    if not isinstance(root, yaml.SequenceNode):
        raise UsageError(f"{path}: no list of tests; write tests: with one - for each")
    yield from root.value


def _size(node: Any, known: dict[int, int]) -> int:
    """How many values a node holds, aliases written out."""
    if id(node) not in known:
        known[id(node)] = LARGEST_TEST  # for one that holds itself
        inner = node.value if isinstance(node.value, list) else []
        parts = [part for one in inner for part in (one if isinstance(one, tuple) else (one,))]
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]
