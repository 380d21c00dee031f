"""What searches cost under a cap: reserved before an engine is asked, settled at what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from research.app import App, Asked, Dates, load_pipeline
from research.errors import BudgetError, UsageError
from research.ledger import paid
from research.limits.budget import Budget, Caps
from research.llm.messages import Request
from research.llm.scripted import ScriptedModel
from research.records import Ending, Question
from research.settings import ENGINES, KEYED, Settings, engine_names
from research.web.engines import engine
from research.web.live import Asking, LiveWeb
from research.web.world import Recorder
from tests import faults
from tests.faults import Act, FaultServer
from tests.shipped import DATES, Laboratory, SmallWeb

FEE = 5_000_000  # nano-dollars
QUERIES = 3
QUESTION = Question(text="How tall is the tower of Ulm?")
HIT = {"url": "https://a.test/", "title": "Solar sail", "content": "Light pushes solar sails.", "description": "Light."}
ANSWERS = {"tavily": {"results": [HIT]}, "brave": {"type": "search", "web": {"results": [HIT]}}}
NONE: dict[str, dict[str, Any]] = {"tavily": {"results": []}, "brave": {"type": "search", "web": {"results": []}}}
JSON = {"Content-Type": "application/json"}


def replies(request: Request) -> Any:
    if request.purpose == "plan":
        words = request.given["question"]
        return {"needs_search": True, "queries": [f"{words} {n}" for n in range(QUERIES)], "reason": ""}
    return "Light pushes solar sails [1]."


def told(answer: dict[str, Any], after: float = 0.0) -> Act:
    return faults.reply(json.dumps(answer).encode(), headers=JSON, after=after)


def then(*acts: Act) -> Act:
    """One after the other, the last for ever."""
    left = list(acts)

    async def act(writer: asyncio.StreamWriter, request: faults.Received) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(writer, request)

    return act


@dataclass
class Lab:
    """Runs of the pipeline `snippets` over engines that count what they are asked."""

    home: Path
    server: FaultServer
    fee: Callable[[str], int | None] = lambda name: FEE if name in ANSWERS else 0
    model: ScriptedModel = field(default_factory=lambda: ScriptedModel(replies))

    def web(self, *names: str) -> LiveWeb:
        variables = {engine_names(name)[0]: self.server.url(f"/{name}") for name in names}
        return LiveWeb(Asking(names, {**variables, **{engine_names(name)[1]: "a-key" for name in names}}))

    async def ask(self, budget: Budget, *names: str, questions: int = 1) -> list[Asked | BaseException]:
        models = {"cheap": self.model, "capable": self.model}
        app = App(Settings(self.home), models, price=lambda model, usage: 0, fee=self.fee)
        try:
            async with self.web(*names) as web:
                runs = (
                    app.ask(Question(text=f"sails {n}"), load_pipeline("snippets"), web, Dates.resolve(), budget=budget)
                    for n in range(questions)
                )
                return await asyncio.gather(*runs, return_exceptions=True)
        finally:
            app.close()

    async def one(self, budget: Budget, *names: str) -> Asked:
        [asked] = await self.ask(budget, *names)
        if isinstance(asked, BaseException):
            raise asked
        return asked


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with FaultServer({f"/{name}": told(answer, 0.01) for name, answer in ANSWERS.items()}) as server:
        yield Lab(tmp_path, server)


def searches(asked: Asked) -> list[tuple[str, Any, str]]:
    receipts = [line["receipt"] for line in asked.lines if line["event"] in ("made", "in_vain") and "receipt" in line]
    calls = [call for receipt in receipts for call in receipt.get("calls", ()) if call["what"] == "search"]
    return [(call["name"].partition("@")[0], call.get("usd", 0), call.get("failed", "")) for call in calls]


async def test_searches_of_many_runs_at_once_never_cost_more_than_the_cap(lab: Lab) -> None:
    budget = Budget(Caps(usd=20 * FEE))
    done = await lab.ask(budget, "tavily", questions=12)
    sent = len(lab.server.requests)
    assert 19 <= sent <= 20  # of 36: the last of twenty is not sent, since its reply might have to be asked for twice
    assert budget.spent()[0] == sent * FEE
    answered = [one for one in done if isinstance(one, Asked)]
    assert sum(paid(one.lines).usd for one in answered) == sent * FEE
    assert all(isinstance(one, Asked | BudgetError) for one in done)
    assert {one.answer.ending for one in answered} <= {Ending.ANSWERED, Ending.PARTLY}
    assert any(isinstance(one, BudgetError) or one.answer.ending is Ending.PARTLY for one in done)  # type: ignore[union-attr]


async def test_an_unknown_fee_under_a_cap_is_refused_before_anything_is_sent(lab: Lab) -> None:
    lab.fee = lambda name: None if name == "brave" else 0
    with pytest.raises(UsageError, match=r"search of brave costs is unknown.*\[engines\.brave\] with usd_per_search"):
        await lab.one(Budget(Caps(usd=FEE)), "brave")
    assert (lab.model.requests, lab.server.requests) == ([], [])
    asked = await lab.one(Budget(Caps(calls=10)), "brave")
    assert paid(asked.lines).unknown == QUERIES


async def test_engines_that_cost_nothing_need_no_cap_and_reserve_nothing(lab: Lab) -> None:
    lab.fee = lambda name: 0
    asked = await lab.one(Budget(Caps(usd=0)), "tavily")
    assert searches(asked) == [("tavily", 0, "")] * QUERIES


async def test_searches_are_no_calls_of_models(lab: Lab) -> None:
    budget = Budget(Caps(usd=100 * FEE, calls=2))
    assert (await lab.one(budget, "tavily")).answer.ending is Ending.ANSWERED
    assert budget.spent() == (QUERIES * FEE, 2)


async def test_an_engine_that_has_nothing_is_paid_as_well(lab: Lab) -> None:
    lab.server.routes["/brave"] = told(NONE["brave"])
    budget = Budget(Caps(usd=100 * FEE))
    asked = await lab.one(budget, "brave", "tavily")
    assert sorted(searches(asked)) == [("brave", FEE, "")] * QUERIES + [("tavily", FEE, "")] * QUERIES
    assert budget.spent()[0] == 2 * QUERIES * FEE == paid(asked.lines).usd


async def test_what_breaks_off_and_is_asked_for_again_is_paid_twice(lab: Lab) -> None:
    lab.server.routes["/tavily"] = then(faults.short(b"{}"), told(ANSWERS["tavily"]))
    budget = Budget(Caps(usd=100 * FEE))
    asked = await lab.one(budget, "tavily")
    assert len(lab.server.requests) == QUERIES + 1
    assert budget.spent()[0] == (QUERIES + 1) * FEE == paid(asked.lines).usd


async def test_an_error_costs_nothing(lab: Lab) -> None:
    lab.server.routes["/tavily"] = faults.reply(b"{}", 403)
    budget = Budget(Caps(usd=100 * FEE))
    with pytest.raises(Exception, match="no search engine answered"):
        await lab.one(budget, "tavily")
    assert lab.server.requests
    assert budget.spent()[0] == 0
    budget.reserve(100 * FEE)  # nothing is held any more


async def test_a_reply_of_no_use_costs(lab: Lab) -> None:
    lab.server.routes["/brave"] = faults.reply(b"<html>", 200)
    budget = Budget(Caps(usd=100 * FEE))
    asked = await lab.one(budget, "brave", "tavily")
    brave = sum(request.path.startswith("/brave") for request in lab.server.requests)
    assert brave >= 1
    assert budget.spent()[0] == len(lab.server.requests) * FEE == paid(asked.lines).usd


async def test_what_was_cut_off_counts_as_all_that_can_have_been_asked(lab: Lab) -> None:
    lab.server.routes["/tavily"] = faults.hang()
    budget = Budget(Caps(usd=100 * FEE, seconds=1.0))
    with pytest.raises(BudgetError, match="deadline"):
        await lab.one(budget, "tavily")
    assert len(lab.server.requests) == QUERIES
    assert budget.spent()[0] == 2 * QUERIES * FEE


async def test_what_is_recorded_costs_nothing(lab: Lab) -> None:
    lab.fee = lambda name: None
    web = SmallWeb(name="brave", source="world 1")
    app = App(Settings(lab.home), {"cheap": lab.model, "capable": lab.model}, price=lambda model, usage: 0, fee=lab.fee)
    asked = await app.ask(QUESTION, load_pipeline("snippets"), web, DATES, budget=Budget(Caps(usd=0)))
    app.close()
    assert (asked.answer.ending, searches(asked)) == (Ending.ANSWERED, [("brave", 0, "")] * QUERIES)


async def test_the_searches_of_a_loop_are_held_to_the_cap_as_well(lab: Lab) -> None:
    web, laboratory = SmallWeb(name="brave", source="live"), Laboratory(lab.home)
    laboratory.app.price, laboratory.app.fee = (lambda model, usage: 0), (lambda name: FEE)
    pipeline, today = load_pipeline("tool-use"), Dates.resolve()
    with pytest.raises(BudgetError, match=r"would pass --max-usd 0\.005"):
        await laboratory.app.ask(QUESTION, pipeline, web, today, budget=Budget(Caps(usd=FEE)))
    assert not web.calls
    asked = await laboratory.app.ask(QUESTION, pipeline, web, today, budget=Budget(Caps(usd=4 * FEE)))
    laboratory.app.close()
    assert web.calls["search"] == 2
    assert paid(asked.lines).usd == 2 * FEE


async def test_an_engine_that_lacks_its_key_costs_nothing(lab: Lab) -> None:
    lab.fee = lambda name: None if name == "brave" else FEE
    web = LiveWeb(Asking(["brave", "tavily"], {"TAVILY_BASE_URL": lab.server.url("/tavily"), "TAVILY_API_KEY": "k"}))
    models = {"cheap": lab.model, "capable": lab.model}
    app = App(Settings(lab.home), models, price=lambda model, usage: 0, fee=lab.fee)
    lab.home.mkdir(exist_ok=True)
    async with web:
        recorder = Recorder(web, lab.home / "world.jsonl", "2025-03-01")
        asked = await app.ask(
            QUESTION, load_pipeline("snippets"), recorder, Dates.resolve(), budget=Budget(Caps(usd=100 * FEE))
        )
        recorder.close()
    app.close()
    assert searches(asked) == [("tavily", FEE, "")] * QUERIES


def test_engines_with_a_fee_are_those_that_want_a_key() -> None:
    assert {name for name in ENGINES if "API_KEY" in engine(name, {}).disabled} == {*KEYED}
