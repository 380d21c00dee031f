"""Whole batches by the providers' batch interfaces: what they do, what they fail with, what is paid, what is taken up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from research.app import App, load_pipeline
from research.batch import Batch, Gauge, LocalRows, Selection, recipe_of
from research.batch.stagewise import Stagewise, stagewise, under_way
from research.errors import StoreError, UsageError
from research.limits.budget import Budget, Caps
from research.llm.batching.collector import Collector
from research.llm.batching.kept import Kept
from research.questions import Questions, Row
from research.results import Results
from research.settings import Settings
from research.tiers import Tiers
from tests.batch_services import AnthropicServer, BatchServer, OpenAIServer
from tests.batches import ALL, DATES, FREE, Lab, Towers, content, question_file, tower
from tests.faults import hang, reset
from tests.providers import KEY, status

Json = dict[str, Any]


def said(body: Json) -> str:
    """What a good model would say of towers, told by the form that it is asked for."""
    asked = json.dumps(body)
    if '"queries"' in asked and '"needs_search"' in asked:
        number = tower(asked[asked.index("Question:") :])
        return json.dumps({"needs_search": True, "queries": [f"How tall is tower {number}?"], "reason": "a figure"})
    if '"ranking"' in asked:
        return json.dumps({"ranking": [1, 2]})
    if '"facts"' in asked:
        number = tower(asked[asked.index("Tower ") :].replace("Tower", "tower"))
        quote = f"Tower {number} is {number} metres tall."
        return json.dumps({"facts": [{"claim": "Its height.", "quote": quote}]})
    return "It is tall [1]."


@dataclass
class Served:
    """A lab whose models are at a provider of batches."""

    folder: Path
    server: BatchServer
    model: str
    count: int = 5
    pipeline: str = "fixed"
    most: int = 1_000  # requests of a batch
    told: list[str] = field(default_factory=list)
    web: Towers = field(default_factory=Towers)
    batch: Batch | None = None
    spent: tuple[int, int] = (0, 0)
    waited: float = 0.0  # seconds that a batch was waited for, as its clock has them

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.out = self.folder / "results.jsonl"
        self.file = question_file(self.folder / "questions.csv", self.count)

    def tiers(self) -> Tiers:
        base = self.server.url("")
        own = {"mine": {"wire": "openai-responses", "base_url": f"{base}/v1", "key_env": "MINE_KEY"}}
        prices = {"mine:m": {"input": 2.0, "output": 8.0}}
        settings = Settings(self.folder / "home", cheap=self.model, capable=self.model, providers=own, prices=prices)
        keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "MINE_KEY": KEY}
        return Tiers(settings, environment={**keys, "OPENAI_BASE_URL": f"{base}/v1", "ANTHROPIC_BASE_URL": base})

    async def run(self, caps: Caps = FREE, rows: int = 100) -> Batch:
        tiers, results, gauge = self.tiers(), Results(self.out), Gauge()
        tiers.prices.batch = True
        pipeline = stagewise(load_pipeline(self.pipeline))
        work = Stagewise.of(["cheap", "capable"], tiers, self.folder, self.told.append, gauge.check)
        work.collector.quiet = 0.15
        for service in work.collector.services.values():
            service.most = self.most
        self.hurry(work)
        models = {name: gauge.model(model) for name, model in work.models.items()}
        app = App(tiers.settings, models, price=tiers.prices.price)
        budget, web = Budget(caps, self.folder / "budget.db"), work.watched(self.web)
        try:
            recipe = recipe_of(app, pipeline, web, DATES)
            selection = Selection(Questions(self.file), ALL, results.past, recipe.digest)
            kept = LocalRows(selection, results)
            kept.survey()

            def ask(row: Row, listen: Callable[[Json], None]) -> Any:
                return app.ask(row.question, pipeline, web, DATES, budget=budget, listeners=(listen,))

            made = {"pipeline": pipeline.name, "recipe": recipe.digest, **DATES._asdict()}
            self.batch = Batch(kept, ask, made, gauge, rows, None, steady=True)
            async with work:
                work.begins(budget)
                await self.batch.run()
                work.has_ended(budget)
            results.settle(in_order=False)
        finally:
            self.spent = budget.spent()
            budget.close()
            app.close()
            results.close()
        return self.batch

    def hurry(self, work: Stagewise) -> None:
        """Have it wait by a clock of its own."""

        async def sleep(seconds: float) -> None:
            self.waited += seconds
            await asyncio.sleep(0.01)

        work.collector.watch.sleep = sleep
        work.collector.watch.clock = lambda: self.waited

    def records(self) -> list[Json]:
        return [json.loads(line) for line in self.out.read_text(encoding="utf-8").splitlines()]


SERVICES = {
    "openai-chat": (lambda: OpenAIServer(said), "openai:gpt-4o-mini"),
    "openai-responses": (lambda: OpenAIServer(said, "/v1/responses"), "mine:m"),
    "anthropic": (lambda: AnthropicServer(said), "anthropic:claude-haiku-4-5"),
}
# Nano-dollars of a call of 1,000 tokens in and 10 out, at half of $0.15 and $0.60, $2 and $8, $1 and $5 a million
HALF = {"openai-chat": 78_000, "openai-responses": 1_040_000, "anthropic": 525_000}
HEAVY = pytest.mark.heavy
EITHER = pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
OPENAI = pytest.mark.parametrize("wire", ["openai-chat", pytest.param("anthropic", marks=HEAVY)])  # the plain one
ANTHROPIC = pytest.mark.parametrize("wire", [pytest.param("openai-chat", marks=HEAVY), "anthropic"])


def kept(records: list[Json]) -> dict[str, Any]:
    return {id: {k: v for k, v in one.items() if k != "recipe"} for id, one in content(records).items()}


@pytest.mark.parametrize(
    "wire", [wire if wire == "openai-chat" else pytest.param(wire, marks=HEAVY) for wire in SERVICES]
)
async def test_each_stage_of_all_rows_is_one_batch_at_half_the_price(wire: str, tmp_path: Path) -> None:
    made, model = SERVICES[wire]
    async with made() as server:
        lab = Served(tmp_path / "lab", server, model)
        await lab.run()
        assert server.refusals == []
        sizes = [len(batch.requests) for batch in server.batches.values()]
        assert sizes == [5, 5, 10, 5]  # plan, rerank, two pages each, synthesize
        assert server.paid.total() == 25
        calls = 5  # of each row
        for record in lab.records():
            assert record["state"] == "done"
            assert record["paid"]["usd"] == pytest.approx(calls * HALF[wire] / 1e9)
            assert (record["paid"]["models"], record["paid"]["batched"]) == (calls, calls)
        assert lab.spent == (25 * HALF[wire], 25)
        told = [line for line in lab.told if "10 done, 0 failed of 10" in line]
        assert told
        assert told[-1].lstrip().startswith("extract: batch batch_")
        await lab.run()
        assert server.paid.total() == 25
        plain = Lab(tmp_path, 5)
        await plain.run()
        assert kept(lab.records()) == kept(plain.records())


@OPENAI
async def test_what_fails_or_expires_goes_into_a_next_batch(wire: str, tmp_path: Path) -> None:
    made, model = SERVICES[wire]
    async with made() as server:
        fates: list[Json | None] = [{"gone": "expired"}, {"status": 500, "message": "told"}, None, None, None]
        server.endings.append("expired" if wire == "openai-chat" else "ended")
        order = iter(fates)
        server.fates.append(lambda name, body: next(order))
        lab = Served(tmp_path, server, model)
        await lab.run()
        sizes = [len(batch.requests) for batch in server.batches.values()]
        assert (sizes[:2], len(sizes), sum(sizes)) == ([5, 5], 5, 27)  # two are planned again while three are re-ranked
        assert {record["state"] for record in lab.records()} == {"done"}
        assert server.paid.total() == 25
        assert lab.spent == (25 * HALF[wire], 25)


@HEAVY
@EITHER
async def test_what_fails_again_and_again_ends_as_an_error_and_is_asked_anew_by_the_next_command(
    wire: str, tmp_path: Path
) -> None:
    made, model = SERVICES[wire]
    async with made() as server:

        def fate(name: str, body: Json) -> Json | None:
            return {"status": 529, "message": "overloaded"} if "tower 2?" in json.dumps(body) else None

        server.fates.extend([fate] * 4)
        lab = Served(tmp_path, server, model)
        batch = await lab.run()
        assert batch.tally.errors == {"OverloadedError": 1}
        plans = [json.dumps(body) for one in server.batches.values() for body in one.requests.values()]
        assert sum("tower 2?" in plan and "needs_search" in plan for plan in plans) == 4
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert server.paid.total() == 25
        assert server.twice() == []


@HEAVY
@EITHER
async def test_a_batch_that_is_cancelled_at_the_provider_is_not_sent_again_by_itself(wire: str, tmp_path: Path) -> None:
    made, model = SERVICES[wire]
    async with made() as server:
        cancelled = iter([None, None, {"gone": "cancelled"}, {"gone": "cancelled"}, {"gone": "cancelled"}])
        server.fates.append(lambda name, body: next(cancelled))
        server.endings.append("cancelled" if wire == "openai-chat" else "ended")
        lab = Served(tmp_path, server, model)
        await lab.run()
        states = sorted(record["state"] for record in lab.records())
        assert states == ["done", "done", "failed", "failed", "failed"]
        messages = {record["error"]["message"] for record in lab.records() if record["state"] == "failed"}
        assert messages == {f"{model}: the batch was cancelled before this call was made. Run it again to ask anew."}
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert server.twice() == []
        assert lab.spent == (25 * HALF[wire], 25)


async def test_a_file_that_is_refused_ends_rows_with_the_providers_words(tmp_path: Path) -> None:
    async with OpenAIServer(said) as server:
        server.endings.append("failed")
        lab = Served(tmp_path, server, "openai:gpt-4o-mini")
        await lab.run()
        [message] = {record["error"]["message"] for record in lab.records()}
        assert "line 1: This file was refused." in message
        assert lab.spent == (0, 0)
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}


@HEAVY
async def test_a_full_queue_is_waited_for_with_smaller_batches(tmp_path: Path) -> None:
    async with OpenAIServer(said) as server:
        server.endings.append("failed:token_limit_exceeded")
        lab = Served(tmp_path, server, "openai:gpt-4o-mini", count=4)
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert [len(batch.requests) for batch in server.batches.values()][:3] == [4, 2, 2]
        assert max(len(batch.requests) for batch in [*server.batches.values()][1:]) == 2


@HEAVY
@EITHER
async def test_a_provider_that_fails_while_it_is_looked_at_is_asked_again(wire: str, tmp_path: Path) -> None:
    made, model = SERVICES[wire]
    async with made() as server:
        look = r"GET /v1/(messages/)?batches/batch_\d+$"
        server.faults.extend([
            (look, status(429, headers={"retry-after": "1"})),
            (look, status(503)),
            (look, reset()),
            ("GET /v1/.*(results|content)", reset(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{")),
        ])  # fmt: skip
        lab = Served(tmp_path, server, model)
        await lab.run()
        assert not server.faults
        assert {record["state"] for record in lab.records()} == {"done"}
        assert len(server.batches) == 4
        assert server.paid.total() == 25


@HEAVY
@EITHER
async def test_a_batch_whose_creation_got_no_answer_is_looked_for_before_it_is_sent_again(
    wire: str, tmp_path: Path
) -> None:
    made, model = SERVICES[wire]
    async with made() as server:

        async def created_unheard(writer: asyncio.StreamWriter, request: Any) -> None:
            server.answer(request)
            await reset()(writer, request)

        server.faults.append(("POST /v1/(messages/)?batches$", created_unheard))
        lab = Served(tmp_path, server, model)
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert len(server.batches) == 4
        assert server.twice() == []


@HEAVY
async def test_a_key_that_is_refused_stops_the_batch(tmp_path: Path) -> None:
    made, model = SERVICES["anthropic"]
    async with made() as server:
        server.key = "another-key-0123456789"
        lab = Served(tmp_path, server, model)
        batch = await lab.run()
        assert batch.stop is not None
        assert batch.stop.exit_code == 2
        assert under_way(tmp_path) == []
        assert lab.spent == (0, 0)
        server.key = KEY
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}


@HEAVY
@EITHER
async def test_a_malformed_reply_is_repaired_in_a_further_batch(wire: str, tmp_path: Path) -> None:
    made, model = SERVICES[wire]
    async with made() as server:
        good = server.replies

        def replies(body: Json) -> str:
            turns = body["messages"]
            first = sum(turn["role"] == "assistant" for turn in turns) == 0
            return "I would rather not." if first and '"ranking"' in json.dumps(body) else good(body)

        server.replies = replies
        lab = Served(tmp_path, server, model)
        await lab.run()
        assert server.refusals == []
        assert [len(batch.requests) for batch in server.batches.values()] == [5, 5, 5, 10, 5]
        assert {record["state"] for record in lab.records()} == {"done"}
        assert {record["paid"]["models"] for record in lab.records()} == {6}


@ANTHROPIC
async def test_stopped_while_the_provider_works_the_same_batch_is_taken_up(wire: str, tmp_path: Path) -> None:
    made, model = SERVICES[wire]
    async with made() as server:
        lab = Served(tmp_path, server, model)
        for stage in range(4):
            server.held_from = stage
            running = asyncio.ensure_future(lab.run())
            while len(server.batches) <= stage:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            [sent] = under_way(tmp_path)
            assert any(line.startswith(f"Batch {sent.id} of {model} (") and "goes on" in line for line in lab.told)
        server.held_from = 4
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert len(server.batches) == 4
        assert server.twice() == []
        assert lab.spent == (25 * HALF[wire], 25)


@HEAVY
@EITHER
async def test_under_a_cap_no_more_is_sent_than_it_allows(wire: str, tmp_path: Path) -> None:
    """The worst case of a call is many times what it costs: with room for a few at once, all are asked all the same."""
    made, model = SERVICES[wire]
    async with made() as server:
        lab = Served(tmp_path / "few", server, model)
        usd = {"openai-chat": 4_000_000, "anthropic": 25_000_000}[wire]
        batch = await lab.run(Caps(usd=usd))
        assert batch.stop is None
        assert {record["state"] for record in lab.records()} == {"done"}
        assert lab.spent == (server.paid.total() * HALF[wire], server.paid.total())
        assert server.twice() == []
        assert len(server.batches) > 4
        server.paid.clear()
        lab = Served(tmp_path / "none", server, model)
        batch = await lab.run(Caps(usd=50_000))
        assert batch.stop is not None
        assert batch.stop.exit_code == 5
        assert server.paid.total() == 0


def test_a_loop_of_tools_is_refused_and_so_are_models_that_no_provider_has_in_batches(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="stage investigate of tool-use is a loop of a model and its tools"):
        stagewise(load_pipeline("tool-use"))
    tiers = Tiers(Settings(tmp_path, cheap="builtin:extractive", capable="groq:x"), environment={"GROQ_API_KEY": KEY})
    for tier in ("cheap", "capable"):
        with pytest.raises(UsageError, match="is not to be had in batches here; anthropic and openai are"):
            Stagewise.of([tier], tiers, tmp_path, print)


async def test_what_is_cancelled_by_the_user_is_kept_as_far_as_it_was_done(tmp_path: Path) -> None:
    async with OpenAIServer(said) as server:
        lab = Served(tmp_path, server, "openai:gpt-4o-mini")
        server.held_from = 0
        running = asyncio.ensure_future(lab.run())
        while not server.batches:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        server.held_from = 1_000
        [sent] = under_way(tmp_path)
        work = Stagewise.of([sent.model], lab.tiers(), tmp_path, lab.told.append)
        assert await work.cancel() == 1
        assert server.batches[sent.id].state == "cancelled"
        assert under_way(tmp_path) == []
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert server.paid.total() == 25


@HEAVY
async def test_a_provider_that_hangs_is_left_when_the_command_is_stopped(tmp_path: Path) -> None:
    async with OpenAIServer(said) as server:
        server.faults.append(("POST /v1/files", hang()))
        lab = Served(tmp_path, server, "openai:gpt-4o-mini")
        running = asyncio.ensure_future(lab.run())
        await server.asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await lab.run()
        assert len(server.batches) == 4


@HEAVY
@EITHER
async def test_a_batch_that_was_being_sent_when_the_command_ended_is_found_again(wire: str, tmp_path: Path) -> None:
    made, model = SERVICES[wire]
    async with made() as server:

        async def created_unheard(writer: asyncio.StreamWriter, request: Any) -> None:
            server.answer(request)
            await hang()(writer, request)

        server.faults.append(("POST /v1/(messages/)?batches$", created_unheard))
        lab = Served(tmp_path, server, model)
        running = asyncio.ensure_future(lab.run())
        while not server.batches:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert [sent.id for sent in under_way(tmp_path)] == [""]
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert len(server.batches) == 4
        assert server.twice() == []
        assert lab.spent == (25 * HALF[wire], 25)


@HEAVY
@EITHER
async def test_a_provider_that_takes_no_batch_for_long_ends_the_rows_and_is_asked_anew_by_the_next_command(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, model = SERVICES[wire]
    async with made() as server:
        monkeypatch.setattr("research.llm.batching.watching.PATIENCE", 0.0)
        server.faults.extend([("POST /v1/(messages/)?batches$", status(503))] * 2)
        lab = Served(tmp_path, server, model)
        batch = await lab.run()
        assert batch.tally.errors == {"OverloadedError": 5}
        assert lab.spent == (0, 0)
        server.faults.clear()
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert len(server.batches) == 4
        assert lab.spent == (25 * HALF[wire], 25)


@HEAVY
@pytest.mark.parametrize(("times", "batches"), [(1, 4), (100, 5)])
async def test_a_batch_that_the_provider_does_not_know_is_asked_again_only_after_minutes(
    times: int, batches: int, tmp_path: Path
) -> None:
    async with AnthropicServer(said) as server:
        server.faults.extend([("GET /v1/messages/batches/batch_1$", status(404, "not_found_error"))] * times)
        lab = Served(tmp_path, server, "anthropic:claude-haiku-4-5")
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert any("unknown to the provider" in line for line in lab.told)
        assert len(server.batches) == batches
        assert (lab.waited >= 300) == (batches == 5)
        calls = 25 if batches == 4 else 30  # the five that were given up may have been paid, for all we know
        assert lab.spent[1] == calls
        assert lab.spent[0] >= calls * HALF["anthropic"]


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "empty": lambda data: b"",
    "404": lambda data: None,
    "one less": lambda data: data[data.index(b"\n") + 1 :],
    "cut": lambda data: data[: len(data) * 2 // 3],
}


@HEAVY
@EITHER
@pytest.mark.parametrize("damage", list(DAMAGE))
async def test_results_that_are_not_all_there_are_read_again(damage: str, wire: str, tmp_path: Path) -> None:
    made, model = SERVICES[wire]
    async with made() as server:
        server.spoil = lambda read, data: data if read else DAMAGE[damage](data)
        lab = Served(tmp_path, server, model)
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert (server.reads, len(server.batches), server.twice()) == (5, 4, [])
        assert lab.spent == (25 * HALF[wire], 25)


@pytest.mark.heavy
@OPENAI
async def test_results_that_are_never_there_count_against_the_cap_as_they_may_have_cost(
    wire: str, tmp_path: Path
) -> None:
    made, model = SERVICES[wire]
    async with made() as server:
        server.spoil = lambda read, data: b""
        lab = Served(tmp_path, server, model)
        usd = {"openai-chat": 4_000_000, "anthropic": 25_000_000}[wire]
        for _ in range(4):
            batch = await lab.run(Caps(usd=usd))
        assert batch.stop is not None
        assert batch.stop.exit_code == 5
        assert lab.spent[1] == server.paid.total() > 5
        assert server.paid.total() * HALF[wire] <= lab.spent[0] <= usd


@HEAVY
@EITHER
async def test_a_line_that_is_no_result_costs_no_more_than_its_own_row(wire: str, tmp_path: Path) -> None:
    made, model = SERVICES[wire]
    async with made() as server:

        def spoil(read: int, data: bytes) -> bytes:
            return b"{\n" + data[data.index(b"\n") + 1 :] if read < 2 else data

        server.spoil = spoil
        lab = Served(tmp_path, server, model)
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert server.paid.total() == lab.spent[1] == 26
        assert len(server.twice()) == 1
        assert lab.spent[0] > 26 * HALF[wire]
        assert lab.waited < 60


@HEAVY
async def test_replies_that_broke_on_disk_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(self: Collector) -> None:
        await asyncio.sleep(3_600)

    async with OpenAIServer(said) as server:
        lab = Served(tmp_path, server, "openai:gpt-4o-mini")
        with monkeypatch.context() as patch:
            patch.setattr(Collector, "_hand_over", never)
            running = asyncio.ensure_future(lab.run())
            while not server.reads or under_way(tmp_path):
                await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        with contextlib.closing(sqlite3.connect(tmp_path / "provider.db")) as db:
            db.execute("UPDATE requests SET reply = replace(reply, 'Tower', 'Hotel') || ' ' WHERE number = 1")
            db.commit()
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert any("5 replies" in line and "broken" in line for line in lab.told)
        assert (server.reads, len(server.batches), lab.spent) == (5, 4, (25 * HALF["openai-chat"], 25))


@HEAVY
async def test_where_the_record_can_not_be_kept_the_batch_ends_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreError("the record of batches can't be kept: disk full; check the disk")

    async with OpenAIServer(said) as server:
        lab = Served(tmp_path, server, "openai:gpt-4o-mini")
        monkeypatch.setattr(Kept, "keep", full)
        with pytest.raises(StoreError, match="disk full"):
            await lab.run()
        monkeypatch.undo()
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert server.twice() == []


@HEAVY
async def test_a_stage_too_large_for_one_batch_goes_in_several(tmp_path: Path) -> None:
    async with OpenAIServer(said) as server:
        lab = Served(tmp_path, server, "openai:gpt-4o-mini", most=4)
        await lab.run()
        assert {record["state"] for record in lab.records()} == {"done"}
        assert max(len(batch.requests) for batch in server.batches.values()) == 4
        assert server.paid.total() == 25
