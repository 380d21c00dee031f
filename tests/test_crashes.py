"""Many at once, and killed at any moment: each piece of work is done once, and none that was finished is lost."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from research.runs import Runs
from tests.commands import environment
from tests.conftest import ROOT


def worker(home: Path, log: Path, times: int, seconds: float, name: str = "fixed") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.crash_worker", str(home), str(log), str(times), str(seconds), name]
    return subprocess.Popen(command, env=environment(home), cwd=ROOT, stdout=subprocess.PIPE, text=True)


def answers(processes: list[subprocess.Popen[str]]) -> list[str]:
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    return [line for output in outputs for line in output.split()]


@pytest.mark.parametrize("processes", [1, 8])
def test_a_hundred_identical_questions_do_each_piece_of_work_once(tmp_path: Path, processes: int) -> None:
    (tmp_path / "home").mkdir()
    log = tmp_path / "log"
    crowd = [worker(tmp_path / "home", log, -(-100 // processes), 0.02) for _ in range(processes)]
    told = answers(crowd)
    assert len(told) >= 100
    assert len(set(told)) == 1
    counted = Counter(log.read_text().splitlines())
    assert counted
    assert set(counted.values()) == {1}
    assert {line.split()[0] for line in counted} == {"plan", "search", "rerank", "fetch", "extract", "synthesize"}


def _killed_and_resumed(folder: Path, kills: int, seed: int, name: str = "fixed") -> tuple[int, int]:
    """Kills a run `kills` times at random moments, then lets it end; gives calls made, and distinct ones."""
    home, log = folder / "home", folder / "log"
    home.mkdir()
    chance = random.Random(seed)
    for _ in range(kills):
        process = worker(home, log, 1, 0.03, name)
        time.sleep(chance.uniform(0.2, 1.1))
        process.kill()
        process.communicate()
    [answer] = answers([worker(home, log, 1, 0.0, name)])
    (folder / "clean").mkdir()
    assert answers([worker(folder / "clean", folder / "other", 1, 0.0, name)]) == [answer]
    made = Counter(
        line["key"] for run in Runs(home / "runs").newest_first() for line in run.journal() if line["event"] == "made"
    )
    assert set(made.values()) == {1}, "a finished stage was made again"
    counted = Counter(log.read_text().splitlines())
    return counted.total(), len(counted)


def test_killed_a_few_times(tmp_path: Path) -> None:
    total, distinct = _killed_and_resumed(tmp_path, 3, seed=1)
    assert total - distinct <= 3 * 5  # at a kill, at most 4 pages and the re-ranking are in flight


def test_a_loop_killed_a_few_times_pays_no_finished_turn_again(tmp_path: Path) -> None:
    total, distinct = _killed_and_resumed(tmp_path, 3, seed=2, name="tool-use")
    assert total - distinct <= 3 * 3  # at a kill, at most the calls of one turn are in flight


@pytest.mark.heavy
def test_killed_fifty_times(tmp_path: Path) -> None:
    for seed in range(10):
        (tmp_path / str(seed)).mkdir()
        total, distinct = _killed_and_resumed(tmp_path / str(seed), 5, seed)
        assert total - distinct <= 5 * 5


def test_signals_end_a_run_cleanly(tmp_path: Path) -> None:
    import os
    import signal

    from tests.commands import QUESTION, RUN

    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        home = tmp_path / number.name
        home.mkdir()
        slow = "import asyncio, research.web.index.local as local\n"
        slow += "async def never(*_): await asyncio.sleep(60)\nlocal.LocalWeb.fetch = never\n"
        command = [sys.executable, "-c", slow + RUN[2], "ask", "--offline", QUESTION]
        errors = tmp_path / f"{number.name}.err"
        with open(errors, "wb") as file:
            process = subprocess.Popen(command, env=environment(home), stdout=subprocess.PIPE, stderr=file, text=True)
        while "rerank: made" not in errors.read_text():
            assert process.poll() is None
            time.sleep(0.02)
        began = time.monotonic()
        os.kill(process.pid, number)
        out, _ = process.communicate(timeout=20)
        err = errors.read_text()
        assert process.returncode == code, err
        assert time.monotonic() - began < 2 + 1
        assert out == ""
        assert "Traceback" not in err
        assert "takes it up again" in err
        [run] = Runs(home / "runs").newest_first()
        assert run.journal()[-1]["event"] == "ended"
        assert run.journal()[-1]["error"] == "stopped"


def test_ids_sort_whatever_the_clock_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime, timedelta

    import research.runs

    class Clock(datetime):
        times = iter([0, 10, -3600, 5, 5, 86400, -86400])

        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime(2025, 3, 30, 2, 0, tzinfo=UTC) + timedelta(seconds=next(cls.times))

    monkeypatch.setattr(research.runs, "datetime", Clock)
    runs = Runs(tmp_path)
    ids = [runs.start({}).id for _ in range(4)]
    ids += [Runs(tmp_path).start({}).id for _ in range(3)]  # another process
    assert ids == sorted(ids)
    assert len(set(ids)) == 7
