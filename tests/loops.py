"""Scripted investigations over the small web, every request held against the rules of all dialects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research.app import Asked
from research.llm.messages import Message, Request
from research.llm.scripted import Reply, Script, ScriptedModel
from research.llm.wires import WIRES, Dialect
from tests.llm.test_wires import CHECKS, DIALECTS
from tests.shipped import Laboratory, calls, copied

PLAIN = Dialect()


def body(request: Request, wire: str, dialect: Dialect = PLAIN) -> dict[str, Any]:
    """A request as it is sent."""
    encoded: dict[str, Any] = json.loads(
        json.dumps(WIRES[wire].encode(request, "m", stream=True, dialect=dialect).body)
    )
    return encoded


def check(requests: Iterable[Request]) -> None:
    for request in requests:
        for wire, rules in CHECKS.items():
            for dialect in DIALECTS.values():
                rules(body(request, wire, dialect))


@dataclass
class Loops:
    """Runs investigations in one folder, so on one store."""

    folder: Path
    laboratory: Laboratory = field(init=False)

    def __post_init__(self) -> None:
        self.laboratory = Laboratory(self.folder / "home")

    async def run(
        self, script: Script | Iterable[Reply], changes: Iterable[str] = (), steps: int = 12, **options: Any
    ) -> Asked:
        """A run whose capable model has this script; `changes` are further lines of the stage."""
        lines = "\n".join([f"steps = {steps}", *changes])
        pipeline = copied(self.folder / "pipelines", "tool-use", tool_use_toml=("steps = 12", lines))
        self.laboratory.capable._script = ScriptedModel(script)._script
        try:
            return await self.laboratory.ask(pipeline, **options)
        finally:
            check(self.requests)

    @property
    def requests(self) -> list[Request]:
        return self.laboratory.capable.requests

    def told(self, request: int = -1) -> list[Message]:
        """What the model was told after its last turn, in that request."""
        told: list[Message] = []
        for message in reversed(self.requests[request].messages):
            if message.role == "assistant":
                break
            told.insert(0, message)
        return told


def long_turn(number: int, turns: int) -> Reply:
    """A long investigation's turn, from 0 on: it searches, then reads two pages of what it found, and so on."""
    if number == turns - 1:
        return "The tower of Ulm is 161 metres tall [1]. Others say 361 metres [3]."
    query = f"ulm tower {number // 2}"
    if number % 2 == 0:
        return calls(("search", {"query": query}), text=f"I look for {query}.")
    address = f"https://{query.replace(' ', '')}.example"
    return calls(("fetch", {"url": f"{address}/1"}), ("fetch", {"url": f"{address}/3"}))


def by_actions(actions: Iterable[Reply], said: Mapping[str, str] | None = None) -> Script:
    """A script of structured actions, whose last request is answered by what `said` has for each key."""
    said = said or {"source_1": "The tower of Ulm is 161 metres tall."}
    left = iter(actions)

    def reply(request: Request) -> Reply:
        if "keys" in request.given:
            return {key: said.get(key, "") for key in request.given["keys"]}
        return next(left)

    return reply
