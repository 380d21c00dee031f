"""Batches under scripted models and a made-up web in which every question has pages of its own, with every call counted."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research.app import App, Dates, load_pipeline
from research.batch import Batch, Choice, Gauge, LocalRows, Selection, recipe_of
from research.limits.budget import Budget, Caps
from research.llm.messages import Account, Attempt, Completion, Request, Unpaid, Usage
from research.llm.scripted import ScriptedModel
from research.questions import Questions, Row
from research.records import Hit, Outcome, Page
from research.results import Results
from research.settings import Settings

ALL = Choice()
FREE = Caps()
DATES = Dates("2025-03-01", "2025-03-01")


def question(number: int) -> str:
    return f"How tall is tower {number}?"


def question_file(path: Path, count: int) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "answer", "class"])
        writer.writerows([f"q{number}", question(number), f"{number} metres", "heights"] for number in range(count))
    return path


def tower(text: str) -> str:
    found = re.search(r"tower[ -](\d+)", text)
    assert found is not None, text
    return found[1]


@dataclass
class Towers:
    """Two hits for each query, both of which can be read."""

    name: str = "towers"
    source: str = "towers"
    date: str = "2025-03-01"
    calls: Counter[str] = field(default_factory=Counter)

    async def search(self, query: str, top: int) -> list[Hit]:
        self.calls[f"search {query}"] += 1
        number = tower(query)
        return [
            Hit(url=f"https://site{n}.example/tower-{number}", title=query, snippet="How tall.", rank=n) for n in (1, 2)
        ]

    async def fetch(self, url: str) -> Page:
        self.calls[f"fetch {url}"] += 1
        text = f"Tower {tower(url)} is {tower(url)} metres tall. So says {url}."
        return Page(url=url, outcome=Outcome.OK, title="A tower", site=url.split("/")[2], text=text, date="2024-05-01")


def reply(request: Request) -> Any:
    """What a good model would say of towers."""
    given = request.given
    if request.purpose == "plan":
        return {"needs_search": True, "queries": [given["question"]], "reason": "a figure"}
    if request.purpose == "rerank":
        return {"ranking": [1, 2]}
    if request.purpose == "extract":
        quote = re.search(r"Tower \d+ is \d+ metres tall\.", given["text"])
        assert quote is not None
        return {"facts": [{"claim": "Its height.", "quote": quote[0]}]}
    assert request.purpose == "synthesize", request.purpose
    return "It is tall [1]."


@dataclass
class Lab:
    """Runs batches of one question file, each with an App of its own on one store, as commands one after another do."""

    folder: Path
    count: int = 20
    script: Callable[[Request], Any] = reply
    pipeline: str = "fixed"
    seconds: float = 0.0  # that each call of a model takes
    web: Towers = field(default_factory=Towers)
    calls: Counter[str] = field(default_factory=Counter)  # by purpose and tower
    batch: Batch | None = None
    rows: LocalRows | None = None

    def __post_init__(self) -> None:
        self.out = self.folder / "results.jsonl"
        self.file = question_file(self.folder / "questions.csv", self.count)

    async def run(
        self, choice: Choice = ALL, ordered: bool = False, most: int | None = None, caps: Caps = FREE
    ) -> Batch:
        results, gauge = Results(self.out), Gauge()
        model = gauge.model(Counting(self))
        app = App(Settings(self.folder / "home"), {"cheap": model, "capable": model}, price=lambda *_: 1_000_000)
        budget = Budget(caps, self.folder / "budget.db")
        try:
            pipeline = load_pipeline(self.pipeline)
            recipe = recipe_of(app, pipeline, self.web, DATES)
            selection = Selection(Questions(self.file), choice, results.past, recipe.digest)
            self.rows = LocalRows(selection, results, ordered)
            self.rows.survey()

            def ask(row: Row, listen: Callable[[dict[str, Any]], None]) -> Any:
                return app.ask(row.question, pipeline, self.web, DATES, budget=budget, listeners=(listen,))

            made = {"pipeline": pipeline.name, "recipe": recipe.digest, **DATES._asdict()}
            self.batch = Batch(self.rows, ask, made, gauge, most, caps.seconds)
            await self.batch.run()
            self.rows.flush()
            results.settle(in_order=ordered)
        finally:
            budget.close()
            app.close()
            results.close()
        return self.batch

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.read_text(encoding="utf-8").splitlines()]


class Counting(ScriptedModel):
    def __init__(self, lab: Lab) -> None:
        super().__init__(lab.script, "scripted:model")
        self.lab = lab

    async def complete(self, request: Request, account: Account | None = None, on_text: Any = None) -> Completion:
        return await super().complete(request, Sending(account or Unpaid(), self.lab, request), on_text)


@dataclass
class Sending:
    """Counts a call when there is leave to send it, and takes its time."""

    inner: Account
    lab: Lab
    request: Request

    async def reserve(self, most: Usage, name: str = "") -> Callable[[Attempt], None]:
        settle = await self.inner.reserve(most, name)
        self.lab.calls[f"{self.request.purpose} {tower(str(self.request.given))}"] += 1
        await asyncio.sleep(self.lab.seconds)
        return settle


def content(records: list[dict[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """What records say, by id, without what differs from one run to the next."""
    passing = {"run", "began", "seconds", "seconds_as_if_cold", "paid", "as_if_cold"}
    return {record["id"]: {k: v for k, v in record.items() if k not in passing} for record in records}
