"""Order, width and reuse, under scripted work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from research.errors import AuthError, NotRecordedError, ResearchError, WebError
from research.ledger import as_if_cold, in_vain, paid, seconds_as_if_cold
from research.selection import Selection
from research.store import Store
from tests.kinds import PIPELINE, Bench, failing, pipeline, slow

ONE_TO_FOUR = "noted t one.example/1 | noted t one.example/2"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(Store(tmp_path / "store"))


async def test_a_question_passes_through_every_stage(bench: Bench, tmp_path: Path) -> None:
    answer = await bench.run(pipeline(tmp_path))
    assert answer.text == ONE_TO_FOUR
    assert bench.calls == {"split": 1, "find": 2, "order": 1, "read": 2, "note": 2, "write": 1}


async def test_a_warm_run_calls_nothing_and_gives_the_same(bench: Bench, tmp_path: Path) -> None:
    cold = await bench.run(pipeline(tmp_path))
    warm = await bench.run(pipeline(tmp_path))
    assert warm == cold
    assert not bench.calls
    assert [line["event"] for line in bench.journal.lines if line["event"] in ("made", "making")] == []


async def test_another_prompt_makes_its_stage_and_cuts_off_there(bench: Bench, tmp_path: Path) -> None:
    await bench.run(pipeline(tmp_path))
    await bench.run(pipeline(tmp_path, prompt="Please order these: {{ hits }}"))
    assert bench.calls == {"order": 1}


async def test_what_differs_is_made_and_no_more(bench: Bench, tmp_path: Path) -> None:
    await bench.run(pipeline(tmp_path))

    async def reversed_order(inputs: Mapping[str, Any]) -> Any:
        return inputs["hits"][::-1]

    bench.work["order"] = reversed_order
    await bench.run(pipeline(tmp_path), fresh={"order"})
    assert bench.calls == {"order": 1, "read": 2, "note": 2, "write": 1}


async def test_policy_is_in_no_key(bench: Bench, tmp_path: Path) -> None:
    await bench.run(pipeline(tmp_path))
    policy = 'timeout = 9\nretries = 3\nparallel = 1\npatience = 2\nprefetch = { url = "hits.url", top = 2 }\n'
    await bench.run(pipeline(tmp_path, PIPELINE.replace('gives = "texts"', f'gives = "texts"\n{policy}')))
    assert not bench.calls


async def test_want_replaces_failures_by_the_next_in_rank_and_keeps_the_order(bench: Bench, tmp_path: Path) -> None:
    async def read(inputs: Mapping[str, Any]) -> str:
        if inputs["url"].endswith("one.example/1"):
            raise WebError("reset; try again")
        if inputs["url"].endswith("one.example/2"):
            return "far too long to be of any use here"
        await asyncio.sleep(0.02 if "two.example/1" in inputs["url"] else 0)
        return f"t {inputs['url'][8:]}"

    bench.work["read"] = read
    answer = await bench.run(pipeline(tmp_path))
    assert answer.text == "noted t two.example/1 | noted t two.example/2"
    assert {line["item"]: line["reason"] for line in bench.events("dropped")} == {0: "reset; try again", 1: "too long"}
    assert bench.events("selected")[0]["chosen"] == [2, 3]


async def test_a_warm_run_takes_the_selection_of_the_cold_one(bench: Bench, tmp_path: Path) -> None:
    bench.work["read"] = failing({"https://one.example/1": 1}, Bench.read, "url")
    cold = await bench.run(pipeline(tmp_path))
    warm = await bench.run(pipeline(tmp_path))
    assert warm == cold
    assert not bench.calls
    anew = await bench.run(pipeline(tmp_path), fresh={"read"})
    assert anew.text == ONE_TO_FOUR


async def test_a_choice_is_kept_again_only_if_other_ranks_are_chosen(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.work["read"] = failing({"https://one.example/1": 1}, Bench.read, "url")
    await bench.run(pipeline(tmp_path))
    telling, told = Selection.parse, {"late": {"0": ["as another version told it"]}}
    monkeypatch.setattr(Selection, "parse", lambda data, _: telling(data, told))
    monkeypatch.setattr(bench.store, "put", lambda *given: pytest.fail(f"put {given}"))
    await bench.run(pipeline(tmp_path))


async def test_stragglers_are_left_behind_when_patience_is_gone(bench: Bench, tmp_path: Path) -> None:
    bench.work["read"] = slow({"https://one.example/1": 30}, Bench.read, "url")
    text = PIPELINE.replace("want = 2", "want = 2\npatience = 0.05")
    answer = await bench.run(pipeline(tmp_path, text))
    assert answer.text == "noted t one.example/2"
    assert bench.events("dropped")[0]["item"] == 0
    assert not bench.flights


async def test_patience_waits_for_the_first_success(bench: Bench, tmp_path: Path) -> None:
    bench.work["read"] = slow({"https://one.example/1": 0.1, "https://one.example/2": 0.12}, Bench.read, "url")
    answer = await bench.run(pipeline(tmp_path, PIPELINE.replace("want = 2", "want = 2\npatience = 0.01")))
    assert answer.text == "noted t one.example/1"


async def test_items_flow_on_as_they_arrive(bench: Bench, tmp_path: Path) -> None:
    noted = asyncio.Event()

    async def note(inputs: Mapping[str, Any]) -> list[str]:
        noted.set()
        return await Bench.note(inputs)

    async def read(inputs: Mapping[str, Any]) -> str:
        if inputs["url"] == "https://one.example/1":
            await asyncio.wait_for(noted.wait(), 5)  # ends only if the other page's note was begun
        return await Bench.read(inputs)

    bench.work |= {"note": note, "read": read}
    assert (await bench.run(pipeline(tmp_path))).text == ONE_TO_FOUR


async def test_prefetch_reads_while_the_order_is_made_and_counts_what_was_in_vain(bench: Bench, tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def read(inputs: Mapping[str, Any]) -> str:
        begun.set()
        return await Bench.read(inputs)

    async def order(inputs: Mapping[str, Any]) -> Any:
        await asyncio.wait_for(begun.wait(), 5)  # ends only if reading has begun without it
        await asyncio.sleep(0.02)
        return inputs["hits"][1:]

    bench.work |= {"read": read, "order": order}
    text = PIPELINE.replace("want = 2", 'want = 2\nprefetch = { url = "hits.url", top = 2 }')
    answer = await bench.run(pipeline(tmp_path, text))
    assert answer.text == "noted t one.example/2 | noted t two.example/1"
    assert bench.calls["read"] == 3
    assert in_vain(bench.journal.lines).models == 1
    assert as_if_cold(bench.journal.lines).models == 1 + 2 + 1 + 2 + 2 + 1
    assert paid(bench.journal.lines).models == 1 + 2 + 1 + 3 + 2 + 1
    await bench.run(pipeline(tmp_path, text))
    assert not bench.calls


async def test_one_failing_query_is_dropped_and_tried_again_next_time(bench: Bench, tmp_path: Path) -> None:
    bench.work["find"] = failing({"one": 1}, Bench.find, "query")
    assert "two.example" in (await bench.run(pipeline(tmp_path))).text
    assert (await bench.run(pipeline(tmp_path))).text == ONE_TO_FOUR
    assert bench.calls["find"] == 1


async def test_when_every_item_fails_the_first_cause_is_raised(bench: Bench, tmp_path: Path) -> None:
    bench.work["find"] = failing({"one": 9, "two": 9}, Bench.find, "query")
    with pytest.raises(WebError, match="timed out"):
        await bench.run(pipeline(tmp_path))


async def test_what_hits_the_whole_run_cancels_the_siblings_and_raises_once(bench: Bench, tmp_path: Path) -> None:
    cancelled = []

    async def find(inputs: Mapping[str, Any]) -> Any:
        if inputs["query"] == "two":
            raise AuthError("the key was refused; set another")
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(inputs["query"])
            raise

    bench.work["find"] = find
    with pytest.raises(AuthError, match="the key was refused"):
        await bench.run(pipeline(tmp_path))
    await asyncio.sleep(0)
    assert cancelled == ["one"]


async def test_a_bug_surfaces_as_a_bug(bench: Bench, tmp_path: Path) -> None:
    async def split(_: Mapping[str, Any]) -> Any:
        raise ZeroDivisionError

    bench.work["split"] = split
    with pytest.raises(BaseExceptionGroup) as caught:
        await bench.run(pipeline(tmp_path))
    assert caught.group_contains(ZeroDivisionError)


async def test_retries_are_for_what_may_pass(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.trying.random.uniform", lambda *_: 0.001)
    bench.work["find"] = failing({"one": 2}, Bench.find, "query")
    text = PIPELINE.replace('gives = "hits"', 'gives = "hits"\nretries = 2')
    assert (await bench.run(pipeline(tmp_path, text))).text == ONE_TO_FOUR
    assert bench.calls["find"] == 4


async def test_a_time_limit_ends_one_call(bench: Bench, tmp_path: Path) -> None:
    bench.work["find"] = slow({"one": 30}, Bench.find, "query")
    text = PIPELINE.replace('gives = "hits"', 'gives = "hits"\ntimeout = 0.05')
    assert "two.example" in (await bench.run(pipeline(tmp_path, text))).text
    assert "no result within 0.05 s" in bench.events("dropped", "find")[0]["reason"]


async def test_only_what_is_recorded(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(NotRecordedError, match="one"):
        await bench.run(pipeline(tmp_path), recorded_only=True)
    await bench.run(pipeline(tmp_path), question="two one")
    await bench.run(pipeline(tmp_path), question="two one", recorded_only=True)
    assert not bench.calls


async def test_identical_questions_at_once_do_each_piece_of_work_once(bench: Bench, tmp_path: Path) -> None:
    made = pipeline(tmp_path)
    answers = await asyncio.gather(*(_run(bench, made) for _ in range(100)))
    assert len({answer.text for answer in answers}) == 1
    assert bench.calls == {"split": 1, "find": 2, "order": 1, "read": 2, "note": 2, "write": 1}
    assert not bench.flights


async def _run(bench: Bench, made: Any) -> Any:
    other = Bench(bench.store, bench.work, flights=bench.flights)
    answer = await other.run(made)
    bench.calls.update(other.calls)
    return answer


async def test_work_that_another_run_waits_for_survives_the_first_runs_end(bench: Bench, tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def split(inputs: Mapping[str, Any]) -> Any:
        await gate.wait()
        return await Bench.split(inputs)

    bench.work["split"] = split
    made = pipeline(tmp_path)
    first, second = (asyncio.create_task(_run(bench, made)) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    gate.set()
    assert (await second).text == ONE_TO_FOUR


async def test_fresh_makes_everything_once(bench: Bench, tmp_path: Path) -> None:
    made = pipeline(tmp_path)
    await bench.run(made, "one one")
    await bench.run(made, "one one", fresh=set(made.stages))
    assert bench.calls == {"split": 1, "find": 1, "order": 1, "read": 2, "note": 2, "write": 1}


async def test_as_if_cold_seconds_are_the_critical_path(bench: Bench, tmp_path: Path) -> None:
    lines = [
        {"event": "made", "item": 0, "key": "plan", "needs": [], "receipt": {"seconds": 1.0}},
        {"event": "reused", "item": 0, "key": "a", "needs": ["plan"], "receipt": {"seconds": 2.0}},
        {"event": "made", "item": 1, "key": "b", "needs": ["plan"], "receipt": {"seconds": 5.0}},
        {"event": "made", "item": None, "key": "ahead", "needs": ["plan"], "receipt": {"seconds": 50.0}},
        {"event": "made", "item": 0, "key": "end", "needs": ["a", "b"], "receipt": {"seconds": 0.5}},
    ]
    assert seconds_as_if_cold(lines) == 6.5


async def test_an_item_that_no_longer_can_be_read_is_replaced(bench: Bench, tmp_path: Path) -> None:
    made = pipeline(tmp_path)
    await bench.run(made)
    gone = next(line for line in bench.events("made", "read") if line["item"] == 0)
    bench.store._shelf.delete(f"value:{gone['ref']}")
    bench.work["read"] = failing({"https://one.example/1": 1}, Bench.read, "url")
    assert (await bench.run(made)).text == "noted t one.example/2 | noted t two.example/1"


def test_errors_of_a_fan_out_are_told_apart() -> None:
    assert WebError.of_item
    assert not AuthError.of_item
    assert not ResearchError.of_item
