"""Reports of single runs, and a judge beside a comparison."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from research.cli.groups import Conditions
from research.cli.judge_run import judged
from research.errors import UsageError
from research.judging import Judge
from research.llm.messages import Request
from research.llm.scripted import ScriptedModel
from research.report import gather
from research.report.rendering import made, rendered
from research.results import Results
from research.runs import Runs
from research.store import Store
from tests.comparisons import Comparison, towers
from tests.shipped import DATES, Laboratory, copied


def free(_name: str, _usage: object) -> int:
    return 0


async def test_single_runs_make_a_report(tmp_path: Path) -> None:
    laboratory = Laboratory(tmp_path / "home")
    ids = [(await laboratory.ask(copied(tmp_path / name, name))).run.id for name in ("fixed", "snippets")]
    found = made(gather(ids, laboratory.app.runs), free, {})
    assert [arm.pipeline for arm in found.figures.arms] == ["fixed", "snippets"]
    assert found.figures.quality == "recall"
    assert found.figures.difference("recall", "fixed", "snippets") is not None
    assert "There are no reference answers" in rendered(found, ".md")
    with pytest.raises(UsageError, match="was run 2 times"):
        gather([ids[0], (await laboratory.ask(copied(tmp_path, "fixed"))).run.id], laboratory.app.runs)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "nothing to report"),
        ("no json\n", "no results file"),
        ("[1]\n", "no results file"),
        ('{"id": "a", "state": "done", "columns": "x"}\n', "no results file"),
    ],
)
def test_what_is_no_file_of_runs_is_told(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text(text)
    with pytest.raises(UsageError, match=told):
        gather([str(file)], Runs(tmp_path / "runs"))


async def test_a_run_whose_folder_is_gone_is_listed_as_failed(tmp_path: Path) -> None:
    import shutil

    comparison = Comparison(tmp_path, [copied(tmp_path, "snippets")], towers(2))
    await comparison.run()
    shutil.rmtree(tmp_path / "home" / "runs")
    trials = comparison.gathered().trials
    assert [trial.error for trial in trials] == ["its run folder is gone"] * 2


class Session(SimpleNamespace):
    """What the judge needs of a comparison that is open."""

    def gathered(self) -> Any:
        return gather([str(self.file)], self.runs)


async def test_a_judge_beside_a_comparison(tmp_path: Path) -> None:
    comparison = Comparison(
        tmp_path, [copied(tmp_path / name, name) for name in ("fixed", "snippets")], towers(8), repeats=2
    )
    comparison.capable = lambda request: f"It is 161 metres tall, as {len(request.given['facts'])} facts say [1]."
    await comparison.run()

    def longer(request: Request) -> Any:
        first = len(request.given["first"]) >= len(request.given["second"])
        return {"reason": "longer", "verdict": "first better" if first else "second better"}

    model = ScriptedModel(longer, "scripted:judge")
    judge = Judge(model, Store(tmp_path / "store"), lambda _name, usage: usage.input)
    results = Results(comparison.file)
    session = Session(
        file=comparison.file, runs=Runs(tmp_path / "home" / "runs"), results=results, dates=DATES, wish=SimpleNamespace(conditions=Conditions(parallel=2)),
        sides=[SimpleNamespace(name=name) for name in ("fixed", "snippets")], view=SimpleNamespace(line=print),
    )  # fmt: skip
    try:
        await judged(session, judge)  # type: ignore[arg-type]
        assert len(model.requests) == 16, "eight questions, one pair, two orders, the first repeat only"
        await judged(session, judge)  # type: ignore[arg-type]
        assert len(model.requests) == 16
    finally:
        results.close()
    report = made(comparison.gathered(), free, {})
    [one] = report.figures.judged
    assert (one.first, one.second, one.interval.n) == ("fixed", "snippets", 8)
    assert len(report.figures.differences) == 3, "verdicts are no runs"
    assert report.setup.judge["verdicts"] == 8
    assert report.setup.judge["usd"] > 0
    data = json.loads(rendered(report, ".json"))
    assert [row["metric"] for row in data["differences"]] == ["right", "usd", "seconds", "judge"]
    assert "The judge" in rendered(report, ".md")
    assert "By the judge" in rendered(report, ".html")
