"""What clients' models are told of the tools, and what their calls must fit."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..prompts import Prompt
from ..settings import PIPELINES

LONGEST = 300  # characters of what is wrong

SCHEMAS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "ask": {
        "question": {"type": "string"},
        "pipeline": {"type": "string", "enum": sorted(path.stem for path in PIPELINES.glob("*.toml"))},
        "max_usd": {"type": "number", "minimum": 0, "maximum": 1_000_000},
    },
    "search": {"query": {"type": "string", "minLength": 1, "maxLength": 300}},
    "fetch": {"url": {"type": "string", "maxLength": 4_000}, "offset": {"type": "integer", "minimum": 0}},
}
REQUIRED = {"ask": ["question"], "search": ["query"], "fetch": ["url"]}


def wrong(name: str, arguments: Mapping[str, Any]) -> str:
    """What is wrong with a call, if anything."""
    from jsonschema import Draft202012Validator

    if name not in SCHEMAS:
        return f"there is no tool {name[:60]!r}; there are {', '.join(SCHEMAS)}"
    if any(isinstance(value, float) and not math.isfinite(value) for value in arguments.values()):
        return f"{name} was not called, since its arguments hold what is no number"
    error = next(Draft202012Validator(schema(name)).iter_errors(arguments), None)
    if error is None:
        return ""
    reason = error.message if len(error.message) <= LONGEST else f"… {error.message[-LONGEST:]}"
    return f"{name} was not called, since its arguments don't fit: {reason}"


def schema(name: str) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    described = _words()[name]["arguments"]
    properties = {one: {**given, "description": described[one]} for one, given in SCHEMAS[name].items()}
    return {"type": "object", "properties": properties, "required": REQUIRED[name], "additionalProperties": False}


@functools.cache
def _words() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("tools.toml").read_text(encoding="utf-8"))


def description(name: str) -> str:
    return str(_words()[name]["description"]).strip()


def instructions() -> str:
    return str(_words()["instructions"]).strip()


def say(tool: str, form: str, **values: object) -> str:
    text = _words()[tool]["forms"][form]
    return Prompt(f"{tool} {form}", text).fill({name: str(value) for name, value in values.items()})[1]
