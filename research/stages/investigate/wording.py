"""What a model is told of tools and of their results: read from files, checked, filled.

A tool's file (TOML) has its `description` (for tool calls), its `action` (for models that
work by structured actions; those don't read on), `arguments` (a description of each) and
`forms`: what results say, with placeholders `{{ name }}`. The files `loop` and `mcp` (for
the tools of servers) have forms alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...prompts import Prompt
from ...values import toml

Properties = Mapping[str, Mapping[str, Any]]

# Of each tool: the JSON schema of each argument, and the placeholders of each form.
ARGUMENTS: Mapping[str, Properties] = {
    "search": {"query": {"type": "string"}},
    "fetch": {"url": {"type": "string"}},
    "read": {"handle": {"type": "string"}, "offset": {"type": "integer"}},
    "loop": {},
    "mcp": {},
}
FORMS: Mapping[str, Mapping[str, str]] = {
    "search": {"found": "query results", "nothing": "query", "failed": "reason", "long": "most", "cap": "most"},
    "fetch": {
        "whole": "number length text", "passages": "number handle length text", "unread": "number reason",
        "failed": "number reason", "stranger": "", "cap": "most",
    },
    "read": {"part": "handle start end length text", "stranger": "handle handles", "beyond": "handle length start"},
    "loop": {
        "unknown": "name tools", "invalid": "name reason", "action": "reason", "many": "most", "again": "result",
        "cut": "most", "empty": "", "finish": "reason", "repair": "sources", "notes": "notes sources",
    },
    "mcp": {
        "described": "server text", "action": "server input text", "whole": "number tool length text addresses",
        "passages": "number tool handle length text addresses", "addresses": "listed", "empty": "tool",
        "failed": "tool reason", "cap": "most",
    },
}  # fmt: skip
ALWAYS = ("loop", "read")  # files that come with any tool
SERVERS = "mcp"  # the file for the tools of servers, which are named "mcp:NAME"
BARE = ("loop", SERVERS)  # files that describe no tool


@dataclass(frozen=True)
class Wording:
    """One file's words."""

    name: str
    description: str
    action: str
    arguments: Mapping[str, str]
    forms: Mapping[str, str]

    def say(self, form: str, **values: object) -> str:
        """A form, filled."""
        return Prompt(self.name, self.forms[form]).fill({name: str(value) for name, value in values.items()})[1]

    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the tool's arguments: all required, no others."""
        properties = {
            name: {**schema, "description": self.arguments[name]} for name, schema in ARGUMENTS[self.name].items()
        }
        required = list(properties)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def read(name: str, text: str) -> Wording:
    """A tool's file.

    Raises: ValueError for an unknown tool, for what is no TOML, and for arguments, forms or
    placeholders other than the tool has.
    """
    if name not in ARGUMENTS:
        raise ValueError(f"there is no tool {name!r}; there are {', '.join(sorted(set(ARGUMENTS) - {*BARE}))}")
    table = toml(text)
    arguments, forms = table.pop("arguments", {}), table.pop("forms", {})
    wording = Wording(name, table.pop("description", ""), table.pop("action", ""), arguments, forms)
    if table:
        raise ValueError(f"there is no such key: {', '.join(table)}")
    if name not in BARE and not wording.description:
        raise ValueError("a description is needed")
    if name not in (*ALWAYS, *BARE) and not wording.action:
        raise ValueError("an action is needed")
    _same("[arguments]", arguments, ARGUMENTS[name])
    _same("[forms]", forms, FORMS[name])
    for form, wanted in FORMS[name].items():
        prompt = Prompt(form, forms[form])
        if prompt.strangers or prompt.placeholders != set(wanted.split()):
            raise ValueError(f"the form {form} must have the placeholders {wanted or '(none)'}, and no others")
    return wording


def _same(where: str, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    if set(given) != set(wanted) or not all(isinstance(value, str) for value in given.values()):
        raise ValueError(f"{where} must have just {', '.join(wanted) or 'nothing'}, each a text")
