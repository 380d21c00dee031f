"""What became of a search, counted from journals."""

from __future__ import annotations

from typing import Any

from research.records import Answer, Citation, Ending, Fact, Grade
from research.tally import Tally, tally

FETCH, SEARCH = {"kind": "fetch 1"}, {"kind": "search 1"}


def made(item: int | None, outcome: str, stage: str = "fetch", event: str = "made") -> dict[str, Any]:
    return {"event": event, "stage": stage, "item": item, "parts": FETCH, "receipt": {"outcome": outcome}}


def fact(url: str, grade: Grade) -> Fact:
    return Fact(claim="c", quote="q", start=0, end=1, grade=grade, url=url, page="p")


def test_of_a_stage_that_wants_some() -> None:
    lines = [
        made(None, "ok"),  # fetched ahead, and of no use
        made(0, "gone"),
        {"event": "dropped", "stage": "fetch", "item": 0, "reason": "gone: https://a.test/"},
        made(1, "ok (PDF)", event="reused"),
        made(2, "ok"),
        {"event": "dropped", "stage": "extract", "item": 1, "reason": "blocked: no page of a fetch"},
        {
            "event": "selected", "stage": "fetch", "chosen": [1, 2], "of": 9,
            "left": {"0": "gone: https://a.test/", "3": "timed out: not there", "4": "https://b.test: odd", "5": "gone: x"},
        },
        {"event": "selected", "stage": "screen", "chosen": [1, 2, 3], "of": 7},
    ]  # fmt: skip
    citations = tuple(
        Citation(number=n, start=0, end=1, fact=fact(url, grade))
        for n, (url, grade) in enumerate(
            [("https://a.test/1", Grade.EXACT), ("https://a.test/1", Grade.FUZZY), ("https://a.test/2", Grade.SNIPPET)]
        )
    )
    counted = tally(lines, Answer(text="x", ending=Ending.ANSWERED, citations=citations))
    lost = {"gone": 2, "timed out": 1, "not read": 1}
    unread = ("gone: https://a.test/", "timed out: not there", "https://b.test: odd", "gone: x")
    assert counted == Tally(found=9, read=2, pdf=1, lost=lost, cited=2, snippets=1, unread=unread)
    assert str(counted) == ("9 found, 2 read (1 PDF), 2 gone, 1 timed out, 1 not read, 2 cited (1 by its snippet only)")


def test_of_a_stage_that_takes_all() -> None:
    lines = [
        made(0, "ok"),
        made(1, "blocked"),
        {"event": "dropped", "stage": "fetch", "item": 1, "reason": "blocked: https://a.test/"},
        {"event": "dropped", "stage": "fetch", "item": 2, "reason": "not reached: https://b.test/ broke"},
    ]
    assert str(tally(lines)) == "3 found, 1 read, 1 blocked, 1 not reached, 0 cited"
    assert tally(lines).unread == ("blocked: https://a.test/", "not reached: https://b.test/ broke")


def test_skipped_engines_are_told_once() -> None:
    notes = ["skipped duckduckgo: captcha: wait", "narrowed"]
    line = {"event": "reused", "stage": "search", "item": 0, "parts": SEARCH, "receipt": {"notes": notes}}
    assert tally([line, line]).skipped == ("skipped duckduckgo: captcha: wait",)
    assert str(tally([line])) == "0 cited"
