"""Recorded result pages and API replies parse to the right state and the right hits; hostile ones do no harm."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import lxml.html
import pytest

from research.errors import UsageError
from research.web.engines import ENGINES, engine
from research.web.engines.base import LONGEST_QUERY, MOST_HITS, EngineReply, Options, Row, State, clean, day, reply

Data = Callable[[str], Path]

SETTINGS = {"SEARXNG_URL": "http://searx.test", "BRAVE_API_KEY": "b", "TAVILY_API_KEY": "t", "SERPER_API_KEY": "s"}
RECORDED = {  # the manifest's engine → ours
    "duckduckgo": "duckduckgo",
    "duckduckgo-html": "duckduckgo",
    "duckduckgo-lite": "duckduckgo",
    "mojeek": "mojeek",
    "wikipedia": "wikipedia",
    "wikipedia-api": "wikipedia",
    "searx": "searxng",
    "searxng-api": "searxng",
    "brave-api": "brave",
    "tavily-api": "tavily",
    "serper-api": "serper",
}
# Where the right reading is another than the manifest's label, and why.
OTHERWISE = {
    # The manifest calls "blocked" what asks for a puzzle to be solved.
    "duckduckgo-html-html-blocked-05ab1a.html": State.CAPTCHA,
    "duckduckgo-html-html-blocked-2299ef.html": State.CAPTCHA,
    "duckduckgo-html-html-blocked-aefc62.html": State.CAPTCHA,
    "duckduckgo-html-html-blocked-f4501c.html": State.CAPTCHA,
    # Shells whose results a script would load: the bytes don't tell whether there are any.
    "duckduckgo-html-empty-15b402.html": State.UNREADABLE,
    "duckduckgo-html-results-e7d8bc.html": State.UNREADABLE,
    # A web page where JSON was asked for.
    "searx-html-results-or-shell-58e4c2.html": State.DISABLED,
    # An error object: "title" search is disabled.
    "wikipedia-api-json-results-745645.json": State.DISABLED,
    # Replies to other requests than a search: page information, links, extracts, places.
    "wikipedia-api-json-results-112861.json": State.UNREADABLE,
    "wikipedia-api-json-results-15c09a.json": State.UNREADABLE,
    "wikipedia-api-json-results-221f55.json": State.UNREADABLE,
    "wikipedia-api-json-results-3c4861.json": State.UNREADABLE,
    "wikipedia-api-json-results-49786b.json": State.UNREADABLE,
    "wikipedia-api-json-results-94aeb0.json": State.UNREADABLE,
}
STATUS = {"searxng-api-html-blocked-6e26a9.html": 403}  # as its own heading says


def _recorded(data: Data) -> list[tuple[str, str, State, bytes]]:
    """(file name, our engine, the state it should parse to, body) of every recording of our engines."""
    folder = data("serp-responses") / "dev"
    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    found = []
    for row in rows:
        if row["engine"] in RECORDED:
            name = Path(row["file"]).name
            expected = OTHERWISE.get(name) or State(row["state"])
            found.append((name, RECORDED[row["engine"]], expected, (folder / row["file"]).read_bytes()))
    return found


def test_every_recording_parses_to_its_state(data: Data) -> None:
    recorded = _recorded(data)
    wrong = {
        name: (state, expected)
        for name, ours, expected, body in recorded
        if (state := engine(ours, SETTINGS).parse(STATUS.get(name, 200), body).state) is not expected
    }
    assert wrong == {}
    assert len(recorded) == 57
    assert set(OTHERWISE) <= {name for name, *_ in recorded}


def test_hits_are_the_organic_results_in_order(data: Data) -> None:
    """Against a second reading of each file, by other means than the engines'."""
    compared = 0
    for name, ours, expected, body in _recorded(data):
        if expected is State.RESULTS:
            hits = engine(ours, SETTINGS).parse(200, body).hits
            assert [(hit.url, hit.title) for hit in hits] == READ[ours](body), name
            assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
            compared += len(hits)
    assert compared == 304


def _plain(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", markup)).replace("\u200e", "").split())


def _read_duckduckgo(body: bytes) -> list[tuple[str, str]]:
    page = body.decode("utf-8", "replace")
    if 'data-layout="organic"' in page:
        blocks = page.split('data-layout="organic"')[1:]
        links = [re.search(r'<h2[^>]*><a href="([^"]*)"[^>]*>(.*?)</a>', block, re.S) for block in blocks]
        return [(link[1], _plain(link[2])) for link in links if link]
    pattern = (
        r"""<a rel="nofollow" (?:class="(?:large|result__a)" )?href="([^"]*)"(?: class='result-link')?>(.*?)</a>"""
    )
    marked = re.finditer(pattern, page, re.S)
    found = []
    for link in marked:
        if re.search(r"large|result__a|result-link", link[0].partition(">")[0]):
            target = re.search(r"uddg=([^&]*)", html.unescape(link[1]))
            found.append((unquote(target[1]) if target else html.unescape(link[1]), _plain(link[2])))
    return found


def _read_mojeek(body: bytes) -> list[tuple[str, str]]:
    links = lxml.html.fromstring(body.decode()).xpath('//ul[@class="results-standard"]/li/h2/a')
    return [(link.get("href"), " ".join(link.text_content().split())) for link in links]


def _read_wikipedia(body: bytes) -> list[tuple[str, str]]:
    titles = [found["title"] for found in json.loads(body)["query"]["search"] if "title" in found]
    # Of the characters in these titles, only spaces are written otherwise in a Wikipedia address.
    assert all(quote(title, safe=" ():/-.',+!") == title for title in titles)
    return [("https://en.wikipedia.org/wiki/" + title.replace(" ", "_"), title) for title in titles]


def _json_reader(*path: str, url: str = "url") -> Callable[[bytes], list[tuple[str, str]]]:
    def read(body: bytes) -> list[tuple[str, str]]:
        found: Any = json.loads(body)
        for key in path:
            found = found[key]
        return [(row[url], _plain(row["title"])) for row in found if row[url].startswith("http")]

    return read


READ = {
    "duckduckgo": _read_duckduckgo,
    "mojeek": _read_mojeek,
    "wikipedia": _read_wikipedia,
    "searxng": _json_reader("results"),
    "brave": _json_reader("web", "results"),
    "tavily": _json_reader("results"),
    "serper": _json_reader("organic", url="link"),
}


# What an engine must not let in.

HOSTILE = [
    "javascript:alert(1)",
    "file:///etc/passwd",
    "//host/path",
    "/relative",
    "https://example.org/" + "a" * 10_000,
    "https://user:pass@example.org/",
    "https://example.org\\@evil.example/",
    "ftp://example.org/",
    "data:text/html,x",
    "https://",
    "",
    None,
    7,
    ["https://example.org/"],
    {"url": "https://example.org/"},
    True,
]


def test_unusable_urls_are_dropped_and_counted() -> None:
    rows = [Row(url, "title") for url in HOSTILE] + [Row("https://example.org/ok", "fine")]
    found = reply(rows)
    assert [hit.url for hit in found.hits] == ["https://example.org/ok"]
    assert found.hits[0].rank == 1
    assert found.dropped == len(HOSTILE)
    assert found.state is State.RESULTS


@pytest.mark.parametrize("name", ["searxng", "brave", "tavily", "serper"])
def test_wrong_types_in_json_are_dropped(name: str) -> None:
    rows = [{"url": url, "link": url, "title": "t", "content": 5} for url in HOSTILE]
    rows += ["text", None, 3, {"url": "https://a.test/", "link": "https://a.test/", "title": ["x"]}]  # type: ignore[list-item]
    rows.append({"url": "https://a.test/", "link": "https://a.test/", "title": "Good", "content": {}})
    body = json.dumps({"type": "search", "results": rows, "web": {"results": rows}, "organic": rows}).encode()
    found = engine(name, SETTINGS).parse(200, body)
    assert [(hit.url, hit.title, hit.snippet) for hit in found.hits] == [("https://a.test/", "Good", "")]
    assert found.dropped == len(HOSTILE) + 4


@pytest.mark.parametrize("name", list(ENGINES))
@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'"x"', b"{}", b"[" * 100_000, b"\xff\xfe\x00", b"<html>", b'{"results": {"a": 1}}']
)
def test_a_reply_in_no_known_form_is_no_answer(name: str, body: bytes) -> None:
    found = engine(name, SETTINGS).parse(200, body)
    assert found.state in (State.UNREADABLE, State.DISABLED)
    assert found.hits == ()
    assert found.detail


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (401, State.DISABLED),
        (403, State.BLOCKED),
        (429, State.BLOCKED),
        (500, State.UNREADABLE),
        (302, State.UNREADABLE),
    ],
)
def test_a_refusal_is_no_answer(status: int, state: State) -> None:
    for name in ENGINES:
        expected = State.DISABLED if (name, status) == ("serper", 403) else state
        assert engine(name, SETTINGS).parse(status, b'{"message": "no"}').state is expected, name


def test_ten_thousand_results_are_cut() -> None:
    rows = [{"url": f"https://example.org/{number}", "title": "t"} for number in range(10_000)]
    found = engine("tavily", SETTINGS).parse(200, json.dumps({"results": rows}).encode())
    assert len(found.hits) == MOST_HITS
    assert found.dropped == 10_000 - MOST_HITS


def test_titles_become_plain_text() -> None:
    assert clean("<b>Bold</b> &lt;script&gt;alert(1)&lt;/script&gt;", 300) == "Bold alert(1)"
    assert clean("red \x1b[31m\x07alert\r\n\x9b2J next", 300) == "red [31malert 2J next"
    assert clean("in\u202evisible\u200b \u00adsoft", 300) == "invisible soft"
    assert clean("1 < 2 and a <3 b", 300) == "1 < 2 and a <3 b"
    assert clean("می\u200cخواهم", 300) == "می\u200cخواهم"
    assert clean(None, 300) == ""
    assert clean("x" * 400, 300) == "x" * 299 + "…"


def test_dates_are_read_in_the_engines_three_ways() -> None:
    assert day("2026-03-01T00:00:00Z") == "2026-03-01"
    assert day("Mon, 02 Jan 2023 15:04:05 GMT") == "2023-01-02"
    assert day("Jan 5, 2025") == "2025-01-05"
    assert day("September 4, 2023") == "2023-09-04"
    for nothing in (None, 5, "", "2 days ago", "2026-13-40", "yesterday"):
        assert day(nothing) is None


RESULT = '<div class="result results_links web-result {ad}"><h2><a class="result__a" href="{url}">T</a></h2></div>'


def _duckduckgo(*results: tuple[str, str]) -> EngineReply:
    boxes = "".join(RESULT.format(url=url, ad=ad) for url, ad in results)
    return engine("duckduckgo", {}).parse(200, f"<html><div id=links>{boxes}</div></html>".encode())


def test_duckduckgos_links_are_resolved_and_its_advertisements_left_out() -> None:
    found = _duckduckgo(
        ("//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.test%2Fx%3Fb%3D1%26c%3D2&rut=5", ""),
        ("https://duckduckgo.com/y.js?ad_provider=x&u3=https%3A%2F%2Fad.test", ""),
        ("https://ad.test/", "result--ad"),
        ("https://duckduckgo.com/?q=more&ia=news", ""),
        ("https://duckduckgo.com/about", ""),
        ("//duckduckgo.com/l/?uddg=javascript%3Aalert(1)", ""),
        ("https://[broken/", ""),
    )
    assert [hit.url for hit in found.hits] == ["https://a.test/x?b=1&c=2", "https://duckduckgo.com/about"]
    assert found.dropped == 2


def test_a_page_that_talks_of_captchas_is_no_captcha() -> None:
    page = RESULT.format(url="https://a.test/", ad="") + "<p>Solve the captcha: unusual traffic, cf-turnstile</p>"
    assert engine("duckduckgo", {}).parse(200, page.encode()).state is State.RESULTS


def test_the_lite_pages_sponsored_lines_are_left_out() -> None:
    line = "<tr class='{kind}'><td>1.</td><td><a class='result-link' href='{url}'>{url}</a></td></tr>"
    snippet = "<tr class='{kind}'><td></td><td class='result-snippet'>{text}</td></tr>"
    page = (
        line.format(kind="result-sponsored", url="https://ad.test/")
        + snippet.format(kind="result-sponsored", text="buy")
        + line.format(kind="", url="https://one.test/")
        + line.format(kind="", url="https://two.test/")
        + snippet.format(kind="", text="second")
    )
    hits = engine("duckduckgo", {}).parse(200, f"<table>{page}</table>".encode()).hits
    assert [(hit.url, hit.snippet) for hit in hits] == [("https://one.test/", ""), ("https://two.test/", "second")]


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 400_000,
        b'<div class="results_links">' * 20_000,
        b"<a " + b" ".join(b"a%d" % number for number in range(300_000)) + b">",
        b"<a " + b"x" * 2_000_000,
        b"<table><tr><td>" * 20_000,
    ],
    ids=["nesting", "nested boxes", "attributes", "one tag", "tables"],
)
def test_a_page_made_to_be_slow_is_not_parsed(body: bytes) -> None:
    for name in ("duckduckgo", "mojeek"):
        found = engine(name, {}).parse(200, body[:2_000_000])
        assert (found.state, found.hits) == (State.UNREADABLE, ())
        assert "intricate" in found.detail


def test_an_empty_page_says_so() -> None:
    empty = {
        "duckduckgo": b"<table><tr><td>No  results.</td></tr></table>",
        "mojeek": b"<div class=result-col><p>No pages found matching: <em>zzqx</em></p></div>",
        "wikipedia": b'{"batchcomplete": true, "query": {"searchinfo": {"totalhits": 0}, "search": []}}',
        "searxng": b'{"results": [], "unresponsive_engines": []}',
        "brave": b'{"type": "search", "query": {"original": "zzqx"}}',
        "tavily": b'{"results": []}',
        "serper": b'{"organic": []}',
    }
    for name, body in empty.items():
        assert engine(name, SETTINGS).parse(200, body).state is State.EMPTY, name


def test_searxng_without_its_engines_is_degraded() -> None:
    body = b'{"results": [], "unresponsive_engines": [["google", "timeout"], ["bing", "access denied"]]}'
    found = engine("searxng", SETTINGS).parse(200, body)
    assert found.state is State.DEGRADED
    assert "google, bing" in found.detail
    some = b'{"results": [{"url": "https://a.test/", "title": "A"}], "unresponsive_engines": [["google", "timeout"]]}'
    assert engine("searxng", SETTINGS).parse(200, some).state is State.RESULTS


def test_wikipedia_answers_in_the_language_that_was_asked() -> None:
    asked = engine("wikipedia", {}).request("Regen", 5, Options(language="de"))
    assert asked.url == "https://de.wikipedia.org/w/api.php"
    body = {"query": {"general": {"server": "https://de.wikipedia.org"}, "search": [{"title": "Köln/Bonn?"}]}}
    hits = engine("wikipedia", {}).parse(200, json.dumps(body).encode()).hits
    assert [hit.url for hit in hits] == ["https://de.wikipedia.org/wiki/K%C3%B6ln/Bonn%3F"]
    own = engine("wikipedia", {"WIKIPEDIA_BASE_URL": "http://127.0.0.1:8080/w/api.php"})
    assert own.request("x", 5, Options(language="de")).url == "http://127.0.0.1:8080/w/api.php"
    body["query"]["general"] = {"server": "https://evil.example"}  # type: ignore[assignment]
    assert own.parse(200, json.dumps(body).encode()).hits[0].url.startswith("http://127.0.0.1:8080/wiki/")
    assert engine("wikipedia", {}).parse(200, json.dumps(body).encode()).hits[0].url.startswith("https://en.wikipedia")


# What each engine is asked.


def test_each_engine_is_asked_as_its_documentation_says() -> None:
    options = Options(region="us", language="en", recency="month")
    calls = {name: engine(name, SETTINGS).request(" solar \n sails ", 7, options) for name in ENGINES}
    assert dict(calls["duckduckgo"].params) == {"q": "solar sails", "kl": "us-en", "df": "m"}
    assert dict(calls["mojeek"].params) == {"q": "solar sails", "lb": "en", "rb": "US", "since": "month"}
    assert calls["wikipedia"].params["srsearch"] == "solar sails"
    assert calls["wikipedia"].params["srlimit"] == "7"
    assert calls["searxng"].url == "http://searx.test/search"
    expected = {"q": "solar sails", "format": "json", "language": "en-US", "time_range": "month"}
    assert dict(calls["searxng"].params) == expected
    assert calls["brave"].params["freshness"] == "pm"
    assert calls["brave"].headers["X-Subscription-Token"] == "b"
    assert calls["tavily"].json == {"query": "solar sails", "max_results": 7, "time_range": "month"}
    assert calls["tavily"].headers["Authorization"] == "Bearer t"
    assert calls["serper"].json == {"q": "solar sails", "num": 7, "gl": "us", "hl": "en", "tbs": "qdr:m"}
    assert calls["serper"].headers["X-API-KEY"] == "s"


def test_without_options_nothing_is_added_to_the_query() -> None:
    assert dict(engine("duckduckgo", {}).request("rain 2019", 5, Options()).params) == {"q": "rain 2019"}
    assert dict(engine("mojeek", {}).request("rain", 5, Options()).params) == {"q": "rain"}


def test_a_long_query_is_cut_between_words() -> None:
    query = engine("duckduckgo", {}).request("word " * 200, 5, Options()).params["q"]
    assert len(query) <= LONGEST_QUERY
    assert set(query.split()) == {"word"}


def test_every_address_can_be_set() -> None:
    for name in ENGINES:
        variable = "SEARXNG_URL" if name == "searxng" else f"{name.upper()}_BASE_URL"
        call = engine(name, {variable: "http://127.0.0.1:9/x"}).request("q", 5, Options())
        assert call.url.startswith("http://127.0.0.1:9/x")


def test_a_missing_key_is_told_and_a_key_never_shown() -> None:
    for name, variable in (
        ("tavily", "TAVILY_API_KEY"),
        ("brave", "BRAVE_API_KEY"),
        ("serper", "SERPER_API_KEY"),
        ("searxng", "SEARXNG_URL"),
    ):
        assert variable in engine(name, {}).disabled
        assert engine(name, SETTINGS).disabled == ""
    assert "canary" not in repr(engine("brave", {"BRAVE_API_KEY": "canary"}))


def test_an_unknown_engine_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="duckduckgo, mojeek"):
        engine("altavista", {})
