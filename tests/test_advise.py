"""Advice: exactly the stage that is weak with the cheap model is said to need the capable one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from research.advise import LADDER_PIPELINES, advice, bought, swaps, told
from research.errors import UsageError
from research.llm.messages import Request
from tests.comparisons import Comparison, towers
from tests.shipped import copied, reply

STAGES = ("plan", "rerank", "extract", "synthesize")
Script = Callable[[Request], Any]


def strong(request: Request) -> Any:
    """The pages numbered 1 are right about the height, and come first; the answer is what the first fact says."""
    if request.purpose == "rerank":
        return ranked(request, "1")
    if request.purpose == "synthesize":
        return f"{request.given['facts'][0]['quote'].rstrip('.')} [1]."
    return reply(request)


def ranked(request: Request, last: str) -> dict[str, list[int]]:
    return {"ranking": sorted(hit["id"] for hit in request.given["hits"] if hit["title"].endswith(last))}


def weak_at(purpose: str) -> Script:
    """A model that works like the other but at one kind of stage: it plans nothing of use, puts the wrong pages first,
    reads nothing, or knows no answer."""

    def script(request: Request) -> Any:
        if request.purpose != purpose:
            return strong(request)
        if purpose == "rerank":
            return ranked(request, "3")
        wrong = {
            "plan": {"needs_search": True, "queries": ["nothing"], "reason": ""},
            "extract": {"facts": []},
            "synthesize": "NOT ANSWERED: not in the sources: I don't know.",
        }
        return wrong[purpose]

    return script


async def advised(folder: Path, cheap: Script, questions: int = 12) -> list[Any]:
    fixed = copied(folder, "fixed")
    found = swaps(fixed)
    pipelines = [fixed, *(swap.pipeline for swap in found)]
    comparison = Comparison(folder, pipelines, towers(questions), cheap=cheap, capable=strong)
    await comparison.run()
    return advice(comparison.gathered().trials, fixed, found)


@pytest.mark.parametrize("weak", STAGES)
async def test_exactly_the_weak_stage_is_named(tmp_path: Path, weak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests import shipped

    search = shipped.SmallWeb.search

    async def nothing_for_nothing(self: Any, query: str, top: int) -> Any:
        return [] if query == "nothing" else await search(self, query, top)

    monkeypatch.setattr(shipped.SmallWeb, "search", nothing_for_nothing)
    found = await advised(tmp_path, weak_at(weak))
    assert [one.stage for one in found] == list(STAGES)
    assert [one.stage for one in found if one.needs_capable] == [weak]
    said = list(told(found))
    assert said[-1] == f"The capable model is needed for {weak}."
    others = [stage for stage in STAGES if stage != weak]
    assert said[-2] == f"Cheap is enough for {others[0]}, {others[1]} and {others[2]}: no loss shown (n = 12)."
    line = next(line for line in said if line.startswith(weak))
    if weak == "synthesize":
        assert line.startswith("synthesize can't go cheap: −100 points")
    else:
        assert line.startswith(f"{weak} should go capable: +100 points")


async def test_two_models_of_one_strength_can_go_cheap_everywhere(tmp_path: Path) -> None:
    found = await advised(tmp_path, strong)
    assert not any(one.needs_capable for one in found)
    assert (
        next(one for one in found if one.stage == "synthesize").told
        == ("synthesize can go cheap: no loss shown in 12 questions (0 points, 0 points to 0 points)")
        or "can go cheap: no loss shown in 12 questions" in found[-1].told
    )
    saved = found[-1].usd
    assert saved is not None
    assert saved.interval.mean < 0, "the cheap model costs a ninth"


async def test_few_questions_show_nothing(tmp_path: Path) -> None:
    found = await advised(tmp_path, weak_at("synthesize"), questions=4)
    assert not any(one.needs_capable for one in found), "four of four are not enough for any claim"
    said = list(told(found))
    line = next(line for line in said if line.startswith("synthesize"))
    assert line.startswith(
        "synthesize may not go cheap: −100 points, −100 to −100 points; 4 questions are too few to claim it (p = 0.5)"
    ), "2 / 2⁴, after Holm's correction for four stages"
    assert said[-2:] == [
        "Cheap is enough for plan, rerank and extract: no loss shown (n = 4).",
        "More questions are needed to tell for synthesize.",
    ]


async def test_all_before_the_swapped_stage_comes_from_the_store(tmp_path: Path) -> None:
    fixed = copied(tmp_path, "fixed")
    found = swaps(fixed)
    comparison = Comparison(tmp_path, [fixed], towers(1))
    await comparison.run()
    assert comparison.calls["plan"] == comparison.calls["synthesize"] == 1
    last = Comparison(tmp_path, [found[-1].pipeline], towers(1))
    await last.run()
    assert last.calls == {"synthesize": 1}


async def test_what_each_stage_buys(tmp_path: Path) -> None:
    def knows_nothing(request: Request) -> Any:
        return "It is 3 metres tall." if request.purpose == "recall" else reply(request)

    pipelines = [copied(tmp_path / name, name) for name in LADDER_PIPELINES]
    comparison = Comparison(tmp_path, pipelines, towers(12), capable=knows_nothing)
    await comparison.run()
    said = list(bought(comparison.gathered().trials))
    assert [line.split(" (")[0] for line in said] == ["ordering the hits", "reading pages", "searching"]
    assert "buys +100 points" in said[2]
    assert said[2].endswith("snippets against closed-book.")
    assert said[0].startswith("ordering the hits (rerank): no difference shown, 0 points (0 to 0 points, n = 12) for ")


async def test_what_too_few_questions_show_is_told_with_the_reason(tmp_path: Path) -> None:
    def knows_nothing(request: Request) -> Any:
        return "It is 3 metres tall." if request.purpose == "recall" else reply(request)

    pipelines = [copied(tmp_path / name, name) for name in LADDER_PIPELINES]
    comparison = Comparison(tmp_path, pipelines, towers(6), capable=knows_nothing)
    await comparison.run()
    last = list(bought(comparison.gathered().trials))[-1]
    assert last.startswith("searching (search, quote): +100 points (+100 to +100 points, n = 6) for ")
    assert last.endswith("snippets against closed-book; 6 questions are too few to claim it (p = 0.094).")


def test_a_pipeline_without_tiers_can_not_be_advised_on(tmp_path: Path) -> None:
    pinned = copied(tmp_path, "closed-book", closed_book_toml=('"capable"', '"acme:big"'))
    with pytest.raises(UsageError, match="no stage is bound to a tier"):
        swaps(pinned)
