"""Comparisons: interleaved, resumable, paid once, each sample its own; and the figures that come of them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from research.compare import distinct
from research.pipeline import Pipeline
from research.report.rendering import made, rendered
from tests.commands import RUN, environment, research
from tests.comparisons import Comparison, towers
from tests.conftest import ROOT
from tests.shipped import copied

FIXTURES = ROOT / "fixtures" / "questions.jsonl"


@pytest.fixture
def pipelines(tmp_path: Path) -> list[Pipeline]:
    return [copied(tmp_path / name, name) for name in ("fixed", "snippets", "tool-use")]


async def test_turns_are_interleaved_and_each_begins_with_another_side(
    tmp_path: Path, pipelines: list[Pipeline]
) -> None:
    comparison = Comparison(tmp_path, pipelines, towers(2), repeats=2)
    await comparison.run()
    assert comparison.asked == [
        ("q0", "fixed", 0), ("q0", "snippets", 0), ("q0", "tool-use", 0),
        ("q0", "snippets", 1), ("q0", "tool-use", 1), ("q0", "fixed", 1),
        ("q1", "snippets", 0), ("q1", "tool-use", 0), ("q1", "fixed", 0),
        ("q1", "tool-use", 1), ("q1", "fixed", 1), ("q1", "snippets", 1),
    ]  # fmt: skip


async def test_samples_are_independent_and_the_web_is_asked_once(tmp_path: Path, pipelines: list[Pipeline]) -> None:
    comparison = Comparison(tmp_path, pipelines[:1], towers(1), repeats=3)
    await comparison.run()
    assert comparison.calls["plan"] == comparison.calls["rerank"] == comparison.calls["synthesize"] == 3
    assert comparison.calls["search"] == 2
    assert comparison.calls["fetch"] == 6


async def test_a_second_run_pays_nothing_and_reports_the_same(tmp_path: Path, pipelines: list[Pipeline]) -> None:
    comparison = Comparison(tmp_path, pipelines, towers(3), repeats=2)
    await comparison.run()
    first = made(comparison.gathered(), _free, {}, "2025-03-01")
    tally = await comparison.run()
    assert not comparison.calls
    assert (tally.ended, tally.usd) == (0, 0)
    again = made(comparison.gathered(), _free, {}, "2025-03-02")
    for suffix in (".html", ".md", ".json", ".csv"):
        assert rendered(again, suffix).replace("2025-03-02", "2025-03-01") == rendered(first, suffix)


async def test_without_its_notes_it_is_made_of_the_store_at_the_same_cost_as_if_cold(
    tmp_path: Path, pipelines: list[Pipeline]
) -> None:
    comparison = Comparison(tmp_path, pipelines, towers(3))
    await comparison.run()
    first = made(comparison.gathered(), _free, {}).figures
    comparison.file.unlink()
    await comparison.run()
    assert not comparison.calls
    again = made(comparison.gathered(), _free, {}).figures
    for before, after in zip(first.arms, again.arms, strict=True):
        assert (before.usd, before.seconds, before.calls, before.quality) == (
            after.usd,
            after.seconds,
            after.calls,
            after.quality,
        )
        assert before.usd is not None
        assert before.usd.mean > 0
        assert before.paid > 0
        assert after.paid == 0
        assert after.measured is None, "what reused anything has no measured time"


async def test_a_run_that_made_everything_is_measured(tmp_path: Path, pipelines: list[Pipeline]) -> None:
    comparison = Comparison(tmp_path, pipelines[:2], towers(1))
    await comparison.run()
    fixed, snippets = made(comparison.gathered(), _free, {}).figures.arms
    assert fixed.measured is not None
    assert snippets.measured is None, "it took up the plan and the searches of fixed"


async def test_failed_runs_are_listed_and_run_again(tmp_path: Path, pipelines: list[Pipeline]) -> None:
    from research.errors import ProviderError
    from tests.shipped import reply

    def failing(request: object) -> object:
        if request.purpose == "synthesize" and "tower 1" in request.given["question"]:  # type: ignore[attr-defined]
            return ProviderError("no")
        return reply(request)  # type: ignore[arg-type]

    comparison = Comparison(tmp_path, pipelines[:2], towers(3), capable=failing)
    tally = await comparison.run()
    assert tally.errors == {"ProviderError": 2}
    found = made(comparison.gathered(), _free, {}).figures
    assert [(trial.question, trial.pipeline) for trial in found.failed] == [("q1", "fixed"), ("q1", "snippets")]
    comparison.capable = reply
    assert (await comparison.run()).ended == 2
    assert not made(comparison.gathered(), _free, {}).figures.failed


async def test_another_recipe_does_not_pass_for_the_same(tmp_path: Path, pipelines: list[Pipeline]) -> None:
    from research.batch import OtherRecipeError

    comparison = Comparison(tmp_path, pipelines[:2], towers(2))
    await comparison.run()
    comparison.pipelines = [copied(tmp_path / "other", "fixed", synthesize_md=("You ", "You now ")), pipelines[1]]
    with pytest.raises(OtherRecipeError):
        await comparison.run()


def test_two_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    names = [pipeline.name for pipeline in distinct(copied(tmp_path / name, "fixed") for name in "ab")]
    assert names == ["fixed", "fixed (2)"]


def _free(_name: str, _usage: object) -> int:
    return 0


def command(folder: Path, *more: str) -> list[str]:
    report = str(folder / "report.json")
    return ["compare", str(FIXTURES), "--offline", "-p", "top-n", "-p", "snippets", "-o", report, *more]


def records(folder: Path) -> list[dict[str, object]]:
    file = folder / "report.runs.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_one_command_compares_over_the_sample_web(tmp_path: Path) -> None:
    arguments = command(tmp_path, "--limit", "3", "-o", str(tmp_path / "report.html"))
    first = research(tmp_path, *arguments)
    assert first.returncode == 0, first.stderr
    assert "top-n, snippets over the sample web, as of " in first.stderr
    assert "3 questions through top-n and snippets: 6 runs; none failed." in first.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert [arm["runs"] for arm in report["pipelines"]] == [3, 3]
    assert report["setup"]["command"].startswith("research compare")
    page = (tmp_path / "report.html").read_text()
    again = research(tmp_path, *arguments)
    assert again.returncode == 0
    assert "0 are left" in again.stderr
    assert (tmp_path / "report.html").read_text() == page
    made_of = research(tmp_path, "report", str(tmp_path / "report.runs.jsonl"), "-o", str(tmp_path / "other.html"))
    assert made_of.returncode == 0, made_of.stderr
    assert (tmp_path / "other.html").read_text() == page


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-p", "fixed", "-o", "r.html"], "two pipelines"),
        (["-p", "fixed", "-p", "top-n", "-o", "r.pdf"], ".html, .md, .json, .csv"),
        (["-p", "fixed", "-p", "top-n", "-o", "nowhere/r.html"], "folder that exists"),
        (["-p", "fixed", "-p", "top-n", "-o", "r.html", "--price-as", "cheap"], "--price-as"),
        (["-p", "fixed", "-p", "top-n", "-o", "r.html", "--judge", "--limit", "1"], "can't judge"),
    ],
)
def test_what_can_not_be_compared_is_told_before_anything_is_spent(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    done = research(tmp_path, "compare", str(FIXTURES), "--offline", *arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert not list(tmp_path.glob("*.runs.jsonl"))


@pytest.mark.heavy
def test_killed_it_goes_on_where_it_was(tmp_path: Path) -> None:
    arguments, home = [*RUN, *command(tmp_path, "--repeats", "2")], environment(tmp_path)
    for fewest in (5, 25):
        process = subprocess.Popen(
            arguments, env=home, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        until = time.monotonic() + 120
        while len(records(tmp_path)) < fewest and time.monotonic() < until and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    before = len(records(tmp_path))
    assert 25 <= before < 80
    done = subprocess.run(arguments, env=home, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"{before} runs are done; {80 - before} are left", done.stderr)
    found = records(tmp_path)
    assert len({record["id"] for record in found}) == len(found) == 80
    report = json.loads((tmp_path / "report.json").read_text())
    assert [arm["runs"] for arm in report["pipelines"]] == [40, 40]
