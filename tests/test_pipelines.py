"""Every shipped pipeline: a warm run equals a cold one, one edit costs one stage, policy costs nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from research.records import Ending
from research.settings import PIPELINES
from research.why import reasons
from tests.shipped import NAMES, Laboratory, copied

TEXTS = {name: (PIPELINES / f"{name}.toml").read_text() for name in NAMES}
STAGES = {name: re.findall(r"^\[stage\.(\w+)\]", text, re.M) for name, text in TEXTS.items()}
PLANNED = [name for name in NAMES if "plan" in STAGES[name]]
PROMPTED = [
    (name, stage)
    for name in NAMES
    for stage in re.findall(r"^\[stage\.(\w+)\](?:(?!^\[).)*?^prompt =", TEXTS[name], re.M | re.S)
]  # fmt: skip


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path / "home")


def test_the_shipped_pipelines() -> None:
    assert NAMES == ["fixed", "small", "snippets", "tool-use", "top-n"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_warm_run_equals_a_cold_one(laboratory: Laboratory, tmp_path: Path, name: str) -> None:
    pipeline = copied(tmp_path, name)
    cold = await laboratory.ask(pipeline)
    assert cold.answer.ending is Ending.ANSWERED
    assert "161 metres" in cold.answer.text
    assert cold.answer.citations
    made = laboratory.calls
    warm = await laboratory.ask(pipeline)
    assert warm.answer == cold.answer
    assert not laboratory.calls
    elsewhere = Laboratory(tmp_path / "elsewhere")
    assert (await elsewhere.ask(pipeline)).answer == cold.answer
    assert elsewhere.calls == made


@pytest.mark.parametrize(("name", "stage"), PROMPTED)
async def test_a_changed_prompt_makes_its_stage_and_nothing_else(
    laboratory: Laboratory, tmp_path: Path, name: str, stage: str
) -> None:
    before = copied(tmp_path / "before", name)
    cold = await laboratory.ask(before)
    calls = laboratory.calls
    prompt = before.stages[stage].prompt
    assert prompt is not None
    file = Path(prompt.name).name.replace(".", "_").replace("-", "_")
    after = copied(tmp_path / "after", name, **{file: ("You ", "You now ")})
    again = await laboratory.ask(after)
    kind = before.stages[stage].kind.name
    assert laboratory.calls == {kind: calls[kind]}
    told = {line.split()[0]: line for line in reasons(again.run, cold.run)}
    assert "prompt changed" in told[stage]
    assert all("reused" in line for other, line in told.items() if other != stage)


@pytest.mark.parametrize("name", NAMES)
async def test_policy_changes_no_key(laboratory: Laboratory, tmp_path: Path, name: str) -> None:
    text = copied(tmp_path, name).text
    await laboratory.ask(copied(tmp_path, name))
    changed = re.sub(r"^(gives = .*)$", r"\1\ntimeout = 77\nparallel = 2", text, flags=re.M)
    changed = re.sub(r"^(retries|patience|prefetch) = .*\n", "", changed, flags=re.M)
    (tmp_path / f"{name}.toml").write_text(changed)
    from research.loading import load
    from research.stages import KINDS

    await laboratory.ask(load(tmp_path / f"{name}.toml", KINDS))
    assert not laboratory.calls


@pytest.mark.parametrize(
    ("name", "stage"),
    [(name, stage) for name in NAMES for stage in ("plan", "search", "synthesize") if stage in STAGES[name]],
)
async def test_a_stage_can_be_made_anew(laboratory: Laboratory, tmp_path: Path, name: str, stage: str) -> None:
    pipeline = copied(tmp_path, name)
    await laboratory.ask(pipeline)
    calls = laboratory.calls
    again = await laboratory.ask(pipeline, fresh={stage})
    assert laboratory.calls == {stage: calls[stage]}  # it gives the same, so nothing follows
    assert any("asked for anew" in line and stage in line for line in reasons(again.run, again.run))


async def test_rerank_made_anew_makes_what_follows_only_if_it_differs(laboratory: Laboratory, tmp_path: Path) -> None:
    pipeline = copied(tmp_path, "fixed")
    first = await laboratory.ask(pipeline)
    same = await laboratory.ask(pipeline, fresh={"rerank"})
    assert laboratory.calls == {"rerank": 1}
    assert same.answer == first.answer

    def other(request: object) -> object:
        from tests.shipped import reply

        return {"ranking": [4]} if request.purpose == "rerank" else reply(request)  # type: ignore[attr-defined,arg-type]

    laboratory.cheap._script = other  # type: ignore[assignment]
    await laboratory.ask(pipeline, fresh={"rerank"})
    assert laboratory.calls["rerank"] == 1
    assert laboratory.calls["plan"] == laboratory.calls["search"] == 0
    assert laboratory.calls["synthesize"] == 1


async def test_everything_anew(laboratory: Laboratory, tmp_path: Path) -> None:
    pipeline = copied(tmp_path, "fixed")
    await laboratory.ask(pipeline)
    calls = laboratory.calls
    await laboratory.ask(pipeline, fresh=set(pipeline.stages))
    assert laboratory.calls == calls


async def test_a_loop_made_anew_makes_its_turns_searches_and_pages(laboratory: Laboratory, tmp_path: Path) -> None:
    pipeline = copied(tmp_path, "tool-use")
    first = await laboratory.ask(pipeline)
    calls = laboratory.calls
    assert calls == {"investigate": 3, "search": 2, "fetch": 3}
    again = await laboratory.ask(pipeline, fresh={"investigate"})
    assert laboratory.calls == calls
    assert again.answer == first.answer


async def test_what_shapes_a_loop_is_in_its_keys(laboratory: Laboratory, tmp_path: Path) -> None:
    pipeline = copied(tmp_path / "one", "tool-use")
    await laboratory.ask(pipeline)
    turns = {"investigate": 3}
    await laboratory.ask(pipeline, sample=1)
    assert laboratory.calls == turns, "another sample is another reply, over the same web"
    for number, change in enumerate(
        (
            {"tool_use_toml": ("steps = 12", "steps = 11")},
            {"tool_use_toml": ("steps = 12", "steps = 12\ntemperature = 0.5")},
            {"search_toml": ("Search the web.", "Look things up.")},
        )
    ):
        await laboratory.ask(copied(tmp_path / str(number), "tool-use", **change))
        assert laboratory.calls == turns
    laboratory.capable.name = "scripted:other"
    await laboratory.ask(pipeline)
    assert laboratory.calls == turns
    laboratory.web.source = "another"
    await laboratory.ask(pipeline)
    assert laboratory.calls == {"search": 2, "fetch": 3}, "another web that says the same leaves the turns as they are"


@pytest.mark.parametrize("name", PLANNED)
async def test_what_shapes_an_output_is_in_its_key(laboratory: Laboratory, tmp_path: Path, name: str) -> None:
    pipeline = copied(tmp_path / "one", name)
    await laboratory.ask(pipeline)
    await laboratory.ask(pipeline, sample=1)
    assert laboratory.calls["plan"] == 1, "another sample is another reply"
    await laboratory.ask(
        copied(
            tmp_path / "two",
            name,
            **{f"{name.replace('-', '_')}_toml": ('gives = "plan"', 'gives = "plan"\nmax_tokens = 400')},
        )
    )
    assert laboratory.calls == {"plan": 1}
    laboratory.capable.name = "scripted:other"
    await laboratory.ask(pipeline)
    assert laboratory.calls == {"synthesize": 1}
    laboratory.web.source = "another"
    await laboratory.ask(pipeline)
    assert laboratory.calls["search"] == 2


async def test_pipelines_share_what_they_have_in_common(laboratory: Laboratory, tmp_path: Path) -> None:
    await laboratory.ask(copied(tmp_path, "fixed"))
    await laboratory.ask(copied(tmp_path, "snippets"))
    assert laboratory.calls == {"synthesize": 1}
    await laboratory.ask(copied(tmp_path, "top-n"))
    assert laboratory.calls["plan"] == laboratory.calls["search"] == 0
    await laboratory.ask(copied(tmp_path, "tool-use"))
    assert laboratory.calls == {"investigate": 3}, "no page is fetched twice, and no search made twice"


async def test_no_search_needed(laboratory: Laboratory, tmp_path: Path) -> None:
    def script(request: object) -> object:
        if request.purpose == "plan":  # type: ignore[attr-defined]
            return {"needs_search": False, "queries": [], "reason": "arithmetic"}
        return "It is four."

    for name in sorted({*PLANNED, "tool-use"} - {"small"}):  # which always searches
        laboratory.cheap._script = laboratory.capable._script = script  # type: ignore[assignment]
        result = await laboratory.ask(copied(tmp_path, name))
        assert result.answer.ending is Ending.WITHOUT_SEARCH
        assert result.answer.text == "It is four."
        assert result.answer.citations == ()
        assert "without a search" in result.answer.notes[0]
        assert laboratory.web.calls == {}


async def test_nothing_found_means_no_synthesis(laboratory: Laboratory, tmp_path: Path) -> None:
    async def nothing(query: str, top: int) -> list[object]:
        return []

    laboratory.web.search = nothing  # type: ignore[method-assign,assignment]
    for name in NAMES:
        result = await laboratory.ask(copied(tmp_path, name))
        assert result.answer.ending is Ending.NOT
        assert result.answer.reason == "no evidence was found"
        assert laboratory.calls["synthesize"] == 0
