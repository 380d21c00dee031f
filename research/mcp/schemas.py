"""The JSON schema of a tool's arguments, as a server gives it → one that is safe to show and to check by.

A server may say anything: references that lead out or in a circle, expressions that take
for ever, orders hidden in descriptions. What is left is plain JSON Schema (draft
2020-12), references written out, with bounds on depth and size. A schema that can't be
brought into that form makes its tool unusable, and says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..evidence.untrusted import neutralised
from ..web.tidy import line, shorten

DEEPEST = 8  # schemas within schemas
MOST = 300  # schemas in all
LONGEST = 20_000  # characters, as JSON
LONGEST_SAID = 300  # characters of a description
LONGEST_VALUE = 100  # characters of a value that an argument may have

Schema = dict[str, Any]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # the strictest that a provider takes
_DEFINITION = re.compile(r"#/(?:\$defs|definitions)/([^/~%]{1,100})")
_PLAIN = {
    "type", "additionalProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
}  # fmt: skip
_ONE = {"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"}
_SEVERAL = {"anyOf", "oneOf", "allOf", "prefixItems"}
_BRANCHES = {"anyOf", "oneOf", "allOf", "not", "if", "then", "else"}  # which providers refuse at the root


def usable(schema: Mapping[str, Any]) -> Schema:
    """What arguments are checked against.

    Dropped is what constrains nothing, and regular expressions, since a hostile one has no
    bound: those the server checks itself.
    Raises: ValueError for a schema that has no such form.
    """
    from jsonschema import Draft202012Validator, SchemaError

    if schema.get("type") != "object":
        raise ValueError("its schema is not that of an object")
    definitions = {**_mapping(schema.get("definitions")), **_mapping(schema.get("$defs"))}
    made: Schema = _Reading(definitions).schema(schema, 0)
    made.setdefault("properties", {})
    if len(json.dumps(made, allow_nan=False)) > LONGEST:
        raise ValueError("its schema is too long")
    try:
        Draft202012Validator.check_schema(made)
    except SchemaError as error:
        raise ValueError(f"its schema is none: {line(error.message)[:80]}") from None
    return made


def shown(schema: Mapping[str, Any]) -> Schema:
    """A usable schema as models are shown it: what providers refuse at the root is left to the check."""
    return {key: value for key, value in schema.items() if key not in _BRANCHES}


class _Reading:
    """One reading of one schema, with a count of what it has come to."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.definitions = definitions
        self.count = 0

    def schema(self, given: Any, depth: int) -> Any:
        """Raises: ValueError."""
        if isinstance(given, bool):
            return given
        self.count += 1
        if depth > DEEPEST or self.count > MOST:
            raise ValueError("its schema is too deep, too large, or goes in a circle")
        if not isinstance(given, Mapping):
            raise ValueError("its schema is none")
        if "$ref" in given:
            return self.schema(self.defined(given["$ref"]), depth + 1)
        made = {key: value for key in given if (value := self.keyword(key, given[key], depth)) is not None}
        if isinstance(given.get("description"), str):
            made["description"] = said(given["description"], LONGEST_SAID)
        return made

    def keyword(self, key: str, value: Any, depth: int) -> Any:
        """What is kept of a keyword; None for one that is dropped."""
        below: Callable[[Any], Any] = lambda inner: self.schema(inner, depth + 1)  # noqa: E731
        if key == "properties":
            return {_named(name): below(inner) for name, inner in _mapping(value).items()}
        if key == "required" and isinstance(value, list):
            return [_named(name) for name in value]
        if key in _ONE and not isinstance(value, bool):
            return below(value)
        if key in _SEVERAL and isinstance(value, list):
            return [below(inner) for inner in value]
        if key == "enum" and isinstance(value, list):
            return [_value(one) for one in value]
        if key == "const":
            return None if value is None else _value(value)
        return value if key in _PLAIN else None

    def defined(self, reference: Any) -> Any:
        found = _DEFINITION.fullmatch(reference) if isinstance(reference, str) else None
        if found is None or found[1] not in self.definitions:
            raise ValueError("its schema refers to what is not there")
        return self.definitions[found[1]]


def said(text: str, longest: int) -> str:
    """A stranger's description: on one line, cut, nothing in it that a model takes for more than text."""
    cut, is_cut = shorten(line(text[: 4 * longest]), longest)
    return neutralised(f"{cut} …" if is_cut else cut)


def _named(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("an argument has a name that providers refuse")
    return name


def _value(value: Any) -> Any:
    """A value that an argument may have. It must be sent as it is, so that it can't be cleaned."""
    if isinstance(value, str) and (len(value) > LONGEST_VALUE or neutralised(value) != value):
        raise ValueError("an argument has a value that no model can be shown")
    if not isinstance(value, str | int | float | None):
        raise ValueError("an argument has a value that is no plain one")
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
