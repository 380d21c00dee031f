"""What a run was told by the web is kept in a file, and that file answers again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from research.errors import NotRecordedError, StoreError, UsageError, WebError
from research.records import Hit, Outcome, Page
from research.web.base import Web, is_live
from research.web.world import Recorder, World


class Small:
    """A web of two pages; whatever else is asked of it fails for now."""

    name = "duckduckgo,wikipedia"
    source = "live"
    date = None

    async def search(self, query: str, top: int) -> list[Hit]:
        if query == "down":
            raise WebError("captcha")
        hits = [Hit(url=f"https://a.test/{n}", title=f"Tïtle {n}", snippet="x", rank=n, date=None) for n in (1, 2, 3)]
        return hits[:top] if query != "nothing" else []

    async def fetch(self, url: str) -> Page:
        if url.endswith("/2"):
            raise WebError("timed out")
        if "/1" in url:
            return Page(
                url="https://a.test/final", outcome=Outcome.OK, text="Text\nünïcode \u2028 \x7f", date="2020-01-01"
            )
        return Page(url=url, outcome=Outcome.GONE, detail="status 404")


async def _recorded(file: Path) -> None:
    with Recorder(Small(), file, "2024-05-06") as web:
        assert isinstance(web.source, str)
        for _ in range(2):
            await web.search(" rain  today ", 2)
        await web.search("snow", 10)
        await web.search("nothing", 10)
        with pytest.raises(WebError):
            await web.search("down", 10)
        for _ in range(2):
            await web.fetch("https://a.test/1?utm_source=x")
        await web.fetch("https://a.test/3")
        with pytest.raises(WebError):
            await web.fetch("https://a.test/2")


async def test_a_world_answers_as_the_web_did(tmp_path: Path) -> None:
    await _recorded(tmp_path / "w.jsonl")
    world: Web = World(tmp_path / "w.jsonl")
    live = Small()
    assert world.name == "duckduckgo,wikipedia"
    assert World(tmp_path / "w.jsonl").date == "2024-05-06"
    assert await world.search("rain today", 2) == await live.search("rain today", 2)
    assert await world.search("rain today", 1) == await live.search("rain today", 1)
    assert await world.search("snow", 10) == await live.search("snow", 10)
    assert await world.search("snow", 50) == await live.search("snow", 50)  # there were no more than three
    assert await world.search("nothing", 5) == []
    assert await world.fetch("https://A.test:443/1#x") == await live.fetch("https://a.test/1")
    assert await world.fetch("https://a.test/3") == await live.fetch("https://a.test/3")


async def test_what_a_world_lacks_is_named(tmp_path: Path) -> None:
    await _recorded(tmp_path / "w.jsonl")
    world = World(tmp_path / "w.jsonl")
    with pytest.raises(NotRecordedError, match="no search for 'hail'"):
        await world.search("hail", 2)
    with pytest.raises(NotRecordedError, match="no search for 'down'"):
        await world.search("down", 2)
    with pytest.raises(NotRecordedError, match="2 hits for 'rain today', and 3 are asked for"):
        await world.search("rain today", 3)
    with pytest.raises(NotRecordedError, match=r"no page for https://a\.test/2"):
        await world.fetch("https://a.test/2")


async def test_each_thing_is_written_once(tmp_path: Path) -> None:
    await _recorded(tmp_path / "w.jsonl")
    lines = (tmp_path / "w.jsonl").read_bytes().decode().split("\n")
    assert [next(iter(json.loads(line))) for line in lines if line] == [
        "world",
        "query",
        "query",
        "query",
        "asked",
        "asked",
    ]


async def test_the_source_is_the_content_in_any_order(tmp_path: Path) -> None:
    await _recorded(tmp_path / "a.jsonl")
    header, *rest = (tmp_path / "a.jsonl").read_text("utf-8").split("\n")[:-1]
    source = World(tmp_path / "a.jsonl").source
    (tmp_path / "b.jsonl").write_text("\n".join([header, *reversed(rest)]), "utf-8")
    assert World(tmp_path / "b.jsonl").source == source
    (tmp_path / "c.jsonl").write_text("\n".join([header, *rest]).replace("404", "410"), "utf-8")
    assert World(tmp_path / "c.jsonl").source != source
    again = World(tmp_path / "b.jsonl")
    assert (await again.fetch("https://a.test/1")).text == "Text\nünïcode \u2028 \x7f"


async def test_two_recordings_share_nothing_of_the_store(tmp_path: Path) -> None:
    with Recorder(Small(), tmp_path / "a", "2024-01-01") as one, Recorder(Small(), tmp_path / "b", "2024-01-01") as two:
        assert len({one.source, two.source, "live"}) == 3
        assert is_live(one.source)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "w").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        Recorder(Small(), tmp_path / "w", "2024-01-01")
    assert (tmp_path / "w").read_text() == "mine"
    with pytest.raises(StoreError, match="can't be written"):
        Recorder(Small(), tmp_path / "no" / "w", "2024-01-01")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "first line"),
        ("not json", "Invalid JSON"),
        ('{"world": 2, "name": "x", "date": "2024-01-01"}', "version 1"),
        ('{"world": "1", "name": "x", "date": "2024-01-01"}', "world: Input should be a valid integer"),
        ('{"world": 1, "name": "x", "date": "2024-01-01"}\n{"asked": 1}', "line 2"),
        (
            '{"world": 1, "name": "x", "date": "2024-01-01"}\n{"query": "q", "top": 1, "hits": [{"url": 5}]}',
            "line 2: hits",
        ),
        ('{"world": 1, "name": "x", "date": "2024-01-01"}\n\n', "line 2"),
        ('{"world": 1, "name": "x", "date": "2024-01-01", "base_url": "http://evil"}', "base_url"),
    ],
)
def test_what_is_no_world_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "w").write_text(text)
    with pytest.raises(UsageError, match="no world file") as error:
        World(tmp_path / "w")
    assert said in str(error.value)


def test_a_missing_world_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="check the path"):
        World(tmp_path / "w")
