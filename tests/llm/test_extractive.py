"""The built-in model through its `Model` face: each purpose, in the form that stages expect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from research.errors import BadRequestError
from research.llm.extractive import ExtractiveModel
from research.llm.messages import Message, Model, Request

PAGE = """Harbour bridge
The harbour bridge of Norby was opened in 1931. It is 412 metres long and carries two railway tracks.
Its architect, Ada Lindqvist, had built smaller bridges before.
Would you like to see it?
Traffic
Vehicles a day
Year | Cars | Lorries
2019 | 41,200 | 3,100
2024 | 38,900 | 2,700
Source of figures: Norby Harbour Authority, 2025.
"""


async def told(purpose: str, schema: dict[str, Any] | None = None, max_tokens: int = 1_000, **given: object) -> str:
    request = Request("", (Message("user", "hello"),), max_tokens, schema=schema, purpose=purpose, given=given)
    return (await ExtractiveModel().complete(request)).text


async def facts(question: str, text: str = PAGE, title: str = "Harbour bridge of Norby") -> list[dict[str, str]]:
    found = json.loads(await told("extract", question=question, title=title, site="", date=None, text=text))["facts"]
    assert all(fact["quote"] in text for fact in found)
    return list(found)


def numbered(*quotes: str, title: str = "", site: str = "Norby Gazette") -> list[dict[str, object]]:
    return [
        {"id": place, "source": place, "claim": quote, "quote": quote, "title": title, "site": f"{site} {place}",
         "date": "2025-02-03"}
        for place, quote in enumerate(quotes, start=1)
    ]  # fmt: skip


async def answer(question: str, *quotes: str, title: str = "") -> str:
    return await told("synthesize", question=question, as_of="2025-03-01", facts=numbered(*quotes, title=title))


def test_it_is_a_model_with_the_name_that_outputs_show() -> None:
    model: Model = ExtractiveModel()
    assert model.name == "builtin:extractive"


async def test_usage_is_a_quarter_of_the_bytes() -> None:
    request = Request("sys", (Message("user", "héllo"),), 1_000, purpose="plan", given={"question": "Who?"})
    completion = await ExtractiveModel().complete(request)
    assert completion.usage.input == 3  # 3 + 6 bytes
    assert completion.usage.output == -(-len(completion.text.encode()) // 4)
    assert (completion.finish, completion.model) == ("stop", "builtin:extractive")


async def test_a_reply_beyond_its_allowance_is_told_as_cut() -> None:
    request = Request("", (), 2, purpose="plan", given={"question": "Who built the harbour bridge?"})
    assert (await ExtractiveModel().complete(request)).finish == "length"


@pytest.mark.parametrize(("purpose", "said"), [("translate", "can't translate"), ("", "can't answer freely")])
async def test_other_purposes_are_refused_with_what_to_do(purpose: str, said: str) -> None:
    with pytest.raises(BadRequestError, match=f"{said}; bind a real one: --cheap, --capable"):
        await told(purpose)


async def test_a_request_without_its_matter_names_what_is_lacking() -> None:
    with pytest.raises(BadRequestError, match="'hits'"):
        await told("rerank", question="Who?")


@pytest.mark.parametrize(
    ("question", "queries"),
    [
        ("What is the capital of Peru?", ["What is the capital of Peru", "capital of Peru", "capital Peru"]),
        ("Can you please tell me who invented the zipper?", ["who invented the zipper", "invented the zipper"]),
        (
            "How long is the bridge, and who built it?",
            ["How long is the bridge, and who built it", "bridge", "bridge built"],
        ),
        ("What is the area and population of Peru?", ["What is the area and population of Peru", "area of Peru"]),
        ("日本の首都はどこですか", ["日本の首都はどこですか"]),
    ],
)
async def test_plans(question: str, queries: list[str]) -> None:
    plan = json.loads(await told("plan", question=question, as_of="2031-01-01"))
    assert plan["needs_search"] is True
    assert plan["reason"]
    assert 1 <= len(plan["queries"]) <= 3
    assert set(queries) <= {*plan["queries"], "area of Peru", "invented the zipper"}
    assert plan["queries"][0] == queries[0]
    assert "2031" not in json.dumps(plan)


async def test_rerank_names_all_hits_and_prefers_those_that_bear_on_the_question() -> None:
    hits = [
        {"id": 4, "title": "Ferry timetable", "snippet": "Boats leave hourly.", "url": "https://a.example/ferry"},
        {"id": 7, "title": "Cooking with rice", "snippet": "Recipes.", "url": "https://b.example/rice"},
        {"id": 9, "title": "Harbour bridge of Norby", "snippet": "Opened in 1931.", "url": "https://c.example/bridge"},
    ]
    ranking = json.loads(await told("rerank", question="When was the Norby harbour bridge opened?", hits=hits, keep=2))
    assert sorted(ranking["ranking"]) == [4, 7, 9]
    assert ranking["ranking"].index(9) < ranking["ranking"].index(7)
    assert json.loads(await told("rerank", question="Who?", hits=[], keep=2)) == {"ranking": []}


async def test_screen_tells_one_hit_from_another() -> None:
    hit = {"title": "Harbour bridge of Norby", "snippet": "Opened in 1931.", "url": "https://c.example/"}
    assert json.loads(await told("screen", question="When was the Norby bridge opened?", hit=hit)) == {"relevant": True}
    assert json.loads(await told("screen", question="How do bees make honey?", hit=hit)) == {"relevant": False}


async def test_extraction_quotes_what_bears_on_the_question() -> None:
    found = await facts("When was the harbour bridge of Norby opened?")
    assert found[0]["quote"] == "The harbour bridge of Norby was opened in 1931."
    assert len(found) <= 6
    assert not any("Would you like" in fact["quote"] for fact in found)


async def test_a_sentence_that_leans_on_the_one_before_is_quoted_with_it() -> None:
    found = await facts("How many railway tracks does it carry?", title="")
    assert found[0]["quote"].startswith("The harbour bridge of Norby was opened in 1931. It is 412 metres long")


async def test_a_row_is_quoted_with_the_head_of_its_table() -> None:
    found = await facts("How many lorries a day crossed the Norby bridge in 2024?")
    row = next(fact for fact in found if fact["quote"].endswith("2024 | 38,900 | 2,700"))
    assert row["quote"].startswith("Year | Cars | Lorries")
    assert row["claim"] == "2024, Cars: 38,900; Lorries: 2,700"


async def test_nothing_is_quoted_where_nothing_bears_on_the_question() -> None:
    assert await facts("What is the chemical formula of caffeine?") == []
    assert await facts("Who?", text="") == []


async def test_an_answer_quotes_with_markers_best_first() -> None:
    text = await answer(
        "When was the harbour bridge of Norby opened?",
        "Norby has a harbour.",
        "The harbour bridge of Norby was opened on 4 May 1931.",
    )
    assert text.startswith("According to Norby Gazette 2 (2025-02-03): “The harbour bridge of Norby was opened")
    assert "1931” [2]." in text


async def test_reference_marks_in_a_quote_do_not_look_like_citations() -> None:
    text = await answer("When was the Norby bridge opened?", "The Norby bridge[3] was opened in 1931.[12]")
    assert "“The Norby bridge was opened in 1931” [1]." in text


async def test_in_other_languages_only_quotes_are_shown() -> None:
    text = await answer("Когда открыт мост Норби?", "Мост Норби открыт в 1931 году.")
    assert text == "Norby Gazette 1 (2025-02-03): “Мост Норби открыт в 1931 году” [1]."


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("When was the Norby bridge opened?", "The Norby bridge was opened in 1931."),
        ("How long is the Norby bridge?", "The Norby bridge is 412 metres long."),
        ("Who designed the Norby bridge?", "The Norby bridge was designed by Ada Lindqvist."),
        ("Why was the Norby bridge closed?", "The Norby bridge was closed because of rust."),
        ("When does the Norby bridge open on Sundays?", "The Norby bridge opens at 9 am on Sundays."),
        ("What is the wifi password?", "The wifi password is changed on Mondays; now it is tulip."),
        ("What is the population of Peru?", "Peru has a population of 34 million, among them many farmers."),
        (
            "What share of energy did the EU import in 2024?",
            "The European Union had an import share of energy of 57% in 2024.",
        ),
    ],
)
async def test_answerable_questions_are_answered(question: str, quote: str) -> None:
    assert "[1]" in await answer(question, quote)


@pytest.mark.parametrize(
    ("question", "quote", "reason"),
    [
        ("When was the Norby bridge opened?", "The Norby bridge is painted green.", "NOT ANSWERED: "),
        ("How many cars used the Norby bridge in 1987?", "In 2024, 38,900 cars used the Norby bridge.", "1987"),
        ("When was the Sundby bridge opened?", "The Norby bridge was opened in 1931.", "about Sundby"),
        ("What is the weight of the Norby bridge in tonnes?", "The Norby bridge is 412 metres long.", "NOT ANSWERED: "),
        ("Why was the Norby bridge closed?", "The Norby bridge was closed in May.", "no reason"),
        ("What was the US rate in January 2025?", "The Norby rate was 3 percent in January 2025.", "about US"),
        (
            "What is the population of Peru?",
            "In 63 countries, among them China, Peru and Chile, the population fell.",
            "no number",
        ),
        ("What is the wifi password?", "The wifi password is changed on the first Monday.", "not what it is"),
        ("Who designed the Norby bridge?", "Source: a book that designed the Norby bridge, 1931", "NOT ANSWERED: "),
    ],
)
async def test_near_misses_are_not_answered(question: str, quote: str, reason: str) -> None:
    text = await answer(question, quote)
    assert text.startswith("NOT ANSWERED: ")
    assert reason in text
    assert "[1]" not in text


async def test_a_part_without_evidence_is_named_as_missing() -> None:
    text = await answer(
        "How long is the Norby bridge, and who inspects its cables?", "The Norby bridge is 412 metres long."
    )
    assert "412 metres long” [1]" in text
    assert text.endswith("\nMISSING: who inspects its cables")


async def test_each_part_of_a_question_gets_its_quote() -> None:
    text = await answer(
        "How high was traffic in Norby and in Sundby?",
        "Traffic in Norby was 38,900 cars.",
        "Traffic in Sundby was 12,000 cars.",
    )
    assert "[1]" in text
    assert "[2]" in text
    assert "MISSING" not in text


async def test_one_key_per_source() -> None:
    schema = {"properties": {name: {"type": "string"} for name in ("source_1", "source_2", "missing")}}
    given = numbered("The Norby bridge was opened in 1931.", "Rice is boiled in water.")
    question = "When was the Norby bridge opened?"
    reply = json.loads(await told("synthesize", schema, question=question, as_of="", facts=given))
    assert reply == {"source_1": "“The Norby bridge was opened in 1931”", "source_2": "", "missing": ""}
    reply = json.loads(await told("synthesize", schema, question="Who owns Sundby?", as_of="", facts=given))
    assert reply["source_1"] == reply["source_2"] == ""
    assert reply["missing"]


async def test_replies_are_the_same_each_time() -> None:
    given = {"question": "How many lorries crossed the Norby bridge in 2024?", "title": "", "text": PAGE}
    assert await told("extract", **given) == await told("extract", **given)


CAFE = "Café Zentral opens at 7 am on weekdays and at 9 am on Sundays. The owner is Maria Huber."


@pytest.mark.parametrize("question", ["Who is the owner of Café Zentral?", "Who owns Café Zentral?"])
async def test_what_the_sentence_before_names_is_quoted_with_what_leaves_the_name_out(question: str) -> None:
    assert [fact["quote"] for fact in await facts(question, CAFE, title="")] == [CAFE]
    assert "Maria Huber" in await answer(question, CAFE)


async def test_a_definition_comes_first_where_the_meaning_is_asked() -> None:
    text = "The figure for all items is called headline inflation. Inflation is a rise in the general level of prices."
    found = await facts("What is inflation?", text, title="What is inflation, and how is it measured?")
    assert found[0]["quote"] == "Inflation is a rise in the general level of prices."
    assert (await answer("What is inflation?", *text.split(". "))).startswith(
        "According to Norby Gazette 2 (2025-02-03): “Inflation is a rise"
    )


async def test_a_title_is_not_quoted_where_a_sentence_says_it() -> None:
    text = "Prices: Norby inflation rate 3.0 percent\n\nThe Norby inflation rate was 3.0 percent, lower than expected."
    found = await facts("What is the Norby inflation rate?", text, "Prices: Norby inflation rate 3.0 percent : Desk")
    assert [fact["quote"] for fact in found] == ["The Norby inflation rate was 3.0 percent, lower than expected."]


async def test_one_source_says_a_fact_once() -> None:
    given = numbered(
        "The Norby inflation rate was 3.0 percent, lower than bankers had expected.", "Norby inflation rate 3.0 percent"
    )
    for fact in given:
        fact |= {"source": 1, "site": "Gazette"}
    text = await told("synthesize", question="What is the Norby inflation rate?", as_of="", facts=given)
    assert "[1]" in text
    assert "[2]" not in text


async def test_figures_of_other_places_and_things_are_left_out() -> None:
    text = await answer(
        "What was the US inflation rate in January 2025?",
        "The US inflation rate was 3.0 percent in January 2025.",
        "The euro area inflation rate was 2.5 percent in January 2025.",
        "Food cost 2.6 percent more in January 2025 in the US.",
    )
    assert "3.0 percent" in text
    assert "2.5 percent" not in text
    assert "2.6 percent" not in text


async def test_of_equal_facts_that_of_a_page_about_the_question_comes_first() -> None:
    given = numbered("The Norby bridge is 412 metres long.", "The Norby bridge is 409 metres long.")
    given[1]["title"] = "How long is the Norby bridge?"
    text = await told("synthesize", question="How long is the Norby bridge?", as_of="", facts=given)
    assert text.startswith("According to Norby Gazette 2")
