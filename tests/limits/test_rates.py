"""Lanes that several processes share."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from research.limits.rates import Rates
from tests.conftest import ROOT
from tests.providers import Time

CALLER = """
import asyncio, sys, time
from pathlib import Path
from research.limits.rates import Rates

async def main(folder, count):
    lane = Rates(Path(folder), window=3.0).lane("one", requests=120)
    for _ in range(count):
        slot = await lane.enter(0)
        assert time.monotonic() >= slot.when
        print(slot.when, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@pytest.mark.heavy
def test_processes_share_a_limit(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CALLER, str(tmp_path), "60"]
    callers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    times = sorted(float(line) for caller in callers for line in caller.communicate(timeout=60)[0].split())
    assert len(times) == 180
    most = max(sum(begin <= at < begin + 3.0 for at in times) for begin in times)
    assert most <= 120
    assert times[-1] - times[0] <= 180 / 40 * 1.3


async def test_a_refusal_pauses_all_processes(tmp_path: Path) -> None:
    clock = Time()
    one = Rates(tmp_path, clock=clock, sleep=clock.sleep).lane("x")
    other = Rates(tmp_path, clock=clock, sleep=clock.sleep).lane("x")
    elsewhere = Rates(tmp_path, clock=clock, sleep=clock.sleep).lane("y")
    slot = await one.enter(10)
    one.refused(slot, 7.0, {})
    assert (await elsewhere.enter(10)).when == 1_000.0
    assert 1_007 <= (await other.enter(10)).when <= 1_008


async def test_one_that_sleeps_when_a_pause_is_made_waits_for_its_end(tmp_path: Path) -> None:
    rates = Rates(tmp_path, window=3.0)
    lane = rates.lane("x", requests=30)
    slots = [await lane.enter(0) for _ in range(8)]
    waiting = asyncio.create_task(lane.enter(0))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    lane.refused(slots[0], 0.5, {})
    refused = time.monotonic()
    await waiting
    assert time.monotonic() - refused >= 0.5


async def test_one_that_is_cancelled_gives_its_slot_back(tmp_path: Path) -> None:
    rates = Rates(tmp_path)
    lane = rates.lane("x", tokens=1_000)
    await lane.enter(900)
    waiting = asyncio.create_task(lane.enter(900))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (await asyncio.wait_for(lane.enter(90), 1)).tokens == 90


@pytest.mark.parametrize("shared", [True, False])
async def test_no_more_at_once_than_allowed(tmp_path: Path, shared: bool) -> None:
    folder = tmp_path if shared else None
    lanes = (
        [Rates(folder).lane("x", at_once=3)] * 2 if not shared else [Rates(folder).lane("x", at_once=3) for _ in "ab"]
    )
    inside, most = 0, 0

    async def call(number: int) -> None:
        nonlocal inside, most
        async with lanes[number % 2].place():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1

    await asyncio.wait_for(asyncio.gather(*(call(number) for number in range(12))), 20)
    assert most == 3


async def test_a_folder_that_cannot_be_written_limits_this_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lane = Rates(tmp_path / "file" / "below").lane("x", requests=5)
    assert (await lane.enter(1)).tokens == 1


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + bytes(2_000)])
async def test_a_broken_file_limits_this_process(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rates.db").write_bytes(content)
    lane = Rates(tmp_path).lane("x", requests=5)
    assert (await lane.enter(1)).tokens == 1


async def test_a_file_that_breaks_while_it_is_used(tmp_path: Path) -> None:
    rates = Rates(tmp_path)
    lane = rates.lane("x")
    await lane.enter(1)
    rates._opened().execute("DROP TABLE lanes")
    lane.admitted({})
    assert (await lane.enter(1)).tokens == 1


async def test_a_state_of_another_version_is_begun_anew(tmp_path: Path) -> None:
    rates = Rates(tmp_path)
    lane = rates.lane("x", requests=1_000)
    await lane.enter(1)
    rates._opened().execute("UPDATE lanes SET state = ?", ('{"colour": "blue"}',))
    assert (await lane.enter(1)).tokens == 1


def test_the_file_tells_no_key(tmp_path: Path) -> None:
    rates = Rates(tmp_path)
    asyncio.run(rates.lane("anthropic https://host canary-key-123").enter(1))
    rates.close()
    assert all(b"canary" not in file.read_bytes() for file in tmp_path.iterdir())
