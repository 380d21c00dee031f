"""The closed-book baseline: one call, nothing searched, and it says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from research.llm.extractive import ExtractiveModel
from research.llm.messages import Request
from research.records import Ending
from research.stages.recall import KNOWS_NOTHING, UNSEARCHED
from tests.shipped import BASELINE, Laboratory, copied


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path / "home")


def says(laboratory: Laboratory, text: str) -> None:
    def script(request: Request) -> Any:
        assert request.purpose == "recall"
        assert dict(request.given) == {"question": "How tall is the tower of Ulm?", "as_of": "2025-03-01"}
        return text

    laboratory.capable._script = script


async def test_it_answers_with_one_call_and_is_marked(laboratory: Laboratory, tmp_path: Path) -> None:
    says(laboratory, "It is 161.53 metres tall [1].")
    pipeline = copied(tmp_path, BASELINE)
    asked = await laboratory.ask(pipeline)
    assert laboratory.calls == {"recall": 1}
    assert asked.answer.ending is Ending.WITHOUT_SEARCH
    assert asked.answer.text == "It is 161.53 metres tall."
    assert asked.answer.citations == ()
    assert asked.answer.notes == (UNSEARCHED,)
    assert (await laboratory.ask(pipeline)).answer == asked.answer
    assert not laboratory.calls
    await laboratory.ask(pipeline, sample=1)
    assert laboratory.calls == {"recall": 1}


async def test_what_it_does_not_know_is_not_answered(laboratory: Laboratory, tmp_path: Path) -> None:
    says(laboratory, "NOT ANSWERED: false premise: Ulm has no tower.")
    answer = (await laboratory.ask(copied(tmp_path, BASELINE))).answer
    assert (answer.ending, answer.cause, answer.text) == (Ending.NOT, "false premise", "")
    assert answer.notes == (UNSEARCHED,)


async def test_a_part_is_told_as_a_part(laboratory: Laboratory, tmp_path: Path) -> None:
    says(laboratory, "It is in Ulm.\nMISSING: its height")
    answer = (await laboratory.ask(copied(tmp_path, BASELINE))).answer
    assert (answer.text.strip(), answer.reason) == ("It is in Ulm.", "missing: its height")


async def test_the_built_in_model_has_no_memory(laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.app.models = {"cheap": laboratory.cheap, "capable": ExtractiveModel()}
    answer = (await laboratory.ask(copied(tmp_path, BASELINE))).answer
    assert (answer.ending, answer.reason) == (Ending.NOT, KNOWS_NOTHING)
