"""Keeping an index in step with a folder or a JSONL file."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from research.errors import StoreError, UsageError, WebError
from research.records import Outcome, Page
from research.web.index import BuildReport, LocalWeb, build, building, terms
from tests.web.index_reading import PlainReader, built, written

FILES = {"a.txt": "alpha", "b.md": "beta", "sub/c.html": "<title>Gamma</title>gamma"}


def counts(report: BuildReport) -> tuple[int, int, int, int]:
    return report.added, report.changed, report.unchanged, report.removed


async def found(index: Path, query: str) -> list[str]:
    with LocalWeb(index, "docs") as web:
        return [hit.url.rpartition("/")[2] for hit in await web.search(query, 10)]


def jsonl(path: Path, *entries: object) -> Path:
    lines = [entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in entries]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


async def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    docs, index, reader = written(tmp_path / "docs", FILES), tmp_path / "i.db", PlainReader()
    first = await build(index, docs, reader)
    assert counts(first) == (3, 0, 0, 0)
    assert sorted(reader.types.values()) == ["text/html", "text/markdown", "text/plain"]
    assert counts(await build(index, docs, reader)) == (0, 0, 3, 0)
    assert len(reader.read_urls) == 3

    written(docs, {"a.txt": "changed", "d.txt": "delta"})
    (docs / "b.md").unlink()
    third = await build(index, docs, reader)
    assert counts(third) == (1, 1, 1, 1)
    assert len(reader.read_urls) == 5
    assert [await found(index, word) for word in ("alpha", "changed", "beta", "delta", "gamma")] == [
        [],
        ["a.txt"],
        [],
        ["d.txt"],
        ["c.html"],
    ]
    assert first.source != third.source


async def test_a_touched_file_with_the_same_bytes_is_unchanged(tmp_path: Path) -> None:
    docs, index, reader = written(tmp_path / "docs", FILES), tmp_path / "i.db", PlainReader()
    first = await build(index, docs, reader)
    os.utime(docs / "a.txt", (1, 1))
    again = await build(index, docs, reader)
    assert (counts(again), again.source) == ((0, 0, 3, 0), first.source)
    assert len(reader.read_urls) == 3


async def test_a_changed_file_of_the_same_size_is_read(tmp_path: Path) -> None:
    docs, index = written(tmp_path / "docs", FILES), tmp_path / "i.db"
    await built(index, docs)
    written(docs, {"a.txt": "omega"})
    os.utime(docs / "a.txt", (1, 1))
    assert counts(await built(index, docs)) == (0, 1, 2, 0)
    assert await found(index, "omega") == ["a.txt"]


async def test_an_index_kept_in_step_scores_like_a_new_one(tmp_path: Path) -> None:
    docs, kept, new = tmp_path / "docs", tmp_path / "kept.db", tmp_path / "new.db"
    for word in ("one", "two words", "three 東京都 words", "four"):
        written(docs, {f"{number}.txt": f"{word} text {number} " * number for number in range(1, 9)})
        (docs / "5.txt").unlink()
        kept_report = await built(kept, docs)
    new_report = await built(new, docs)
    assert kept_report.source == new_report.source
    scores = []
    for index in (kept, new):
        with LocalWeb(index, "docs") as web:
            sql = "SELECT documents.url, bm25(words) FROM words JOIN documents ON id = words.rowid WHERE words MATCH ?"
            rows = web._connection.execute(sql + " ORDER BY 2, 1", ('"four" OR "text" OR "3"',)).fetchall()
            scores.append(rows)
            assert await web.search("two words 東京", 5) == []
    assert len(scores[0]) == 7
    assert scores[0] == scores[1]


async def test_the_same_content_gives_the_same_source_anywhere(tmp_path: Path) -> None:
    page = {"url": "http://A.example:80/x", "title": "T", "text": "words"}
    other = {"url": "http://b.example/", "file": "b.html", "title": "B"}
    sources = []
    for place, entries in (("here", (page, other)), ("there", (other, page))):
        written(tmp_path / place, {"b.html": "text of b"})
        path = jsonl(tmp_path / place / "pages.jsonl", *entries)
        sources.append((await built(tmp_path / f"{place}.db", path)).source)
    page["text"] = "other words"
    sources.append((await built(tmp_path / "here.db", jsonl(tmp_path / "here" / "pages.jsonl", page, other))).source)
    assert sources[0] == sources[1] != sources[2]
    assert len(sources[0]) == 64


async def test_only_documents_below_the_folder_are_taken(tmp_path: Path) -> None:
    secret = written(tmp_path, {"secret.txt": "secret"}) / "secret.txt"
    docs = written(tmp_path / "docs", FILES | {".hidden.txt": "x", ".git/x.txt": "x", "image.png": "x", "E.PDF": "pdf"})
    (docs / "link.txt").symlink_to(secret)
    (docs / "inside.txt").symlink_to(docs / "a.txt")
    (docs / "loop.txt").symlink_to(docs / "loop.txt")
    (docs / "up").symlink_to(tmp_path)
    os.mkfifo(docs / "pipe.txt")
    report = await built(tmp_path / "i.db", docs)
    assert report.added == 5
    assert [item.place for item in report.unreadable] == ["link.txt", "loop.txt", "pipe.txt"]
    assert report.unreadable[0].reason == "it lies outside the folder"
    assert await found(tmp_path / "i.db", "secret") == []
    assert await found(tmp_path / "i.db", "alpha") == ["a.txt", "inside.txt"]


async def test_awkward_file_names_come_back_by_their_url(tmp_path: Path) -> None:
    names = ["a b?.txt", "100%.txt", "%2e%2e.txt", "日本.txt", "a#b.txt", "ü.txt"]
    docs = written(tmp_path / "docs", {name: f"words {number}" for number, name in enumerate(names)})
    (docs / os.fsdecode(b"\xff.txt")).write_text("words raw")
    report = await built(tmp_path / "i.db", docs)
    assert (report.added, report.unreadable) == (7, [])
    with LocalWeb(tmp_path / "i.db", "docs") as web:
        hits = await web.search("words", 10)
        assert {hit.url for hit in hits} == {path.as_uri() for path in docs.iterdir()}
        assert (await web.fetch((docs / "100%.txt").as_uri())).text == "words 1"
        assert "日本" in {hit.title for hit in hits}


async def test_what_cannot_be_read_is_told_each_time_and_read_once(tmp_path: Path) -> None:
    docs, index, reader = written(tmp_path / "docs", FILES | {"x.html": "%broken"}), tmp_path / "i.db", PlainReader()
    for attempt in range(2):
        report = await build(index, docs, reader)
        assert [(item.place, item.reason) for item in report.unreadable] == [("x.html", "wrong type: not a document")]
        assert counts(report) == ((3, 0, 0, 0) if attempt == 0 else (0, 0, 3, 0))
    assert len(reader.read_urls) == 4
    assert await found(index, "noise") == []
    with LocalWeb(index, "docs") as web:
        assert (await web.fetch((docs / "x.html").as_uri())).outcome is Outcome.WRONG_TYPE
    written(docs, {"x.html": "mended"})
    assert counts(await build(index, docs, reader)) == (1, 0, 3, 0)


async def test_a_reading_that_may_yet_succeed_is_not_remembered(tmp_path: Path) -> None:
    class Failing(PlainReader):
        async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page:
            if url.endswith("a.txt"):
                raise WebError("the parser was stopped")
            return await super().read(body, url=url, content_type=content_type, status=status)

    docs, index = written(tmp_path / "docs", FILES), tmp_path / "i.db"
    report = await built(index, docs, Failing())
    assert (counts(report), report.unreadable[0].reason) == ((2, 0, 0, 0), "the parser was stopped")
    assert counts(await built(index, docs)) == (1, 0, 2, 0)


async def test_a_jsonl_of_texts(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "pages.jsonl",
        "\ufeff" + json.dumps({"url": "https://a.example/?utm_source=x", "title": "A", "text": "alpha", "id": 7}),
        "",
        {"url": "https://b.example/", "title": None, "text": "beta", "date": "2024-01-02"},
    )
    reader = PlainReader()
    assert counts(await build(tmp_path / "i.db", path, reader)) == (2, 0, 0, 0)
    assert counts(await build(tmp_path / "i.db", path, reader)) == (0, 0, 2, 0)
    assert reader.read_urls == []
    with LocalWeb(tmp_path / "i.db", "docs") as web:
        (hit,) = await web.search("alpha", 5)
        assert (hit.url, hit.title, hit.snippet) == ("https://a.example/", "A", "alpha")
        page = await web.fetch("https://b.example")
    assert (page.outcome, page.text, page.site, page.date) == (Outcome.OK, "beta", "b.example", "2024-01-02")


async def test_a_jsonl_of_files(tmp_path: Path) -> None:
    written(tmp_path / "web", {"p/a.html": "<title>Own</title>alpha", "p/b.html": "Please wait", "p/c.html": "x"})
    entries: list[dict[str, object]] = [
        {"url": "https://a.example/", "file": "p/a.html", "title": "Given", "snippet": "unused"},
        {"url": "https://b.example/", "file": "p/b.html", "title": "Blocked", "snippet": "beta inside", "status": 403},
        {"url": "https://c.example/", "file": "p/c.html", "status": 404},
    ]
    path, index, reader = jsonl(tmp_path / "web" / "pages.jsonl", *entries), tmp_path / "i.db", PlainReader()
    report = await build(index, path, reader)
    assert counts(report) == (2, 0, 0, 0)
    assert [(item.place, item.reason) for item in report.unreadable] == [("pages.jsonl line 3", "gone: status 404")]
    with LocalWeb(index, "web") as web:
        hits = await web.search("alpha beta given", 5)
        assert {(hit.url, hit.title, hit.snippet) for hit in hits} == {
            ("https://a.example/", "Given", "alpha"),
            ("https://b.example/", "Blocked", "beta inside"),
        }
        assert (await web.fetch("https://b.example/")).outcome is Outcome.GONE

    assert counts(await build(index, path, reader)) == (0, 0, 2, 0)
    assert len(reader.read_urls) == 3
    written(tmp_path / "web", {"p/a.html": "alpha anew"})
    entries[1]["title"] = "Still blocked"
    assert counts(await build(index, jsonl(path, *entries), reader)) == (0, 2, 0, 0)
    assert counts(await build(index, jsonl(path, entries[1]), reader)) == (0, 0, 1, 1)


async def test_bad_lines_are_told_and_the_others_used(tmp_path: Path) -> None:
    written(tmp_path, {"secret.txt": "secret", "web/ok.txt": "fine"})
    (tmp_path / "web" / "out.txt").symlink_to(tmp_path / "secret.txt")
    url = "https://a.example/"
    bad: list[object] = [
        "{",
        "[]",
        {"url": url},
        {"url": url, "text": "x", "file": "ok.txt"},
        {"url": "javascript:alert(1)", "text": "x"},
        {"url": "relative", "text": "x"},
        {"url": url, "file": "../secret.txt"},
        {"url": url, "file": str(tmp_path / "secret.txt")},
        {"url": url, "file": "out.txt"},
        {"url": url, "file": "missing.txt"},
        {"url": url, "file": "a\0b"},
        {"url": url, "file": ""},
        {"url": url, "text": 7},
        {"url": url, "text": "x", "status": "200 OK"},
        {"url": url, "text": "x", "date": "yesterday"},
        '{"url": "https://a.example/", "text": "\\ud800"}',
    ]
    repeated = {"url": "HTTPS://A.example:443/#x", "text": "secret"}
    path = jsonl(tmp_path / "web" / "pages.jsonl", *bad, {"url": url, "file": "ok.txt"}, repeated)
    report = await built(tmp_path / "i.db", path)
    assert report.added == 1
    assert [item.place for item in report.unreadable] == [f"pages.jsonl line {n}" for n in [*range(1, 17), 18]]
    assert all(item.reason for item in report.unreadable)
    assert "line 17" in report.unreadable[-1].reason
    assert await found(tmp_path / "i.db", "secret") == []


@pytest.mark.parametrize("name", ["nowhere", "page.html", "pages.json"])
async def test_sources_that_are_none_are_refused(tmp_path: Path, name: str) -> None:
    written(tmp_path, {"page.html": "x", "pages.json": "{}"})
    with pytest.raises(UsageError, match=r"(?s)\.jsonl file.*to build an index from"):
        await built(tmp_path / "i.db", tmp_path / name)


async def test_nothing_to_search_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    docs, index = written(tmp_path / "docs", FILES), tmp_path / "i.db"
    await built(index, docs)
    empty = written(tmp_path / "empty", {"x.html": "%broken", "y.png": "x"})
    with pytest.raises(UsageError, match=r"(?s)can be searched.*\.pdf.*x\.html: wrong type"):
        await built(index, empty)
    with pytest.raises(UsageError, match="can be searched"):
        await built(index, jsonl(tmp_path / "none.jsonl", "{"))
    assert await found(index, "alpha") == ["a.txt"]


async def test_a_failed_or_cancelled_build_changes_nothing(tmp_path: Path) -> None:
    docs, index = written(tmp_path / "docs", FILES), tmp_path / "i.db"
    source = (await built(index, docs)).source

    class Stuck(PlainReader):
        async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page:
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError

    class Raising(PlainReader):
        async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page:
            raise ZeroDivisionError

    written(docs, {"a.txt": "other", "b.md": "other"})
    reached = asyncio.Event()
    task = asyncio.create_task(built(index, docs, Stuck()))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ZeroDivisionError):
        await built(index, docs, Raising())
    with LocalWeb(index, "docs") as web:
        assert web.source == source
    assert counts(await built(index, docs)) == (0, 2, 1, 0)


async def test_builds_at_once_wait_for_each_other(tmp_path: Path) -> None:
    docs, index = written(tmp_path / "docs", FILES), tmp_path / "new" / "i.db"
    reports = await asyncio.gather(*(built(index, docs) for _ in range(4)))
    assert sorted(counts(report) for report in reports) == [(0, 0, 3, 0)] * 3 + [(3, 0, 0, 0)]
    assert len({report.source for report in reports}) == 1


async def test_a_build_that_waits_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting(PlainReader):
        async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page:
            reached.set()
            await done.wait()
            return await super().read(body, url=url, content_type=content_type, status=status)

    monkeypatch.setattr(building, "WAIT", 0.0)
    reached, done = asyncio.Event(), asyncio.Event()
    docs, index = written(tmp_path / "docs", FILES), tmp_path / "i.db"
    first = asyncio.create_task(built(index, docs, Waiting()))
    await reached.wait()
    with pytest.raises(StoreError, match="being built by another process"):
        await built(index, docs)
    with pytest.raises(UsageError, match="still being built"):
        LocalWeb(index, "docs")
    done.set()
    assert counts(await first) == (3, 0, 0, 0)


async def test_the_index_is_the_owners_alone(tmp_path: Path) -> None:
    index = tmp_path / "made" / "i.db"
    await built(index, written(tmp_path / "docs", FILES))
    with LocalWeb(index, "docs"):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (index.parent, *index.parent.iterdir())}
    assert modes.pop("made") == 0o700
    assert set(modes.values()) == {0o600}


async def test_progress_tells_how_many_of_how_many(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    docs = written(tmp_path / "docs", {f"{number}.txt": "x words" for number in range(70)})
    await build(tmp_path / "i.db", docs, PlainReader(), progress=lambda done, total: told.append((done, total)))
    path = jsonl(tmp_path / "p.jsonl", *[{"url": f"http://{n}.example/", "text": "x words"} for n in range(3)], "")
    await build(tmp_path / "i.db", path, PlainReader(), progress=lambda done, total: told.append((done, total)))
    assert told == [(32, 70), (64, 70), (70, 70), (3, 3)]


async def test_another_way_to_cut_words_fills_the_index_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs, index, reader = written(tmp_path / "docs", FILES), tmp_path / "i.db", PlainReader()
    first = await build(index, docs, reader)
    monkeypatch.setattr("research.web.index.writing.ANALYSIS", "another")
    monkeypatch.setattr("research.web.index.writing.searchable", lambda text: terms.searchable(text)[::-1])
    again = await build(index, docs, reader)
    assert (counts(again), again.source) == ((0, 0, 3, 0), first.source)
    assert len(reader.read_urls) == 3
    assert [await found(index, word) for word in ("alpha", "ahpla")] == [[], ["a.txt"]]


async def test_an_unwritable_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="check its folder"):
        await built(tmp_path / "file" / "i.db", written(tmp_path / "docs", FILES))
