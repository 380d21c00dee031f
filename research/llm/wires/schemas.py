"""JSON schemas in the form that providers' strict modes accept.

Strict modes want every object closed and every property required; each knows a subset of
the keywords (OpenAI: "Structured model outputs", section "Supported schemas"; Anthropic:
"Structured outputs", section "JSON Schema limitations").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DROPPED = frozenset({"title", "default", "examples", "example", "discriminator", "$schema", "$id", "$comment"})
# Keywords that bound a value. They become a sentence in the description where a dialect refuses them.
BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matching {}",
}
FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
PLAIN = ("type", "description", "enum", "const")
KNOWN = {*PLAIN, "format", "items", "properties", "required", "anyOf", "$ref"}
Schema = dict[str, Any]


class NotStrictError(ValueError):
    """The schema says something that no strict mode can hold, such as an open object."""


def strict(schema: Mapping[str, Any], *, bounds: frozenset[str] = frozenset(BOUNDS)) -> Schema:
    """`schema` with closed objects, all properties required, and references written out.

    Only recursive definitions stay under `$defs`. Bounds not in `bounds` move into the
    description. Raises: NotStrictError.
    """
    return _Strict(schema, bounds).whole()


class _Strict:
    def __init__(self, schema: Mapping[str, Any], bounds: frozenset[str]) -> None:
        self.schema = schema
        self.bounds = bounds
        self.definitions: Mapping[str, Any] = {**schema.get("definitions", {}), **schema.get("$defs", {})}
        self.recursive: dict[str, Schema] = {}

    def whole(self) -> Schema:
        root = {key: value for key, value in self.schema.items() if key not in ("$defs", "definitions")}
        result = self.node(root, ())
        if result.get("type") != "object":
            raise NotStrictError("the whole is no object")
        done: set[str] = set()
        while waiting := self.recursive.keys() - done:
            name = min(waiting)
            done.add(name)
            self.recursive[name] = self.node(self.definitions[name], (name,))
        return {**result, "$defs": dict(sorted(self.recursive.items()))} if self.recursive else result

    def node(self, schema: Any, path: tuple[str, ...]) -> Schema:
        if not isinstance(schema, Mapping):
            raise NotStrictError(f"{schema!r} allows anything")
        if "$ref" in schema:
            return self.reference(schema, path)
        if "oneOf" in schema:
            schema = {**{key: value for key, value in schema.items() if key != "oneOf"}, "anyOf": schema["oneOf"]}
        if len(schema.get("allOf", ())) == 1:
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            return self.node({**schema["allOf"][0], **rest}, path)
        result = self.plain(schema)
        if "anyOf" in schema:
            result["anyOf"] = [self.node(each, path) for each in schema["anyOf"]]
        if "items" in schema:
            result["items"] = self.node(schema["items"], path)
        if "properties" in schema or schema.get("type") == "object":
            result |= self.properties(schema, path)
        return self.checked(result)

    def reference(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        if name not in self.definitions:
            raise NotStrictError(f"{schema['$ref']} is not defined")
        if name in path:
            self.recursive.setdefault(name, {})
            return {"$ref": f"#/$defs/{name}"}
        around = {key: value for key, value in schema.items() if key != "$ref"}
        return self.node({**self.definitions[name], **around}, (*path, name))

    def plain(self, schema: Mapping[str, Any]) -> Schema:
        """The keywords that hold no further schema."""
        kept: Schema = {}
        told: list[str] = []
        for key, value in schema.items():
            if key in BOUNDS and key not in self.bounds:
                told.append(BOUNDS[key].format(value))
            elif key in BOUNDS or key in PLAIN or (key == "format" and value in FORMATS):
                kept[key] = value
            elif key not in KNOWN and key not in DROPPED and key != "additionalProperties":
                raise NotStrictError(f"the keyword {key} is outside the strict subset")
        if told:
            kept["description"] = " ".join(filter(None, [kept.get("description"), f"({', '.join(told)})"]))
        return kept

    def properties(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Schema:
        if schema.get("additionalProperties", False) not in (False, None):
            raise NotStrictError("an object is open to any property")
        inner = {name: self.node(each, path) for name, each in schema.get("properties", {}).items()}
        return {"type": "object", "properties": inner, "required": list(inner), "additionalProperties": False}

    def checked(self, schema: Schema) -> Schema:
        if not schema.keys() & {"type", "anyOf", "enum", "const"}:
            raise NotStrictError("a value may be anything")
        if schema.get("type") == "array" and "items" not in schema:
            raise NotStrictError("an array's items may be anything")
        return schema


def reply_format(schema: Mapping[str, Any], bounds: frozenset[str]) -> Schema:
    """A reply's schema as OpenAI's dialects are told it, strict where it can be."""
    try:
        return {"name": "reply", "strict": True, "schema": strict(schema, bounds=bounds)}
    except NotStrictError:
        return {"name": "reply", "strict": False, "schema": dict(schema)}


def same_when_strict(schema: Mapping[str, Any]) -> bool:
    """Whether `strict(schema)` allows just the values that `schema` does (but for further properties)."""
    try:
        strict(schema)
    except NotStrictError:
        return False
    return _all_required(schema)


def _all_required(value: Any) -> bool:
    if isinstance(value, Mapping):
        properties = value.get("properties")
        if isinstance(properties, Mapping) and set(properties) != set(value.get("required", ())):
            return False
        return all(_all_required(each) for each in value.values())
    return all(_all_required(each) for each in value) if isinstance(value, list) else True
