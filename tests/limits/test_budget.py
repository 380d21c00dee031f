"""Caps: never passed, whatever runs at once."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from research.errors import BudgetError, StoreError, UsageError
from research.limits.budget import NANO, Budget, Caps, Hold, Purse
from tests.conftest import ROOT

CENT = NANO // 100


@pytest.mark.parametrize(
    ("words", "caps"),
    [
        (("0.50", None, None), Caps(usd=500_000_000)),
        (("$1", "20", "90"), Caps(NANO, 20, 90.0)),
        (("0", "0", "1.5s"), Caps(0, 0, 1.5)),
        ((".000000001", None, None), Caps(usd=1)),
        (("none", "None", "none"), Caps()),
        ((None, None, None), Caps()),
    ],
)
def test_caps_as_people_write_them(words: tuple[str | None, ...], caps: Caps) -> None:
    assert Caps.parse(*words) == caps


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "1,50", "1e3", "", " ", "0x1", "1 000", "٣", "1.0000000001"])
def test_what_is_no_cap(text: str) -> None:
    for number in range(3):
        words: list[str | None] = [None, None, None]
        words[number] = text
        with pytest.raises(UsageError, match="--") as caught:
            Caps.parse(*words)
        assert caught.value.exit_code == 2


def test_calls_are_whole() -> None:
    with pytest.raises(UsageError, match="--max-calls"):
        Caps.parse(None, "1.5")


async def test_fifty_at_once_under_a_dollar() -> None:
    budget = Budget(Caps(usd=NANO))
    sent, chance = [], random.Random(5)

    async def call() -> None:
        try:
            hold, _ = budget.reserve(3 * CENT)
        except BudgetError:
            return
        sent.append(3 * CENT)
        await asyncio.sleep(chance.random() / 100)
        hold.settle(3 * CENT)

    await asyncio.gather(*(call() for _ in range(50)))
    assert len(sent) == 33
    assert budget.spent() == (99 * CENT, 33)
    with pytest.raises(BudgetError, match=r"would pass --max-usd 1, of which \$0.99 is spent"):
        budget.reserve(3 * CENT)
    budget.reserve(CENT)[0].settle(CENT)
    with pytest.raises(BudgetError):
        budget.reserve(1)


def test_what_is_not_used_is_free_again() -> None:
    budget = Budget(Caps(usd=3 * CENT))
    first = budget.reserve(3 * CENT)[0]
    with pytest.raises(BudgetError):
        budget.reserve(CENT)
    first.settle(CENT)
    first.settle(CENT)  # a second time does nothing
    first.release()
    budget.reserve(2 * CENT)[0].release()
    budget.reserve(2 * CENT)[0].settle(2 * CENT)
    assert budget.spent() == (3 * CENT, 2)


def test_a_reply_that_reports_more_than_was_reserved() -> None:
    budget = Budget(Caps(usd=10 * CENT))
    budget.reserve(CENT)[0].settle(12 * CENT)
    assert budget.spent() == (12 * CENT, 1)
    with pytest.raises(BudgetError):
        budget.reserve(0 + 1)


def test_nothing_means_no_paid_call() -> None:
    budget = Budget(Caps(usd=0))
    budget.reserve(0)[0].settle(0)
    with pytest.raises(BudgetError):
        budget.reserve(1)
    with pytest.raises(BudgetError, match=r"0 of --max-calls 0 are used or reserved"):
        Budget(Caps(calls=0)).reserve(0)


def test_calls_are_counted_as_money_is() -> None:
    budget = Budget(Caps(calls=2))
    holds = [budget.reserve(0)[0] for _ in range(2)]
    with pytest.raises(BudgetError, match="2 of --max-calls 2"):
        budget.reserve(0)
    holds[0].release()
    budget.reserve(0)[0].settle(0)


def purse(budget: Budget, usd: int = 4 * CENT, calls: int = 1) -> Purse:
    return Purse(budget, lambda: (usd, calls))


async def spend(purse: Purse, most: int, cost: int, answering: bool = False) -> None:
    (await purse.reserve(lambda: most, answering=answering)).settle(cost)


async def test_the_answers_share_is_kept() -> None:
    own = purse(Budget(Caps(usd=10 * CENT)))
    await spend(own, 3 * CENT, 3 * CENT)
    await spend(own, 3 * CENT, 3 * CENT)
    with pytest.raises(BudgetError, match=r"\$0.1 is spent or reserved"):
        await own.reserve(lambda: 1)
    await spend(own, 4 * CENT, CENT, answering=True)
    await spend(own, 3 * CENT, CENT, answering=True)
    with pytest.raises(BudgetError):
        await own.reserve(lambda: 3 * CENT, answering=True)
    assert own.budget.spent() == (8 * CENT, 4)


async def test_shares_of_several_runs_add_up_and_end_with_them() -> None:
    budget = Budget(Caps(usd=10 * CENT))
    one, other = purse(budget), purse(budget)
    await spend(one, CENT, CENT)
    await spend(other, CENT, CENT)
    with pytest.raises(BudgetError):
        await one.reserve(lambda: CENT)
    other.close()
    other.close()
    await spend(one, 4 * CENT, 0)


async def test_a_share_is_set_aside_with_the_first_call_only() -> None:
    own = purse(Budget(Caps(usd=CENT)))
    own.close()
    with pytest.raises(BudgetError, match=r"\$0.04 kept for the answer"):
        await own.reserve(lambda: 0)
    assert own.budget.spent() == (0, 0)
    await own.reserve(lambda: CENT, answering=True)


async def test_what_forbids_any_call_is_told_before_the_first() -> None:
    def plan() -> tuple[int, int]:
        raise UsageError("the price is unknown")

    own = Purse(Budget(Caps(usd=NANO)), plan)
    with pytest.raises(UsageError):
        await own.reserve(lambda: 1 // 0)


async def test_who_is_refused_waits_for_what_may_turn_out_cheaper() -> None:
    budget = Budget(Caps(usd=10 * CENT))
    one, other = purse(budget, 0, 0), purse(budget, 0, 0)
    hold = await one.reserve(lambda: 8 * CENT)
    waiting = asyncio.create_task(other.reserve(lambda: 5 * CENT))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    hold.settle(2 * CENT)
    (await asyncio.wait_for(waiting, 2)).settle(5 * CENT)
    last = await one.reserve(lambda: 3 * CENT)
    waiting = asyncio.create_task(other.reserve(lambda: 5 * CENT))
    with pytest.raises(BudgetError):  # at once: it would not fit even if that cost nothing
        await asyncio.wait_for(waiting, 2)
    last.release()


async def test_a_deadline_ends_a_run() -> None:
    with pytest.raises(BudgetError, match=r"no answer within --deadline 0.05 s"):
        async with Purse(Budget(Caps(seconds=0.05))).deadline():
            await asyncio.sleep(5)
    with pytest.raises(TimeoutError):
        async with Purse(Budget(Caps(seconds=5.0))).deadline():
            raise TimeoutError
    async with Purse(Budget(Caps())).deadline():
        pass


def test_time_is_held_back_for_the_answer() -> None:
    now = 100.0
    own = Purse(Budget(Caps(seconds=40.0)), clock=lambda: now)
    assert own.seconds_left() == 30.0
    assert own.seconds_left(answering=True) == 40.0
    now = 135.0
    assert own.seconds_left() == 0.0
    assert own.seconds_left(answering=True) == 5.0
    assert Purse(Budget(Caps(seconds=600.0)), clock=lambda: now).seconds_left() == 570.0
    assert Purse(Budget(Caps())).seconds_left() is None


def test_an_account_that_cannot_be_kept_lets_nothing_through(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        Budget(Caps(usd=NANO), tmp_path / "file" / "budget.db").reserve(1)


def test_what_a_process_that_died_had_reserved_counts_as_spent(tmp_path: Path) -> None:
    file = tmp_path / "budget.db"
    code = (
        "import asyncio, os, sys; from pathlib import Path; from research.limits.budget import *\n"
        f"purse = Purse(Budget(Caps(usd={10 * CENT}), Path(sys.argv[1])), lambda: ({4 * CENT}, 1))\n"
        f"asyncio.run(purse.reserve(lambda: {CENT})).settle({CENT})\n"
        f"asyncio.run(purse.reserve(lambda: {2 * CENT}))\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(file)], cwd=ROOT, timeout=60)
    budget = Budget(Caps(usd=10 * CENT), file)
    assert budget.spent() == (3 * CENT, 2)
    budget.reserve(7 * CENT)


SPENDER = """
import os, random, sys, time
from pathlib import Path
from research.errors import BudgetError
from research.limits.budget import Budget, Caps

file, log, cap, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
budget, chance = Budget(Caps(usd=cap), file), random.Random(seed)
out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
refused = 0
while refused < 3:
    most = chance.randint(1, 400)
    try:
        hold, _ = budget.reserve(most)
    except BudgetError:
        refused += 1
        continue
    os.write(out, f"sent {seed} {most}\\n".encode())
    time.sleep(chance.random() / 500)
    cost = chance.randint(0, most)
    os.write(out, f"done {seed} {most} {cost}\\n".encode())
    hold.settle(cost)
"""


@pytest.mark.heavy
def test_thirty_two_processes_never_pass_the_cap(tmp_path: Path) -> None:
    file, log, cap = tmp_path / "budget.db", tmp_path / "log", 60_000
    command = [sys.executable, "-c", SPENDER, str(file), str(log), str(cap)]
    spenders = [subprocess.Popen([*command, str(seed)], cwd=ROOT) for seed in range(32)]
    assert [spender.wait(timeout=120) for spender in spenders] == [0] * 32
    settled = reserved = sent = 0
    for line in log.read_text().splitlines():
        what, _, most, *cost = line.split()
        if what == "sent":
            sent += 1
            reserved += int(most)
            assert settled + reserved <= cap, "a call was sent that could pass the cap"
        else:
            reserved -= int(most)
            settled += int(cost[0])
    assert reserved == 0
    assert sent > 200
    assert Budget(Caps(usd=cap), file).spent() == (settled, sent)
    assert settled > cap - 400, "almost all of it was used"


def test_a_hold_without_an_end_stays_reserved() -> None:
    budget = Budget(Caps(usd=2))
    hold, _ = budget.reserve(2)
    assert isinstance(hold, Hold)
    with pytest.raises(BudgetError):
        budget.reserve(1)


def test_what_is_entrusted_outlives_its_process_and_is_settled_once(tmp_path: Path) -> None:
    file, caps = tmp_path / "budget.db", Caps(usd=10 * CENT, calls=10)
    first = Budget(caps, file)
    first.reserve(4 * CENT, name="a-1")
    hold, _ = first.reserve(4 * CENT, name="b-1")
    hold.settle(1 * CENT)
    first.close()
    budget = Budget(caps, file)
    assert budget.spent() == (1 * CENT, 1)
    with pytest.raises(BudgetError):
        budget.reserve(6 * CENT)
    assert budget.may_free(6 * CENT, (0, 0))
    for _ in range(2):  # asked for again, by whoever takes the work up
        hold, _ = budget.reserve(4 * CENT, share=(9 * CENT, 1), name="a-1")
        hold.settle(2 * CENT)
        hold, _ = budget.reserve(4 * CENT, name="b-1")
        hold.settle(1 * CENT)
    assert budget.spent() == (3 * CENT, 2)
    budget.reserve(7 * CENT, name="never-sent")
    budget.tidy({"a-1"})
    hold, _ = budget.reserve(7 * CENT, name="c-1")
    hold.release()
    hold, _ = budget.reserve(7 * CENT, name="b-1")
    hold.settle(7 * CENT)
    assert budget.spent() == (10 * CENT, 3)
    budget.close()
