"""`research batch --provider-batch` as a user meets it: what it tells, signals, kills, refusals, cancelling."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.batch_services import AnthropicServer
from tests.commands import RUN, environment, research
from tests.providers import KEY
from tests.test_provider_batches import HALF, said

MODEL = "anthropic:claude-haiku-4-5"
ONE_STAGE = ("-p", "closed-book", "--offline")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    lines = [{"question": f"How tall is tower {number}?"} for number in range(3)]
    (tmp_path / "questions.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return tmp_path


class Command:
    """The command on one results file, against a server of this process."""

    def __init__(self, home: Path, server: AnthropicServer, *more: str) -> None:
        self.home = home
        self.server = server
        self.arguments = [
            "batch",
            "questions.jsonl",
            "-o",
            "results.jsonl",
            "--capable",
            MODEL,
            "--cheap",
            MODEL,
            *more,
        ]
        self.settings = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url("")}

    async def begin(self, *more: str) -> asyncio.subprocess.Process:
        pipe = subprocess.PIPE
        command = [*RUN, *self.arguments, *more]
        return await asyncio.create_subprocess_exec(
            *command, env=environment(self.home, **self.settings), cwd=self.home, stdout=pipe, stderr=pipe
        )

    async def run(self, *more: str) -> tuple[int, str, str]:
        done = await asyncio.to_thread(research, self.home, *self.arguments, *more, **self.settings)
        return done.returncode, done.stdout, done.stderr

    async def until(self, batches: int) -> None:
        """So many have been created at the provider, and the last has been looked at."""
        async with asyncio.timeout(60):
            while len(self.server.batches) < batches or f"/batch_{batches}" not in self.server.requests[-1].path:
                await asyncio.sleep(0.01)

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.home / "results.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.heavy
async def test_stopped_it_says_how_to_go_on_and_what_is_under_way_is_never_paid_twice(home: Path) -> None:
    async with AnthropicServer(said) as server:
        command = Command(home, server, *ONE_STAGE)
        server.held_from = 0
        process = await command.begin("--provider-batch", "--max-usd", "1")
        await command.until(1)
        process.send_signal(signal.SIGTERM)
        _, told = await process.communicate()
        assert process.returncode == 143
        how = "the same command takes it up again, --cancel-provider-batch cancels it"
        assert f"Batch batch_1 of {MODEL} (recall) goes on: {how}" in told.decode()
        code, _, words = await command.run("--max-usd", "1")
        assert (code, "a provider works on batch_1" in words) == (2, True)
        server.held_from = 1_000
        code, out, words = await command.run("--provider-batch", "--max-usd", "1", "--json")
        assert code == 0, words
        assert "recall: batch batch_1 of anthropic:claude-haiku-4-5: ended, 3 done, 0 failed of 3" in words
        assert json.loads(out)["paid_usd"] == pytest.approx(3 * HALF["anthropic"] / 1e9)
        assert [len(server.batches), server.paid.total()] == [1, 3]
        assert {record["paid"]["batched"] for record in command.records()} == {1}


@pytest.mark.heavy
async def test_a_batch_can_be_cancelled(home: Path) -> None:
    async with AnthropicServer(said) as server:
        command = Command(home, server, *ONE_STAGE)
        server.held_from = 0
        process = await command.begin("--provider-batch", "--yes")
        await command.until(1)
        process.send_signal(signal.SIGINT)
        await process.communicate()
        assert process.returncode == 130
        server.held_from = 1_000
        code, _, told = await command.run("--cancel-provider-batch")
        assert (code, "1 cancelled. What was done before" in told) == (0, True), told
        code, _, told = await command.run("--cancel-provider-batch")
        assert (code, "no provider works on a batch for it" in told) == (0, True), told
        assert server.paid.total() == 0
        code, _, told = await command.run("--provider-batch", "--yes")
        assert code == 0, told
        assert server.paid.total() == 3


def test_what_can_not_go_in_batches_is_refused_with_the_reason(home: Path) -> None:
    command = ["batch", "questions.jsonl", "-o", "results.jsonl", "--offline", "--provider-batch"]
    for more, why in (
        (("-p", "tool-use", "--cheap", MODEL), "stage investigate of tool-use is a loop of a model and its tools"),
        (("--cheap", "groq:x"), "groq:x is not to be had in batches here"),
        ((), "builtin:extractive is not to be had in batches here"),
        (("--cheap", MODEL, "--deadline", "90"), "the deadline of 90 s a row (flag --deadline) can't be kept"),
    ):
        keys = {"GROQ_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY} if more else {}
        done = research(home, *command, *more, **keys)
        assert (done.returncode, why in done.stderr) == (2, True), done.stderr


def test_a_dry_run_tells_half_the_cost(home: Path) -> None:
    command = ["batch", "questions.jsonl", "-o", "results.jsonl", "--offline", "--dry-run", "--cheap", MODEL]
    whole, half = (research(home, *command, "--capable", MODEL, *more) for more in ((), ("--provider-batch",)))
    costs = [float(done.stdout.rpartition("at worst $")[2].split()[0]) for done in (whole, half)]
    assert costs[1] == pytest.approx(costs[0] / 2, abs=0.01)


@pytest.mark.heavy
async def test_killed_in_every_stage_nothing_is_paid_twice(home: Path) -> None:
    notes = home / "notes"
    notes.mkdir()
    for number in range(3):
        (notes / f"tower-{number}.md").write_text(f"# Tower {number}\n\nTower {number} is {number} metres tall.\n")
    assert research(home, "index", "build", "notes", "--name", "notes").returncode == 0
    async with AnthropicServer(said) as server:
        command = Command(home, server, "--search", "local:notes", "--max-usd", "1")
        for stage in range(1, 5):
            server.held_from = stage - 1
            process = await command.begin("--provider-batch")
            await command.until(stage)
            process.kill()
            await process.wait()
        server.held_from = 1_000
        code, _, told = await command.run("--provider-batch")
        assert code == 0, told
        assert {record["state"] for record in command.records()} == {"done"}
        assert len(server.batches) == 4
        assert server.twice() == []
        [budget] = (home / "batches").glob("*/budget.db")
        with sqlite3.connect(budget) as account:
            spent = account.execute("SELECT usd, calls FROM settled").fetchone()
        assert spent == (server.paid.total() * HALF["anthropic"], server.paid.total())


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1, 2])
async def test_killed_at_random_nothing_is_paid_twice(seed: int, home: Path) -> None:
    """The pace of the command is that of its looks at the batches, so that kills meet all that it does."""
    chance = random.Random(seed)
    async with AnthropicServer(said) as server:
        command = Command(home, server, *ONE_STAGE, "--max-usd", "1", "--provider-batch")
        for _ in range(12):
            process = await command.begin()
            await asyncio.sleep(chance.uniform(0.6, 2.6))
            if process.returncode is not None:
                break
            process.kill()
            await process.wait()
        code, _, told = await command.run()
        assert code == 0, told
        assert {record["state"] for record in command.records()} == {"done"}
        assert (len(server.batches), server.paid.total(), server.twice()) == (1, 3, [])
