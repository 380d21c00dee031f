"""Rows, results and resuming: every row accounted for once, and nothing done twice."""

from __future__ import annotations

import asyncio
import csv
import json
import os
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from research.app import App, load_pipeline
from research.batch import Batch, Choice, OtherRecipeError
from research.errors import (
    AuthError,
    OutOfMoneyError,
    OverloadedError,
    ResearchError,
    StoreError,
    UnknownModelError,
    UsageError,
)
from research.limits.budget import Caps
from research.llm.messages import Request
from research.questions import Questions, Row
from research.results import Results, write_sheet
from research.settings import Settings
from tests.batches import DATES, Counting, Lab, content, question, reply, tower

CALLS = 5  # of a model for one row: plan, rerank, two pages, synthesis


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


async def test_each_row_has_one_record_and_each_call_is_made_once(lab: Lab) -> None:
    batch = await lab.run()
    records = lab.records()
    assert sorted(record["id"] for record in records) == sorted(f"q{number}" for number in range(20))
    assert set(lab.calls.values()) == {1, 2}
    assert lab.calls.total() == 20 * CALLS
    first = next(record for record in records if record["id"] == "q7")
    assert (first["row"], first["line"], first["question"]) == (8, 9, question(7))
    assert first["columns"] == {"answer": "7 metres", "class": "heights"}
    assert (first["state"], first["ending"], first["answer"]) == ("done", "answered", "It is tall [1].")
    [citation] = first["citations"]
    assert citation["quote"] == "Tower 7 is 7 metres tall."
    assert citation["url"] == "https://site1.example/tower-7"
    assert first["answer"][citation["start"] : citation["end"]]
    assert first["paid"]["usd"] == pytest.approx(CALLS * 0.001)
    assert first["as_if_cold"]["usd"] == pytest.approx(CALLS * 0.001)
    assert (lab.folder / "home" / "runs" / first["run"] / "answer.json").is_file()
    assert first["as_of"] == "2025-03-01"
    assert batch.tally.usd == 20 * CALLS * 1_000_000
    assert batch.tally.endings == {"answered": 20}


async def test_a_second_time_nothing_is_run(lab: Lab) -> None:
    await lab.run()
    before = lab.out.read_bytes()
    calls = lab.calls.total()
    await lab.run()
    assert lab.out.read_bytes() == before
    assert lab.calls.total() == calls
    assert lab.rows is not None
    assert (lab.rows.counts.done, lab.rows.earlier, lab.rows.left) == (20, 20, 0)


async def test_failures_are_no_endings_and_are_run_again(tmp_path: Path) -> None:
    broken = {"3", "11"}

    def script(request: Request) -> Any:
        if request.purpose == "synthesize" and tower(str(request.given)) in broken:
            return OverloadedError("busy")
        return reply(request)

    lab = Lab(tmp_path, script=script)
    batch = await lab.run()
    assert batch.tally.errors == {"OverloadedError": 2}
    assert batch.stop is None
    assert lab.rows is not None
    assert (lab.rows.counts.done, lab.rows.counts.failed, lab.rows.counts.not_started) == (18, 2, 0)
    failed = [record for record in lab.records() if record["state"] == "failed"]
    assert {record["id"] for record in failed} == {"q3", "q11"}
    assert failed[0]["error"] == {"kind": "OverloadedError", "message": "busy"}
    assert failed[0]["paid"]["usd"] == pytest.approx(0.004)  # all but the answer
    broken.clear()
    calls = lab.calls.copy()
    await lab.run()
    assert {*(lab.calls - calls)} == {"synthesize 3", "synthesize 11"}
    assert len(lab.records()) == 20  # the newer record takes the place of the older
    assert {record["state"] for record in lab.records()} == {"done"}


async def test_only_what_failed_is_retried_if_asked_for(tmp_path: Path) -> None:
    broken = {"2"}

    def script(request: Request) -> Any:
        return OverloadedError("busy") if tower(str(request.given)) in broken else reply(request)

    lab = Lab(tmp_path, 10, script)
    await lab.run(Choice(limit=4))
    assert Counter(record["state"] for record in lab.records()) == {"done": 3, "failed": 1}
    broken.clear()
    await lab.run(Choice(failed=True))
    assert lab.rows is not None
    assert (lab.rows.counts.done, lab.rows.counts.failed, lab.rows.counts.not_started) == (4, 0, 6)
    assert {record["id"] for record in lab.records()} == {"q0", "q1", "q2", "q3"}


@pytest.mark.parametrize("kind", [AuthError, OutOfMoneyError, UnknownModelError])
async def test_no_key_no_money_no_model_stop_it_early(tmp_path: Path, kind: type[ResearchError]) -> None:
    made = 0

    def script(request: Request) -> Any:
        nonlocal made
        made += 1
        return kind("it is gone") if made > 60 else reply(request)

    lab = Lab(tmp_path, 60, script, seconds=0.005)
    batch = await lab.run(most=8)
    assert lab.rows is not None
    counts = lab.rows.counts
    assert batch.stop is not None
    assert batch.stop.exit_code == kind.exit_code  # as of a single question
    assert made <= 60 + 8 * 2  # what was on its way: at most two calls a row
    assert counts.done + counts.failed + counts.not_started == counts.total == 60
    assert counts.not_started == 60 - counts.done - counts.failed > 20
    states = Counter(record["state"] for record in lab.records())
    assert states == {"done": counts.done, "failed": counts.failed, "not started": counts.not_started}
    assert counts.done >= 5
    assert 1 <= counts.failed <= 16
    made = -10_000
    await lab.run()
    assert Counter(record["state"] for record in lab.records()) == {"done": 60}
    assert len(lab.records()) == 60
    made_once = [key for key, count in lab.calls.items() if not key.startswith("extract") and count > 1]
    assert len(made_once) <= 16  # those that were refused


@pytest.mark.parametrize("most", [1, 16])
async def test_no_call_passes_the_cap_and_what_was_cut_short_is_run_again(tmp_path: Path, most: int) -> None:
    lab = Lab(tmp_path, 40, seconds=0.002)
    batch = await lab.run(most=most, caps=Caps(usd=60_500_000))  # at a tenth of a cent for each call
    assert batch.stop is not None
    assert (batch.stop.exit_code, "budget" in batch.stop.reason) == (5, True)
    assert lab.calls.total() <= 60
    assert lab.rows is not None
    counts = lab.rows.counts
    assert counts.done + counts.failed + counts.not_started == counts.total == 40
    assert (12 if most == 1 else 5) <= counts.done <= 12
    assert 1 <= counts.failed <= 2
    states = Counter(record["state"] for record in lab.records())
    assert states == {"done": counts.done, "failed": counts.failed, "not started": counts.not_started}
    assert {record["error"]["kind"] for record in lab.records() if record["state"] == "failed"} == {"BudgetError"}
    calls = lab.calls.total()
    await lab.run(caps=Caps(usd=60_500_000))  # the same command: no more is spent than was left, if any was
    assert calls <= lab.calls.total() <= 60
    assert most > 1 or lab.calls.total() == calls
    batch = await lab.run(caps=Caps(usd=300_000_000))
    assert batch.stop is None
    assert Counter(record["state"] for record in lab.records()) == {"done": 40}
    assert {record["ending"] for record in lab.records()} == {"answered"}
    again = {key for key, count in lab.calls.items() if count > (2 if key.startswith("extract") else 1)}
    assert all(key.startswith("synthesize") for key in again)  # from more facts than the cap had allowed
    assert len(again) <= 3


async def test_a_row_whose_own_time_is_up_stops_nobody(tmp_path: Path) -> None:
    lab = Lab(tmp_path, 6, seconds=0.0)
    slow = lab.web.fetch

    async def fetch(url: str) -> Any:
        await asyncio.sleep(5 if url.endswith("tower-3") else 0)
        return await slow(url)

    lab.web.fetch = fetch  # type: ignore[method-assign]
    batch = await lab.run(caps=Caps(seconds=1.0))
    assert batch.stop is None
    assert lab.rows is not None
    assert lab.rows.counts.done + lab.rows.counts.failed == 6
    assert lab.rows.counts.failed <= 1
    assert batch.tally.endings["answered"] == 5


async def test_a_provider_that_is_down_stops_it_and_one_that_stumbles_does_not(tmp_path: Path) -> None:
    lab = Lab(tmp_path, 300, lambda request: OverloadedError("down"))
    batch = await lab.run(most=4)
    assert batch.stop is not None
    assert batch.stop.exit_code == 6
    assert lab.rows is not None
    assert 20 <= lab.rows.counts.failed <= 40
    (tmp_path / "other").mkdir()
    stumbling = Lab(
        tmp_path / "other",
        100,
        lambda request: OverloadedError("x") if int(tower(str(request.given))) % 2 else reply(request),
    )
    batch = await stumbling.run()
    assert batch.stop is None
    assert stumbling.rows is not None
    assert (stumbling.rows.counts.done, stumbling.rows.counts.failed) == (50, 50)


async def test_another_recipe_is_told_and_replaces_only_if_forced(lab: Lab) -> None:
    await lab.run()
    before = content(lab.records())
    lab.pipeline = "top-n"
    with pytest.raises(OtherRecipeError, match="20 rows are answered by another recipe"):
        await lab.run()
    assert content(lab.records()) == before
    await lab.run(Choice(force=True))
    assert {record["pipeline"] for record in lab.records()} == {"top-n"}
    assert len(lab.records()) == 20


async def test_a_question_that_was_changed_is_run_again(lab: Lab) -> None:
    await lab.run()
    text = lab.file.read_text(encoding="utf-8")
    lab.file.write_text(text.replace(question(5), "How tall is tower 500?"), encoding="utf-8")
    await lab.run()
    assert next(record for record in lab.records() if record["id"] == "q5")["question"] == "How tall is tower 500?"
    assert "plan 500" in lab.calls


@pytest.mark.parametrize("most", [1, 7, None])
async def test_in_the_order_of_the_questions(tmp_path: Path, most: int | None) -> None:
    lab = Lab(tmp_path, 30)
    seen: list[int] = []
    original = Results.append

    def append(self: Results, record: Any) -> None:
        seen.append(record["row"])
        original(self, record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Results, "append", append)
        await lab.run(ordered=True, most=most)
    assert seen == [*range(1, 31)]
    assert [record["row"] for record in lab.records()] == [*range(1, 31)]


async def test_sorted_afterwards(lab: Lab) -> None:
    await lab.run()
    lines = lab.out.read_bytes().splitlines(keepends=True)
    lab.out.write_bytes(b"".join(lines[::-1]))
    results = Results(lab.out)
    write_sheet(results, lab.out.with_suffix(".csv"))
    results.settle(in_order=True)
    results.close()
    assert [record["row"] for record in lab.records()] == [*range(1, 21)]
    with open(lab.out.with_suffix(".csv"), encoding="utf-8-sig", newline="") as table:
        lines_of_table = [*csv.DictReader(table)]
    assert [line["id"] for line in lines_of_table] == [f"q{n}" for n in range(20)]
    for line, record in zip(lines_of_table, lab.records(), strict=True):
        assert None not in line  # no cell without a head
        assert [line["state"], line["run"], line["class"]] == [record["state"], record["run"], "heights"]
        assert float(line["paid_usd"]) == record["paid"]["usd"]
    assert sorted(lab.out.read_bytes().splitlines(keepends=True)) == sorted(lines)


async def test_a_sample_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    drawn = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        lab = Lab(tmp_path / name, 50)
        await lab.run(Choice(sample=5, seed=seed))
        drawn.append({record["id"] for record in lab.records()})
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(len(ids) == 5 for ids in drawn)


@pytest.mark.parametrize("cut", [1, 10, 100, 400])
async def test_a_last_line_that_was_cut_is_dropped_and_its_row_run_again(lab: Lab, cut: int) -> None:
    await lab.run()
    whole = content(lab.records())
    data = lab.out.read_bytes()
    lab.out.write_bytes(data[:-cut])
    if cut == 1:  # only the end of the line is gone
        results = Results(lab.out)
        results.close()
        assert (results.notices, len(results.past)) == ([], 20)
        assert lab.out.read_bytes() == data
    else:
        results = Results(lab.out)
        results.close()
        assert "cut short" in results.notices[0]
        assert len(results.past) == 19
        assert lab.out.read_bytes() == data[: data[:-1].rindex(b"\n") + 1]
    calls = lab.calls.total()
    await lab.run()
    assert content(lab.records()) == whole
    assert lab.calls.total() == calls  # all of it was in the store


async def test_a_damaged_line_costs_its_row_only(lab: Lab) -> None:
    await lab.run()
    whole = content(lab.records())
    lines = lab.out.read_bytes().splitlines(keepends=True)
    lines[4] = b'{"id": "q\0\0\0\n'
    lab.out.write_bytes(b"".join(lines))
    results = Results(lab.out)
    results.close()
    assert "line 5 is damaged" in results.notices[0]
    await lab.run()
    assert content(lab.records()) == whole
    assert len(lab.records()) == 20


def test_one_process_writes_a_file(tmp_path: Path) -> None:
    first = Results(tmp_path / "out.jsonl")
    with pytest.raises(UsageError, match="another process writes it"):
        Results(tmp_path / "out.jsonl")
    first.close()
    assert not (tmp_path / "out.jsonl").exists()  # nothing was written
    Results(tmp_path / "out.jsonl").close()


@pytest.mark.parametrize("text", ["question\nWhat?\n", '{"question": "What?"}\n', "[]\n", "\n"])
def test_what_is_no_results_file_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "precious.jsonl"
    file.write_text(text)
    with pytest.raises(UsageError, match="no results file"):
        Results(file)
    assert file.read_text() == text


async def test_a_full_disk_leaves_whole_records(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a record is written, then nothing more."""
    original, left = os.write, 5

    def write(file: int, data: bytes) -> int:
        nonlocal left
        if left <= 0:
            raise OSError(28, "No space left on device")
        left -= data.startswith(b'{"row"')
        return original(file, data if left else data[: len(data) // 2])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(StoreError, match="No space left"):
        await lab.run()
    monkeypatch.undo()
    assert len(lab.records()) == 4
    await lab.run()
    assert len(lab.records()) == 20
    assert set(lab.calls.values()) == {1, 2}


def test_records_survive_any_text(tmp_path: Path) -> None:
    results = Results(tmp_path / "out.jsonl")
    texts = ["line\u2028separator", "next\x85line", "cr\rlf\n", "\x1b[2J", "\ud800 half", "日本"]
    for number, text in enumerate(texts):
        results.append({"id": str(number), "state": "done", "recipe": "r", "question": text, "row": number})
    results.close()
    lines = (tmp_path / "out.jsonl").read_bytes().decode().splitlines()
    assert len(lines) == len(texts)
    assert [json.loads(line)["question"] for line in lines] == texts


@dataclass
class SharedRows:
    """Rows of a queue that several batches take from, as many machines would."""

    left: deque[Row]
    records: list[dict[str, Any]] = field(default_factory=list)

    async def take(self) -> Row | None:
        await asyncio.sleep(0)
        return self.left.popleft() if self.left else None

    async def finish(self, row: Row, record: Mapping[str, Any]) -> None:
        await asyncio.sleep(0)
        self.records.append(dict(record))


async def test_rows_may_be_kept_elsewhere_and_shared_by_several(lab: Lab) -> None:
    shared = SharedRows(deque(Questions(lab.file).rows()))
    await lab.run(Choice(limit=1))
    app = App(Settings(lab.folder / "home"), {name: Counting(lab) for name in ("cheap", "capable")})
    pipeline = load_pipeline("fixed")

    def ask(row: Row, listen: Callable[[dict[str, Any]], None]) -> Any:
        return app.ask(row.question, pipeline, lab.web, DATES, listeners=(listen,))

    batches = [Batch(shared, ask, {"recipe": "r"}, most=3) for _ in range(3)]
    await asyncio.gather(*(batch.run() for batch in batches))
    app.close()
    assert sorted(record["id"] for record in shared.records) == sorted(f"q{number}" for number in range(20))
    assert sum(batch.tally.ended for batch in batches) == 20
    assert all(batch.tally.ended for batch in batches)
    assert lab.calls.total() == 20 * CALLS
