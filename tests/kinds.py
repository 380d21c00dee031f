"""Small kinds of stages for tests of the loader and the executor, and a pipeline written from text."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research.artifacts import Artifact
from research.errors import WebError
from research.executor import Executor, Made, Step
from research.flights import Flights
from research.journal import Journal
from research.kinds import Kind, Params
from research.ledger import Call, Receipt
from research.loading import load
from research.pipeline import Pipeline
from research.records import Answer, Ending, Hit, Question
from research.steps import Calls
from research.store import Store


class TopParams(Params):
    top: int = 3


async def nothing(**_: Any) -> Any:
    raise AssertionError("only the shape of this kind is used")


def _long(text: str) -> str | None:
    return "too long" if len(text) > 20 else None


KINDS: Mapping[str, Kind] = {
    "split": Kind("split", 1, nothing, list[str], {"question": Question}, params=TopParams),
    "find": Kind("find", 1, nothing, list[Hit], {"query": str}, {"web_date": str}),
    "order": Kind("order", 1, nothing, list[Hit], {"hits": list[Hit]}, model=True),
    "read": Kind("read", 1, nothing, str, {"url": str}, dropped=_long),
    "note": Kind("note", 1, nothing, list[str], {"text": str}, {"question": Question}),
    "write": Kind("write", 1, nothing, Answer, {"notes": list[str]}, {"question": Question}),
}

PIPELINE = """
answer = "answer"

[stage.split]
takes = ["question"]
gives = "queries"

[stage.find]
each = { query = "queries" }
gives = "hits"

[stage.order]
takes = ["hits"]
gives = "ranked"
model = "cheap"
prompt = "order.md"

[stage.read]
each = { url = "ranked.url" }
gives = "texts"
want = 2

[stage.note]
each = { text = "texts" }
gives = "notes"

[stage.write]
takes = ["notes"]
gives = "answer"
"""
PROMPT = "Order these: {{ hits }}"


def pipeline(folder: Path, text: str = PIPELINE, prompt: str = PROMPT, kinds: Mapping[str, Kind] = KINDS) -> Pipeline:
    (folder / "order.md").write_text(prompt, encoding="utf-8")
    (folder / "tiny.toml").write_text(text, encoding="utf-8")
    return load(folder / "tiny.toml", kinds)


Work = Callable[[Mapping[str, Any]], Awaitable[Any]]


@dataclass
class Bench:
    """Runs tiny pipelines with scripted work, and counts what each stage did."""

    store: Store
    work: dict[str, Work] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    flights: Flights[Made] = field(default_factory=Flights)
    journal: Journal = field(default_factory=Journal)
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = {
            "split": self.split, "find": self.find, "order": self.order,
            "read": self.read, "note": self.note, "write": self.write, **self.work,
        }  # fmt: skip

    def steps(self, pipeline: Pipeline, recorded_only: bool = False) -> dict[str, Step]:
        return {name: self.step(pipeline, name, recorded_only and name in ("find", "read")) for name in pipeline.stages}

    def step(self, pipeline: Pipeline, name: str, recorded_only: bool) -> Step:
        stage = pipeline.stages[name]

        async def make(inputs: Mapping[str, Any], receipt: Receipt, calls: Calls) -> Any:
            self.calls[name] += 1
            self.asked.append((name, dict(inputs)))
            receipt.calls.append(Call("model", f"scripted:{name}", usd=1000, input=10, output=1))
            return await self.work[stage.kind.name](inputs)

        recipe = {"kind": f"{stage.kind.name} {stage.kind.version}", "params": stage.params.model_dump_json()}
        if stage.prompt is not None:
            recipe["prompt"] = stage.prompt.digest
        return Step(stage, recipe, make, recorded_only)

    async def run(
        self, pipeline: Pipeline, question: str = "one two", recorded_only: bool = False, **options: Any
    ) -> Any:
        self.calls.clear()
        self.asked.clear()
        self.journal = Journal()
        executor = Executor(
            pipeline, self.steps(pipeline, recorded_only), self.store, self.journal, flights=self.flights, **options
        )
        given = {"question": Question(text=question), "as_of": "2025-03-01", "web_date": "2025-03-01"}
        artifact: Artifact = await executor.run(given)
        return artifact.value

    def events(self, event: str, stage: str = "") -> list[dict[str, Any]]:
        return [line for line in self.journal.lines if line["event"] == event and stage in ("", line.get("stage"))]

    @staticmethod
    async def split(inputs: Mapping[str, Any]) -> list[str]:
        return list(inputs["question"].text.split())

    @staticmethod
    async def find(inputs: Mapping[str, Any]) -> list[Hit]:
        return [hit(f"https://{inputs['query']}.example/{n}", n) for n in (1, 2)]

    @staticmethod
    async def order(inputs: Mapping[str, Any]) -> list[Hit]:
        return list(inputs["hits"])

    @staticmethod
    async def read(inputs: Mapping[str, Any]) -> str:
        return f"t {inputs['url'][8:]}"

    @staticmethod
    async def note(inputs: Mapping[str, Any]) -> list[str]:
        return [f"noted {inputs['text']}"]

    @staticmethod
    async def write(inputs: Mapping[str, Any]) -> Answer:
        return Answer(text=" | ".join(inputs["notes"]), ending=Ending.ANSWERED)


def hit(url: str, rank: int) -> Hit:
    return Hit(url=url, title=url, rank=rank)


def slow(seconds: Mapping[str, float], then: Work, of: str) -> Work:
    """`then` after the seconds that are set for the input `of`."""

    async def work(inputs: Mapping[str, Any]) -> Any:
        await asyncio.sleep(seconds.get(inputs[of], 0))
        return await then(inputs)

    return work


def failing(times: dict[str, int], then: Work, of: str) -> Work:
    """Fails for an input as often as `times` says, then works."""

    async def work(inputs: Mapping[str, Any]) -> Any:
        if times.get(inputs[of], 0) > 0:
            times[inputs[of]] -= 1
            raise WebError(f"{inputs[of]} timed out; try again")
        return await then(inputs)

    return work
