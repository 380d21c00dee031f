"""The sample web's questions, answered and refused, end to end with the built-in model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from research.app import App, Dates, load_pipeline
from research.llm.extractive import ExtractiveModel
from research.records import Answer, Ending, Question
from research.settings import Settings
from research.web.base import Web
from research.webs import opened
from tests.commands import QUESTION
from tests.conftest import ROOT

Asking = tuple[App, Web]


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Asking]:
    model = ExtractiveModel()
    app = App(Settings(tmp_path / "home"), {"cheap": model, "capable": model})
    async with opened(app.settings, app.store, offline=True) as web:
        yield app, web
    app.close()


async def answered(asking: Asking, question: str, pipeline: str = "fixed") -> Answer:
    app, web = asking
    dates = Dates(web.date, web.date)
    return (await app.ask(Question(text=question), load_pipeline(pipeline), web, dates)).answer


def questions(file: str) -> list[str]:
    return [json.loads(line)["question"] for line in (ROOT / "fixtures" / file).read_text("utf-8").splitlines()]


async def test_nine_in_ten_that_the_pages_answer_are_answered(asking: Asking) -> None:
    endings = {question: (await answered(asking, question)).ending for question in questions("questions.jsonl")}
    refused = [question for question, ending in endings.items() if ending is Ending.NOT]
    assert len(refused) <= len(endings) / 10, refused


async def test_nine_in_ten_that_they_do_not_are_not(asking: Asking) -> None:
    endings = {question: (await answered(asking, question)).ending for question in questions("unanswerable.jsonl")}
    told = [question for question, ending in endings.items() if ending is not Ending.NOT]
    assert len(told) <= len(endings) / 10, told


async def test_the_pair_that_contradicts_each_other_stands_side_by_side(asking: Asking) -> None:
    answer = await answered(asking, QUESTION)
    values = {(one.value, one.fact.site) for found in answer.disagreements for one in found.values}
    assert {("3.0 percent", "labor-statistics.example"), ("2.9%", "moneybrief.example")} <= values
    assert answer.cause == "conflicting"


async def test_the_syndicated_pair_counts_once(asking: Asking) -> None:
    answer = await answered(
        asking, "How much did egg prices rise from December to January as avian flu reduced laying flocks?"
    )
    cited = {citation.fact.url.split("/")[2] for citation in answer.citations}
    assert "www.harborledger.example" in cited
    assert "midlandwire.example" not in cited
    assert [copy.site for copy in answer.copies] == ["midlandwire.example"] or "Midland Wire" in answer.copies[0].site
    assert any("count as one source" in note for note in answer.notes)
