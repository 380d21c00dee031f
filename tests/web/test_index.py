"""Searching an index and fetching from it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from research.errors import StoreError, UsageError
from research.records import Outcome
from research.web.index import LocalWeb
from tests.web.index_reading import built, written

FILES = {
    "cats.txt": "The cat sat on the mat. It purred.",
    "dogs.txt": "The dog barked at the postman. A cat watched.",
    "prices.html": "<title>Consumer prices</title><p>The index rose 3.1 percent in <b>2023</b>.</p>",
    "tokyo.md": "# 東京都\n\n東京都の人口は1400万人です。黒猫が歩いている。",
    "cafe.txt": "Le café de Beyoncé est ouvert à Straßburg.",
}


@pytest.fixture
async def index(tmp_path: Path) -> Path:
    await built(tmp_path / "made" / "docs.db", written(tmp_path / "docs", FILES))
    return tmp_path / "made" / "docs.db"


async def names(index: Path, query: str, top: int = 10) -> list[str]:
    with LocalWeb(index, "docs") as web:
        hits = await web.search(query, top)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [hit.url.rpartition("/")[2] for hit in hits]


async def test_hits_have_title_snippet_rank_date_and_a_file_url(index: Path, tmp_path: Path) -> None:
    with LocalWeb(index, "docs", "2024-06-01") as web:
        (hit,) = await web.search("consumer price index", 5)
        assert (web.name, web.date) == ("docs", "2024-06-01")
    assert hit.url == (tmp_path / "docs" / "prices.html").as_uri()
    assert (hit.title, hit.rank, hit.date) == ("Consumer prices", 1, "2024-05-06")
    assert hit.snippet == "The index rose 3.1 percent in 2023."


async def test_any_word_counts_and_the_best_match_leads(index: Path) -> None:
    assert await names(index, "a cat that purred") == ["cats.txt", "dogs.txt"]
    assert await names(index, "cat", top=1) == ["cats.txt"]
    assert await names(index, "cat", top=0) == []
    assert await names(index, "giraffe") == []


async def test_a_word_in_the_title_weighs_more(tmp_path: Path) -> None:
    files = {
        "a.html": "<title>Ferry</title>zebra zebra zebra",
        "b.html": "<title>Zebra</title>ferry ferry ferry",
        "c.html": "<title>Other</title>nothing of the kind",
    }
    await built(tmp_path / "i.db", written(tmp_path / "docs", files))
    assert await names(tmp_path / "i.db", "zebra") == ["b.html", "a.html"]
    assert await names(tmp_path / "i.db", "ferry") == ["a.html", "b.html"]


async def test_equal_documents_stand_in_order_of_their_urls(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    for number in (*range(99, 49, -1), *range(10, 50)):  # indexed in another order
        written(docs, {f"{number}.txt": "same words"})
        if number in (50, 49):
            await built(tmp_path / "i.db", docs)
    written(docs, {"best.txt": "same words words"})
    await built(tmp_path / "i.db", docs)
    assert await names(tmp_path / "i.db", "words", top=3) == ["best.txt", "10.txt", "11.txt"]
    assert len(await names(tmp_path / "i.db", "words", top=200)) == 91


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("東京都の人口", ["tokyo.md"]),
        ("人口", ["tokyo.md"]),
        ("猫", ["tokyo.md"]),  # amid 黒猫が
        ("ＴＯＫＹＯ 東京", ["tokyo.md"]),
        ("大阪", []),
        ("BEYONCE", ["cafe.txt"]),
        ("beyoncé", ["cafe.txt"]),
        ("Beyonce\u0301", ["cafe.txt"]),
        ("strassburg", ["cafe.txt"]),
        ("２０２３", ["prices.html"]),
    ],
)
async def test_scripts_without_spaces_accents_and_widths(index: Path, query: str, found: list[str]) -> None:
    assert await names(index, query) == found


@pytest.mark.parametrize(
    "query",
    [
        '"',
        'cat"',
        "cat OR",
        "cat AND NOT dog",
        "NEAR(cat dog, 5)",
        "title:cat",
        "{title body}: cat",
        "cat*",
        "^cat",
        "cat\0dog",
        "-cat +dog",
        "(cat",
        "cat; DROP TABLE words",
        "c\ud800at cat",
        "'' OR 0=0 cat",
        "cat " * 5_000,
    ],
)
async def test_a_query_is_words_and_never_an_expression(index: Path, query: str) -> None:
    found = await names(index, query)
    assert ("cats.txt" in found) == ("cat" in query)
    assert set(found) <= {"cats.txt", "dogs.txt"}


@pytest.mark.parametrize("query", ["", "  ", "?!", "\0", "\u200b", "\ud800"])
async def test_a_query_without_words_finds_nothing(index: Path, query: str) -> None:
    assert await names(index, query) == []


async def test_a_query_of_stop_words_alone_is_searched_by_them(index: Path) -> None:
    assert await names(index, "the") == ["cats.txt", "dogs.txt", "prices.html"]


async def test_pages_are_fetched_as_they_were_read(index: Path, tmp_path: Path) -> None:
    url = (tmp_path / "docs" / "prices.html").as_uri()
    with LocalWeb(index, "docs") as web:
        page = await web.fetch(url + "#part")
    assert (page.url, page.outcome, page.title) == (url, Outcome.OK, "Consumer prices")
    assert page.text == "The index rose 3.1 percent in 2023."


@pytest.mark.parametrize("url", ["https://example.org/", "file:///etc/passwd", "javascript:alert(1)", "", "\0"])
async def test_what_is_not_in_the_index_is_gone(index: Path, url: str) -> None:
    with LocalWeb(index, "docs") as web:
        page = await web.fetch(url)
    assert (page.url, page.outcome, page.text) == (url, Outcome.GONE, "")
    assert "docs" in page.detail


async def test_an_open_web_stays_as_it_was(index: Path, tmp_path: Path) -> None:
    with LocalWeb(index, "docs") as before:
        written(tmp_path / "docs", {"cats.txt": "Only birds now."})
        report = await built(index, tmp_path / "docs")
        assert report.changed == 1
        assert len(await before.search("cat", 5)) == 2
        with LocalWeb(index, "docs") as after:
            assert len(await after.search("cat", 5)) == 1
            assert before.source != after.source == report.source
        assert (await before.fetch((tmp_path / "docs" / "cats.txt").as_uri())).text == FILES["cats.txt"]


def test_a_missing_index_is_told_with_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="research index build"):
        LocalWeb(tmp_path / "none.db", "none")
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_index_is_told(tmp_path: Path) -> None:
    (tmp_path / "i.db").touch()
    with pytest.raises(UsageError, match="empty, or still being built"):
        LocalWeb(tmp_path / "i.db", "docs")


async def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    foreign = tmp_path / "notes.db"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE notes(text)")
    connection.commit()
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(UsageError, match="another program"):
        LocalWeb(foreign, "notes")
    with pytest.raises(UsageError, match="another program"):
        await built(foreign, written(tmp_path / "docs", FILES))
    assert foreign.read_bytes() == before


async def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    broken = tmp_path / "i.db"
    broken.write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(StoreError, match="delete it and build it again"):
        LocalWeb(broken, "docs")
    with pytest.raises(StoreError, match="delete it and build it again"):
        await built(broken, written(tmp_path / "docs", FILES))
    assert broken.read_bytes().startswith(b"not a database")


async def test_a_tampered_page_is_never_given_out(index: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(index)
    connection.execute("UPDATE pages SET record = replace(record, '3.1 percent', '9.9 percent')")
    connection.commit()
    connection.close()
    with LocalWeb(index, "docs") as web:
        with pytest.raises(StoreError, match="damaged"):
            await web.fetch((tmp_path / "docs" / "prices.html").as_uri())
        with pytest.raises(StoreError, match="damaged"):
            await web.search("consumer prices", 3)


@pytest.mark.parametrize("table", ["documents", "pages"])
async def test_rows_that_are_gone_are_told_and_not_stumbled_over(index: Path, table: str) -> None:
    connection = sqlite3.connect(index)
    connection.execute(f"DELETE FROM {table}")
    connection.commit()
    connection.close()
    with LocalWeb(index, "docs") as web, pytest.raises(StoreError, match="damaged"):
        await web.search("consumer prices", 3)


async def test_overwritten_pages_of_the_file_are_told(index: Path) -> None:
    content = bytearray(index.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    index.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        LocalWeb(index, "docs")


async def test_another_versions_index_is_told_and_made_anew(index: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(index)
    connection.execute("UPDATE about SET value = '0' WHERE name = 'version'")
    connection.commit()
    connection.close()
    with pytest.raises(UsageError, match="another version"):
        LocalWeb(index, "docs")
    assert (await built(index, tmp_path / "docs")).added == len(FILES)
    assert await names(index, "purred") == ["cats.txt"]
