"""What the pipeline `small` asks of models that can do little, and what it makes of their replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from research.app import Asked
from research.llm.extractive import ExtractiveModel
from research.llm.messages import Request
from research.llm.providers import BUILTIN
from research.records import Ending, Grade, Hit, Outcome, Page
from research.stages.locating import Passages
from tests.shipped import QUESTION, Laboratory, SmallWeb, copied, reply

TEXT = """The tower of Ulm

The tower of Ulm minster is 161.5 metres tall, as measured in 2015. It was finished in 1890.
Visitors climb 768 steps to its gallery. The gallery is closed in winter.

References

The tower of Ulm is 170 metres tall, Journal of Towers, 2001.
"""
HEIGHT = "The tower of Ulm minster is 161.5 metres tall, as measured in 2015."


@dataclass
class OnePage(SmallWeb):
    queries: list[str] = field(default_factory=list)

    async def search(self, query: str, top: int) -> list[Hit]:
        self.queries.append(query)
        return [Hit(url="https://ulm.example/", title="Ulm", snippet="A tower.", rank=1)]

    async def fetch(self, url: str) -> Page:
        return Page(url=url, outcome=Outcome.OK, title="Ulm minster", site="Towers", text=TEXT)


async def asked(folder: Path, replies: Mapping[str, Any]) -> tuple[Laboratory, Asked, OnePage]:
    """With a model that copies, in place of the rules."""
    web = OnePage()
    laboratory = Laboratory(folder / "home", web)

    def script(request: Request) -> Any:
        return replies[request.purpose] if request.purpose in replies else reply(request)

    laboratory.cheap._script = script
    pipeline = copied(folder / "p", "small", small_toml=(f'model = "{BUILTIN}"', 'model = "cheap"'))
    return laboratory, await laboratory.ask(pipeline), web


@pytest.mark.parametrize(
    ("written", "searched"),
    [
        (["ulm tower height", "another"], [QUESTION, "ulm tower height"]),
        ([QUESTION.upper()], [QUESTION]),
        (["", " \n"], [QUESTION]),
        ([], [QUESTION]),
        ("no list", [QUESTION]),  # which is no reply to be used, twice
    ],
)
async def test_the_question_itself_is_searched_whatever_is_written(
    tmp_path: Path, written: Any, searched: list[str]
) -> None:
    laboratory, _, web = await asked(tmp_path, {"plan": {"queries": written}})
    assert sorted(web.queries) == sorted(searched)
    request = next(one for one in laboratory.cheap.requests if one.purpose == "plan")
    assert request.schema is not None
    assert [*request.schema["properties"]] == ["queries"], "whether to search is no question"


@pytest.mark.parametrize(
    ("copy", "quote", "grade"),
    [
        (HEIGHT, HEIGHT, Grade.EXACT),
        ("the tower of  Ulm minster is 161.5 metres tall", HEIGHT.partition(",")[0], Grade.FUZZY),
        ("The Ulm minster tower is 161.5 metres tall.", HEIGHT, Grade.FUZZY),  # other words, but borne out
    ],
)
async def test_what_is_copied_leads_to_the_passage(tmp_path: Path, copy: str, quote: str, grade: Grade) -> None:
    laboratory, result, _ = await asked(tmp_path, {"extract": {"quote_1": copy, "quote_2": ""}})
    [request] = [one for one in laboratory.capable.requests if one.purpose == "synthesize"]
    assert [fact["quote"] for fact in request.given["facts"]] == [quote]
    fact = result.answer.citations[0].fact
    assert TEXT[fact.start : fact.end] == fact.quote == fact.claim == quote
    assert fact.grade is grade


@pytest.mark.parametrize(
    "copy",
    [
        "The tower of Ulm minster is 162.5 metres tall, as measured in 2015.",  # no such number
        "The gallery is not closed in winter.",
        "The tower of Ulm is 170 metres tall, Journal of Towers, 2001.",  # a reference is no evidence
        "Bread costs three euros in every town.",
        "Ulm tower, steps",  # too little to tell
        "",
    ],
)
async def test_what_no_passage_bears_out_is_dropped(tmp_path: Path, copy: str) -> None:
    laboratory, result, _ = await asked(tmp_path, {"extract": {"quote_1": copy, "quote_2": ""}})
    assert result.answer.ending is Ending.NOT
    assert result.answer.cause == "no evidence"
    assert not laboratory.capable.requests


async def test_two_copies_of_one_passage_are_one_fact(tmp_path: Path) -> None:
    laboratory, _, _ = await asked(tmp_path, {"extract": {"quote_1": HEIGHT, "quote_2": HEIGHT}})
    [request] = [one for one in laboratory.capable.requests if one.purpose == "synthesize"]
    assert [fact["quote"] for fact in request.given["facts"]] == [HEIGHT]


async def test_the_built_in_rules_give_the_best_of_a_page_in_either_form(tmp_path: Path) -> None:
    laboratory, _, _ = await asked(tmp_path, {})
    laboratory.app.models = {**laboratory.app.models, BUILTIN: ExtractiveModel()}
    pipeline = copied(tmp_path / "p", "small")
    assert pipeline.stages["extract"].model == BUILTIN
    result = await laboratory.ask(pipeline)
    [request] = [one for one in laboratory.capable.requests if one.purpose == "synthesize"]
    quotes = [fact["quote"] for fact in request.given["facts"]]
    assert quotes[0] == HEIGHT
    assert len(quotes) <= 2
    assert all(fact["quote"] in TEXT for fact in request.given["facts"])
    assert result.answer.citations


def test_a_page_tells_no_answer_by_its_title() -> None:
    page = Page(url="https://ulm.example/", outcome=Outcome.OK, title="The tower of Ulm", text=TEXT)
    nearest = Passages(page).nearest("How tall is the tower of Ulm?", 2)
    assert nearest[0] == HEIGHT
    assert "The tower of Ulm" not in nearest
