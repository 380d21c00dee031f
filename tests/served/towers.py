"""A server of tools, by hand since the SDK takes a second to start: `python towers.py LOG`. It notes each call in LOG."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

HEIGHTS = {"ulm": "161.53", "cologne": "157.38"}


def tool(
    name: str, description: str, argument: str = "", kind: str = "string", read_only: bool = True
) -> dict[str, Any]:
    properties = {argument: {"type": kind}} if argument else {}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": {"readOnlyHint": read_only}}


TOOLS = [
    tool("height", "How tall the tower of a city's minster is.", "city"),
    tool("chapter", "A long chapter.", "number", "integer"),
    tool("environment", "What variables there are, and where it runs."),
    tool("demolish", "Takes a tower down.", "city", read_only=False),
]


def height(city: str) -> str:
    figure = HEIGHTS[city.lower()]
    return f"The tower of {city} minster is {figure} metres tall. More at https://towers.example/{city.lower()}."


def chapter(number: int) -> str:
    filler = "\n\n".join(f"Paragraph {place} tells of masons and their wages." for place in range(2_000))
    return f"{filler}\n\nThe tower of Ulm was finished in 1890."


def environment() -> str:
    return f"{sorted(os.environ)} {os.environ.get('TOWERS_TOKEN')} {Path.cwd()}"


def demolish(city: str) -> str:
    return "It is gone."


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    with open(sys.argv[1], "a", encoding="utf-8") as log:
        log.write(f"{' '.join([name, *map(str, arguments.values())])}\n")
    try:
        text = {"height": height, "chapter": chapter, "environment": environment, "demolish": demolish}[name](
            **arguments
        )
    except KeyError as error:
        return {"content": [{"type": "text", "text": f"nothing is known of {error}"}], "isError": True}
    return {"content": [{"type": "text", "text": text}]}


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        told = {"capabilities": {"tools": {}}, "serverInfo": {"name": "towers", "version": "1"}}
        return {"protocolVersion": params["protocolVersion"], **told}
    return {"tools": TOOLS} if method == "tools/list" else called(params["name"], params["arguments"])


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") in ("initialize", "tools/list", "tools/call"):
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result(message["method"], message.get("params", {}))}
        print(json.dumps(answer), flush=True)  # noqa: T201
