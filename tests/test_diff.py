"""Two runs of a question: what differs is told, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from research.diff import diff, told
from research.llm.messages import Request
from research.store import Store
from tests.commands import research
from tests.shipped import Laboratory, copied, reply


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path / "home")


def store(laboratory: Laboratory) -> Store:
    return laboratory.app.store


async def test_a_run_and_its_repetition(laboratory: Laboratory, tmp_path: Path) -> None:
    pipeline = copied(tmp_path, "fixed")
    first, second = [await laboratory.ask(pipeline) for _ in range(2)]
    found = diff(first.run, second.run, store(laboratory))
    assert found.setup == {}
    assert all(not stage.changed for stage in found.stages)
    by_name = {stage.name: (stage.first, stage.second) for stage in found.stages}
    assert by_name["plan"] == ("1 made", "1 reused")
    assert by_name["search"] == ("2 made", "2 reused")
    assert not any((change.gone or change.new) for change in (found.queries, found.sources, found.read, found.facts))
    assert (found.queries.kept, found.read.kept) == (2, 4)
    assert {sign for sign, _ in found.sentences} == {" "}
    lines = list(told(found))
    assert "sentences: the same" in lines
    assert any(line.startswith("  seconds as if cold: ") and "→" not in line for line in lines)


async def test_another_prompt_and_what_came_of_it(laboratory: Laboratory, tmp_path: Path) -> None:
    first = await laboratory.ask(copied(tmp_path / "one", "fixed"))

    def other(request: Request) -> Any:
        if request.purpose == "extract" and request.given["text"].startswith("About https://ulmtower.example/1"):
            return {"facts": [{"claim": "Its age.", "quote": "It was finished in 1890."}]}
        return reply(request)

    laboratory.cheap._script = other
    second = await laboratory.ask(copied(tmp_path / "two", "fixed", extract_md=("You ", "You now ")))
    found = diff(first.run, second.run, store(laboratory))
    assert {stage.name: stage.changed for stage in found.stages if stage.changed} == {"extract": ("prompt",)}
    assert "It was finished in 1890." in found.facts.new
    assert found.queries.gone == found.queries.new == ()
    lines = list(told(found))
    assert any(line.startswith("  extract") and line.endswith("; prompt changed") for line in lines)
    assert "+ It was finished in 1890." in lines


async def test_two_pipelines(laboratory: Laboratory, tmp_path: Path) -> None:
    first = await laboratory.ask(copied(tmp_path / "one", "fixed"))
    second = await laboratory.ask(copied(tmp_path / "two", "tool-use"))
    found = diff(first.run, second.run, store(laboratory))
    assert found.setup["pipeline"] == ("fixed", "tool-use")
    by_name = {stage.name: (stage.first, stage.second) for stage in found.stages}
    assert by_name["rerank"] == ("1 made", "–")
    assert by_name["investigate"] == ("–", "1 made")
    assert (found.queries.kept, found.queries.gone, found.queries.new) == (2, (), ())
    assert found.figures["model calls"] == ("7", "3")


async def test_a_run_that_failed_and_a_store_that_was_emptied(laboratory: Laboratory, tmp_path: Path) -> None:
    from research.errors import ProviderError

    pipeline = copied(tmp_path, "fixed")
    first = await laboratory.ask(pipeline)
    laboratory.capable._script = lambda _: ProviderError("no")
    with pytest.raises(ProviderError):
        await laboratory.ask(pipeline, sample=1)
    second = next(laboratory.app.runs.newest_first())
    found = diff(first.run, second, Store(None))
    assert found.ending == ("answered", "failed: no")
    assert found.queries.kept == 0
    assert [sign for sign, _ in found.sentences] == ["−"] * len(first.answer.sentences)
    assert found.setup["sample"] == ("0", "1")


async def test_the_command(laboratory: Laboratory, tmp_path: Path) -> None:
    runs = [(await laboratory.ask(copied(tmp_path / name, name))).run.id for name in ("fixed", "snippets")]
    home = tmp_path / "home"
    done = research(home, "diff", *runs)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == [f"− {runs[0]}", f"+ {runs[1]}", "pipeline: fixed → snippets"]
    as_json = research(home, "diff", *runs, "--json")
    assert json.loads(as_json.stdout)["setup"]["pipeline"] == ["fixed", "snippets"]
    missing = research(home, "diff", runs[0], "20250301-101530.123-aaaa")
    assert missing.returncode == 2
    assert "there is no run" in missing.stderr
