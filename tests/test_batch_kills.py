"""A batch that is killed at any moment, again and again, and started again: as if it had never been killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.batches import content
from tests.commands import environment
from tests.conftest import ROOT

ON_ITS_WAY = 0.05  # seconds for a reply to reach the store


@dataclass(frozen=True)
class Killed:
    """Where a batch stood when it was killed: calls on their way, of those that it had begun."""

    flying: frozenset[str]


def worker(folder: Path, count: int, seconds: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.batch_worker", str(folder), str(count), str(seconds)]
    return subprocess.Popen(command, env=environment(folder), cwd=ROOT)


def lines(folder: Path, since: int = 0) -> list[tuple[str, str, float]]:
    text = (folder / "log").read_bytes()[since:].decode() if (folder / "log").exists() else ""
    return [(what, key, float(at)) for what, key, at in (line.split() for line in text.splitlines())]


def killed(folder: Path, count: int, after: float) -> Killed | None:
    """Runs the batch for `after` seconds from its first call on, and kills it; None if it came to its end before."""
    log = folder / "log"
    since = log.stat().st_size if log.exists() else 0
    process = worker(folder, count, 0.02)
    until = time.monotonic() + 60
    while process.poll() is None and (not log.exists() or log.stat().st_size == since):
        assert time.monotonic() < until
        time.sleep(0.005)
    time.sleep(after)
    process.kill()
    if process.wait() == 0:
        return None
    seen = lines(folder, since)
    last = max((at for _, _, at in seen), default=0.0)
    ended = {key for what, key, at in seen if what == "end" and at < last - ON_ITS_WAY}
    return Killed(frozenset(key for what, key, _ in seen if what == "begin" and key not in ended))


def run(folder: Path, count: int) -> list[dict[str, Any]]:
    assert worker(folder, count, 0.0).wait(timeout=600) == 0
    return [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def check(folder: Path, count: int, kills: int, longest: float, seed: int) -> None:
    chance = random.Random(seed)
    (folder / "killed").mkdir()
    (folder / "clean").mkdir()
    deaths = [killed(folder / "killed", count, chance.uniform(0.0, longest)) for _ in range(kills)]
    died = [death for death in deaths if death is not None]
    assert len(died) >= 0.9 * kills, "it came to its end too soon for so many kills"
    records = run(folder / "killed", count)
    assert Counter(record["id"] for record in records) == Counter(f"q{number}" for number in range(count))
    assert content(records) == content(run(folder / "clean", count))
    begun = Counter(key for what, key, _ in lines(folder / "killed") if what == "begin")
    clean = Counter(key for what, key, _ in lines(folder / "clean") if what == "begin")
    assert set(clean.values()) == {1}
    assert begun.keys() == clean.keys()
    flying = Counter(key for death in died for key in death.flying)
    twice = Counter({key: times - 1 for key, times in begun.items() if times > 1})
    assert not twice - flying, "a finished call was paid again"
    assert twice.total() <= flying.total()


def test_killed_a_few_times(tmp_path: Path) -> None:
    check(tmp_path, count=60, kills=3, longest=0.4, seed=1)


@pytest.mark.heavy
def test_killed_a_hundred_times_in_two_thousand_rows(tmp_path: Path) -> None:
    check(tmp_path, count=2_000, kills=100, longest=0.6, seed=2)
