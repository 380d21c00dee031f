"""Batches against a provider on loopback that counts, limits and misbehaves: every row accounted for, nearly all answered."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from research.app import App, load_pipeline
from research.batch import Batch, Choice, Gauge, LocalRows, Selection, recipe_of
from research.limits.budget import Budget, Caps
from research.limits.rates import Rates
from research.llm.client import Patience, ProviderModel
from research.questions import Questions, Row
from research.results import Results
from research.settings import Settings
from tests.batches import DATES, Towers, question_file
from tests.faults import Act, Received, reset
from tests.providers import Provider, cut, speak, status

BUSY = {"retry-after-ms": "20"}


def said(body: dict[str, Any]) -> str:
    """What a good model would say of towers, told by the schema that the reply is to fit."""
    import re

    text = json.dumps(body)
    number = re.findall(r"tower[ -](\d+)", text)[-1]
    schema = json.dumps(body.get("response_format", {}))
    if "needs_search" in schema:
        return json.dumps({"needs_search": True, "queries": [f"height of tower {number}"], "reason": "a figure"})
    if "ranking" in schema:
        return json.dumps({"ranking": [1, 2]})
    quote = re.search(r"Tower \d+ is \d+ metres tall\.", text)
    if "facts" in schema and quote is not None:
        return json.dumps({"facts": [{"claim": "Its height.", "quote": quote[0]}]})
    return "It is tall [1]."


class Faulty(Provider):
    """One request in twenty meets a fault, of six kinds."""

    def __init__(self, seed: int) -> None:
        super().__init__(said)
        self.chance = random.Random(seed)
        self.met = 0

    def fault(self) -> Act:
        return self.chance.choice([
            status(429, "rate_limit_error", BUSY),
            status(503, "overloaded", BUSY),
            status(500, "internal error", BUSY),
            reset,
            cut("openai-chat"),
            speak([b"data: {\"error\": {\"message\": \"overloaded\", \"type\": \"server_error\"}}\n\n"]),
        ])  # fmt: skip

    async def complete(self, writer: asyncio.StreamWriter, request: Received) -> None:
        if self.chance.random() < 0.05:
            self.met += 1
            await self.fault()(writer, request)
        else:
            await super().complete(writer, request)


async def no_wait(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.01))


async def run(folder: Path, count: int) -> tuple[Batch, LocalRows, Faulty]:
    question_file(folder / "questions.csv", count)
    results, gauge, pipeline, web = Results(folder / "results.jsonl"), Gauge(), load_pipeline("fixed"), Towers()
    budget = Budget(Caps(), folder / "budget.db")
    async with Faulty(seed=1) as provider:
        rates = Rates(window=0.5, sleep=no_wait)  # its refusals have nothing to do with how much is asked
        model = ProviderModel(provider.endpoint("openai-chat"), rates, Patience(10.0, 5.0, 5.0), sleep=no_wait)
        counted = gauge.model(model)
        app = App(Settings(folder / "home"), {"cheap": counted, "capable": counted}, price=lambda *_: 1_000)
        recipe = recipe_of(app, pipeline, web, DATES).digest
        rows = LocalRows(Selection(Questions(folder / "questions.csv"), Choice(), results.past, recipe), results)
        rows.survey()

        def ask(row: Row, listen: Any) -> Any:
            return app.ask(row.question, pipeline, web, DATES, budget=budget, listeners=(listen,))

        batch = Batch(rows, ask, {"recipe": recipe}, gauge)
        await batch.run()
        await model.aclose()
    budget.close()
    app.close()
    results.close()
    rates.close()
    return batch, rows, provider


async def check(folder: Path, count: int) -> None:
    batch, rows, provider = await run(folder, count)
    records = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    states = Counter(record["state"] for record in records)
    assert batch.stop is None, batch.stop
    assert sorted(record["id"] for record in records) == sorted(f"q{number}" for number in range(count))
    assert (states["done"], states["failed"]) == (rows.counts.done, rows.counts.failed)
    assert states.total() == count
    assert provider.met >= 0.02 * provider.served.completions
    assert Counter(record.get("ending") for record in records)["answered"] >= 0.97 * count, batch.tally.errors
    completed = sum(record["paid"]["models"] for record in records)
    assert completed >= provider.served.completions  # each completion that was served stands in a ledger


async def test_a_short_run_with_faults(tmp_path: Path) -> None:
    await check(tmp_path, 60)


@pytest.mark.heavy
async def test_three_thousand_rows_with_faults(tmp_path: Path) -> None:
    await check(tmp_path, 3_000)
