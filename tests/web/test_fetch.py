"""Pages through redirects, caps, politeness and robots.txt, from a server that misbehaves."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from research.errors import WebError
from research.records import Outcome, Page
from research.web.fetch import Fetcher, Limits
from research.web.guard import Policy
from research.web.reader import Reader
from research.web.revisits import Validators
from tests import faults
from tests.faults import FaultServer
from tests.web.test_guard import INTERNAL

HTML = b"<html><title>T</title><p>" + b"Some words to read. " * 100 + b"</html>"
PUBLIC = Policy.of(["127.0.0.2/32"])  # in these tests, 127.0.0.2 is the internet and 127.0.0.1 is internal
NAMES = {
    "internal.example": ["127.0.0.1"],
    "mixed.example": ["127.0.0.2", "127.0.0.1"],
    "localhost": ["127.0.0.1", "::1"],
    "app.localhost": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "example.org": ["93.184.215.14"],
}


class TextReader:
    """Takes every body for text, and remembers what it was given."""

    def __init__(self) -> None:
        self.read_bodies: list[tuple[str, int, str]] = []

    async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page:
        self.read_bodies.append((url, len(body), content_type))
        return Page(url=url, outcome=Outcome.OK, text=body.decode("utf-8", "replace"))


async def _resolve(host: str, port: int) -> Sequence[str]:
    if host == "nowhere.example":
        raise OSError("no such name")
    return NAMES.get(host, ["127.0.0.2"])


@asynccontextmanager
async def _web(
    routes: dict[str, faults.Act], limits: Limits | None = None
) -> AsyncIterator[tuple[FaultServer, Fetcher, TextReader]]:
    """A server at 127.0.0.2, without robots.txt unless it is among the routes, and what fetches from it."""
    reader = TextReader()
    async with (
        FaultServer(routes) as server,
        Fetcher(reader, policy=PUBLIC, resolve=_resolve, limits=limits) as fetcher,
    ):
        yield server, fetcher, reader


async def test_a_page_is_read() -> None:
    async with _web({"/a": faults.reply(HTML)}) as (server, fetcher, reader):
        page = await fetcher.fetch(server.url("/a?b=c&utm_source=x#part"))
        assert (page.outcome, page.url) == (Outcome.OK, server.url("/a?b=c&utm_source=x"))
        assert page.text == HTML.decode()
        assert reader.read_bodies == [(page.url, len(HTML), "text/html; charset=utf-8")]
        assert server.paths() == ["/robots.txt", "/a?b=c&utm_source=x"]


async def test_the_headers_are_exact() -> None:
    routes = {"/a": faults.reply(HTML, headers={"Set-Cookie": "id=1"}), "/b": faults.redirect("/a")}
    async with _web(routes) as (server, fetcher, _):
        await fetcher.fetch(server.url("/b"))
        await fetcher.fetch(server.url("/a"))
        assert {"/robots.txt", "/a", "/b"} <= {*server.paths()}
        for request in server.requests:
            names = [name for name, _ in request.headers]
            assert sorted(names) == ["accept", "accept-encoding", "host", "user-agent"]
            assert request.header("user-agent") == "research/0.1"
            assert request.header("accept-encoding") == "gzip"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (401, Outcome.LOGIN),
        (402, Outcome.LOGIN),
        (403, Outcome.BLOCKED),
        (404, Outcome.GONE),
        (410, Outcome.GONE),
        (418, Outcome.EMPTY),
        (451, Outcome.BLOCKED),
        (204, Outcome.EMPTY),
        (304, Outcome.EMPTY),
    ],
)
async def test_a_status_that_is_no_success_gives_its_outcome_and_no_text(status: int, outcome: Outcome) -> None:
    body = b"" if status in (204, 304) else HTML
    async with _web({"/a": faults.reply(body, status)}) as (server, fetcher, reader):
        page = await fetcher.fetch(server.url("/a"))
        assert (page.outcome, page.text) == (outcome, "")
        assert str(status) in page.detail
        assert reader.read_bodies == []


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_a_status_that_may_pass_is_an_error(status: int) -> None:
    async with _web({"/a": faults.reply(HTML, status)}) as (server, fetcher, _):
        with pytest.raises(WebError, match=str(status)) as error:
            await fetcher.fetch(server.url("/a"))
        assert error.value.passing


async def test_a_challenge_is_no_page() -> None:
    for status in (200, 403, 503):
        act = faults.reply(HTML, status, {"cf-mitigated": "challenge"})
        async with _web({"/a": act}) as (server, fetcher, reader):
            assert (await fetcher.fetch(server.url("/a"))).outcome is Outcome.BLOCKED
            assert reader.read_bodies == []


@pytest.mark.parametrize(
    "act",
    [
        faults.short(HTML),
        faults.chunked(HTML, complete=False),
        faults.gzipped(HTML, cut=8),
        faults.reset(),
        faults.reset(faults.head(200, {"Content-Type": "text/html", "Content-Length": "99"}) + b"<p>"),
        faults.raw(b""),
    ],
)
async def test_an_incomplete_body_is_no_page(act: faults.Act) -> None:
    async with _web({"/a": act}) as (server, fetcher, reader):
        with pytest.raises(WebError) as error:
            await fetcher.fetch(server.url("/a"))
        assert error.value.passing
        assert reader.read_bodies == []


async def test_a_drip_ends_at_the_deadline_and_holds_nobody_up() -> None:
    routes = {"/drip": faults.drip(b"x" * 1000, every=0.05), "/fine": faults.reply(HTML)}
    async with _web(routes, Limits(deadline=0.5)) as (server, fetcher, _):
        drip = asyncio.create_task(fetcher.fetch(server.url("/drip")))
        fine = await fetcher.fetch(server.url("/fine"))
        assert fine.outcome is Outcome.OK
        assert not drip.done()
        with pytest.raises(WebError, match=r"within 0\.5 s"):
            await drip


async def test_the_deadline_covers_all_hops() -> None:
    slow = {f"/{hop}": faults.redirect(f"/{hop + 1}") for hop in range(4)}

    async def late(writer: asyncio.StreamWriter, request: faults.Received) -> None:
        await asyncio.sleep(0.2)
        await slow[request.path](writer, request)

    async with _web(dict.fromkeys(slow, late), Limits(deadline=0.5)) as (server, fetcher, _):
        with pytest.raises(WebError, match="did not answer"):
            await fetcher.fetch(server.url("/0"))
        assert server.paths() == ["/robots.txt", "/0", "/1", "/2"]


# Types and sizes


@pytest.mark.parametrize(
    ("body", "declared", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100, "text/html", "image/png"),
        (b"PK\x03\x04" + bytes(range(256)) * 100, "application/pdf", "application/zip"),
        (bytes(range(256)) * 100, "application/octet-stream", "application/octet-stream"),
        (b"\x89PNG\r\n\x1a\n", "", "image/png"),
        (b"<svg>" + b" " * 600, "image/svg+xml", "image/svg+xml"),
        (b"#EXTM3U\n", "audio/mpegurl; charset=utf-8", "audio/mpegurl"),
    ],
)
async def test_what_is_no_text_is_refused(body: bytes, declared: str, media_type: str) -> None:
    async with _web({"/a": faults.reply(body, headers={"Content-Type": declared})}) as (server, fetcher, reader):
        page = await fetcher.fetch(server.url("/a"))
        assert (page.outcome, page.media_type) == (Outcome.WRONG_TYPE, media_type)
        assert reader.read_bodies == []


@pytest.mark.parametrize("start", [b"\x89PNG\r\n\x1a\n", b"PK\x03\x04", b"\x00\x01\x02"])
async def test_what_is_no_text_is_left_after_4_kb(start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    from research import transport

    counted: list[int] = []
    check = transport.Stream._check
    monkeypatch.setattr(transport.Stream, "_check", lambda self: (counted.append(self.wire), check(self))[1])
    act = faults.endless(start + bytes(range(256)) * 40, headers={"Content-Type": "application/octet-stream"})
    async with _web({"/a": act}) as (server, fetcher, _):
        page = await fetcher.fetch(server.url("/a"))
        assert page.outcome is Outcome.WRONG_TYPE
        assert max(counted) <= 4096


@pytest.mark.parametrize("declared", ["application/octet-stream", "text/html", ""])
async def test_pdf_is_known_by_its_content(declared: str) -> None:
    body = b"%PDF-1.7\n" + bytes(range(256)) * 100
    async with _web({"/a.html": faults.reply(body, headers={"Content-Type": declared})}) as (server, fetcher, reader):
        await fetcher.fetch(server.url("/a.html"))
        assert [size for _, size, _ in reader.read_bodies] == [len(body)]


async def test_a_long_page_is_cut_and_says_so() -> None:
    body = b"<p>" + b"".join(b"%d words. " % number for number in range(200_000))
    for act in (faults.reply(body), faults.gzipped(body), faults.endless(body)):
        async with _web({"/a": act}, Limits(text=100_000)) as (server, fetcher, reader):
            page = await fetcher.fetch(server.url("/a"))
            assert (page.outcome, page.cut) == (Outcome.OK, True)
            assert page.text.encode() == body[:100_000]
            assert reader.read_bodies[0][1] == 100_000


async def test_a_pdf_that_is_too_large_is_not_cut_but_refused() -> None:
    pdf = b"%PDF-1.7\n" + bytes(range(256)) * 8
    declared = faults.endless(pdf, headers={"Content-Length": "900000000"})
    for act in (declared, faults.endless(pdf)):
        async with _web({"/a": act}, Limits(pdf=300_000)) as (server, fetcher, reader):
            page = await fetcher.fetch(server.url("/a"))
            assert (page.outcome, page.media_type) == (Outcome.TOO_LARGE, "application/pdf")
            assert reader.read_bodies == []


@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (faults.bomb(1 << 30), Outcome.TOO_LARGE),
        (faults.bomb(1 << 30, fill=b"\0"), Outcome.WRONG_TYPE),
        (faults.bomb(1 << 24, layers=2), Outcome.WRONG_TYPE),
        (faults.reply(b"\x0b" * 809, headers={"Content-Encoding": "br"}), Outcome.WRONG_TYPE),
        (faults.reply(b"\x28\xb5\x2f\xfd" * 8000, headers={"Content-Encoding": "zstd"}), Outcome.WRONG_TYPE),
        (faults.reply(gzip.compress(b"x" * 100), headers={"Content-Encoding": "gzip, br"}), Outcome.WRONG_TYPE),
        (faults.reply(gzip.compress(bytes(1 << 24)), headers={"Content-Type": "application/gzip"}), Outcome.WRONG_TYPE),
    ],
    ids=["gzip", "gzip of zeros", "stacked", "brotli", "zstd", "mixed", "a gzip file"],
)
async def test_bombs_are_refused_in_time_and_memory(act: faults.Act, outcome: Outcome) -> None:
    async with _web({"/a": act}, Limits(deadline=2.0)) as (server, fetcher, reader):
        tracemalloc.start()
        try:
            page = await fetcher.fetch(server.url("/a"))
            assert tracemalloc.get_traced_memory()[1] < 64_000_000
        finally:
            tracemalloc.stop()
        assert page.outcome is outcome
        assert reader.read_bodies == []


async def test_bytes_become_text_in_the_parser_process() -> None:
    article = "<html><head><title>Solar sails</title></head><body><article><h1>Solar sails</h1>" + (
        "<p>A solar sail is pushed by the pressure of sunlight on a large and very thin mirror.</p>" * 12
    )
    routes = {"/a": faults.gzipped(article.encode("utf-16")), "/c": faults.reply(b"", 404)}
    async with (
        Reader() as reader,
        FaultServer(routes) as server,
        Fetcher(reader, policy=PUBLIC, limits=Limits(text=2_000)) as fetcher,
    ):
        page = await fetcher.fetch(server.url("/a"))
        assert (page.outcome, page.title, page.cut) == (Outcome.OK, "Solar sails", True)
        assert page.text.count("pressure of sunlight") >= 8
        assert page.charset.startswith("utf-16")
        assert (await fetcher.fetch(server.url("/c"))).outcome is Outcome.GONE


# Redirects and addresses


async def test_redirects_lead_to_the_page_that_is_named() -> None:
    routes: dict[str, faults.Act] = {f"/{hop}": faults.redirect(f"/{hop + 1}") for hop in range(5)}
    routes["/5"] = faults.reply(HTML)
    async with _web(routes) as (server, fetcher, _):
        page = await fetcher.fetch(server.url("/0"))
        assert (page.outcome, page.url) == (Outcome.OK, server.url("/5"))
    routes["/5"] = faults.redirect("/6")
    routes["/6"] = faults.reply(HTML)
    async with _web(routes) as (server, fetcher, reader):
        assert (await fetcher.fetch(server.url("/0"))).outcome is Outcome.BLOCKED
        assert "/6" not in server.paths()
        assert reader.read_bodies == []


@pytest.mark.parametrize("routes", [{"/a": "/a"}, {"/a": "/b", "/b": "/a"}, {"/a": "/a#x"}])
async def test_a_loop_ends_at_once(routes: dict[str, str]) -> None:
    async with _web({path: faults.redirect(to) for path, to in routes.items()}) as (server, fetcher, _):
        assert (await fetcher.fetch(server.url("/a"))).outcome is Outcome.BLOCKED
        assert len(server.requests) == 1 + len(routes)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_each_kind_of_redirect_is_followed_by_get(status: int) -> None:
    routes = {"/a": faults.redirect("b?c", status), "/b": faults.reply(HTML)}
    async with _web(routes) as (server, fetcher, _):
        assert (await fetcher.fetch(server.url("/a"))).url == server.url("/b?c")


@pytest.mark.parametrize(
    "location",
    [
        "",
        "http://",
        "http://[::1",
        "http://user:pass@127.0.0.2/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ftp://127.0.0.2/",
        "data:text/html,x",
        "//",
        "http://127.0.0.2:99999/",
        "http://1.1.1.1:22/",
        "/" + "a" * 30_000,
    ],
)
async def test_a_broken_location_is_refused(location: str) -> None:
    async with _web({"/a": faults.redirect(location)}) as (server, fetcher, _):
        page = await fetcher.fetch(server.url("/a"))
        # Without a host, the URL standard's older rules make it the same page again: a loop.
        same_again = location in ("http://", "//")
        assert page.outcome is (Outcome.BLOCKED if same_again else Outcome.REFUSED_ADDRESS)


async def test_no_way_leads_to_an_internal_server() -> None:
    """Every spelling: as a link, as a redirect, and as a redirect of robots.txt."""
    async with FaultServer({}, host="127.0.0.1") as internal, _web({}) as (server, _, _reader):
        for spelling in INTERNAL:
            url = spelling.replace(":80/", "/").replace("127.0.0.1/", f"127.0.0.1:{internal.port}/")
            server.routes = {"/a": faults.redirect(url), "/b": faults.reply(HTML)}
            reader = TextReader()
            async with Fetcher(reader, policy=PUBLIC, resolve=_resolve) as fetcher:
                page = await fetcher.fetch(url)
                assert page.outcome is Outcome.REFUSED_ADDRESS, ascii(url)
                assert "127" not in page.detail
                if any(char in url for char in "\r\n\0"):
                    continue  # no header can hold it
                assert (await fetcher.fetch(server.url("/a"))).outcome is not Outcome.OK, ascii(url)
            server.routes["/robots.txt"] = server.routes["/a"]
            async with Fetcher(reader, policy=PUBLIC, resolve=_resolve) as fetcher:
                assert (await fetcher.fetch(server.url("/b"))).outcome is Outcome.OK
            assert [read for read, _, _ in reader.read_bodies] == [server.url("/b")]
            assert internal.connections == 0, ascii(url)


async def test_redirects_to_internal_addresses_are_refused_before_connecting() -> None:
    async with FaultServer({}, host="127.0.0.1") as internal:
        ways = [
            f"http://127.0.0.1:{internal.port}/",
            f"http://internal.example:{internal.port}/",
            f"http://mixed.example:{internal.port}/",
            f"//127.0.0.1:{internal.port}/",
            f"http://[::ffff:127.0.0.1]:{internal.port}/",
            f"http://2130706433:{internal.port}/",
            f"http://127.1:{internal.port}/",
            f"http://127.0.0.2@127.0.0.1:{internal.port}/",
        ]
        for way in ways:
            details = set()
            async with _web({"/a": faults.redirect(way)}) as (server, fetcher, _):
                page = await fetcher.fetch(server.url("/a"))
                assert page.outcome is Outcome.REFUSED_ADDRESS, way
                details.add(page.detail)
            assert len(details) == 1  # nothing tells one refusal from another
        assert internal.connections == 0


async def test_a_name_is_resolved_once_per_connection_and_pinned() -> None:
    answers = [["127.0.0.2"], ["127.0.0.1"]]

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    reader = TextReader()
    async with (
        FaultServer({"/a": faults.reply(HTML)}) as server,
        FaultServer({}, host="127.0.0.1") as internal,
        Fetcher(reader, policy=PUBLIC, resolve=rebinding) as fetcher,
    ):
        page = await fetcher.fetch(server.url("/a", host="rebinding.example"))
        assert page.outcome is Outcome.OK
        assert answers == [["127.0.0.1"]]  # robots.txt and the page came over one connection
        assert internal.connections == 0


async def test_a_name_that_does_not_exist_may_exist_later() -> None:
    async with _web({}) as (_, fetcher, _reader):
        with pytest.raises(WebError, match="check the address"):
            await fetcher.fetch("http://nowhere.example/")


# Politeness


async def test_a_host_gets_two_requests_at_once_and_the_others_are_not_held_up() -> None:
    busy = {f"/{number}": faults.reply(HTML, after=0.03) for number in range(40)}
    quiet = {f"/{number}": faults.reply(HTML) for number in range(10)}
    async with FaultServer(quiet, host="127.0.0.2") as others, _web(busy) as (server, fetcher, _):
        crowd = [asyncio.create_task(fetcher.fetch(server.url(path, host="busy.example"))) for path in busy]
        few = [asyncio.create_task(fetcher.fetch(others.url(path, host=f"quiet{path[1:]}.example"))) for path in quiet]
        assert {page.outcome for page in await asyncio.gather(*few)} == {Outcome.OK}
        assert sum(task.done() for task in crowd) < 30
        assert {page.outcome for page in await asyncio.gather(*crowd)} == {Outcome.OK}
        assert server.peak == 2
        assert fetcher._turns == {}


async def test_waiting_for_a_turn_does_not_count_as_the_pages_time() -> None:
    routes = {f"/{number}": faults.reply(HTML, after=0.2) for number in range(8)}
    async with _web(routes, Limits(deadline=0.5)) as (server, fetcher, _):
        pages = await asyncio.gather(*(fetcher.fetch(server.url(path)) for path in routes))
        assert {page.outcome for page in pages} == {Outcome.OK}


async def test_cancelling_frees_the_turn() -> None:
    async with _web({"/hang": faults.hang(), "/a": faults.reply(HTML)}) as (server, fetcher, _):
        tasks = [asyncio.create_task(fetcher.fetch(server.url("/hang"))) for _ in range(3)]
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (await fetcher.fetch(server.url("/a"))).outcome is Outcome.OK


# Pages that were read before


class Remembered:
    """What `revisits` is asked to keep, in a dict."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[Validators, Page]] = {}

    def earlier(self, url: str) -> tuple[Validators, Page] | None:
        return self.pages.get(url)

    def keep(self, url: str, validators: Validators, page: Page) -> None:
        self.pages[url] = validators, page


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ({"ETag": '"v1"'}, {"if-none-match": '"v1"'}),
        ({"ETag": 'W/"v1"'}, {"if-none-match": 'W/"v1"'}),
        ({"Last-Modified": "Sat, 01 Mar 2025 10:00:00 GMT"}, {"if-modified-since": "Sat, 01 Mar 2025 10:00:00 GMT"}),
        ({"ETag": '"' + "x" * 600 + '"'}, {}),
        ({}, {}),
    ],
)
async def test_a_page_that_has_not_changed_is_not_sent_again(told: dict[str, str], asked: dict[str, str]) -> None:
    revisits, reader = Remembered(), TextReader()
    routes = {"/old": faults.redirect("/a"), "/a": faults.reply(HTML, headers=told)}
    async with (
        FaultServer(routes) as server,
        Fetcher(reader, policy=PUBLIC, revisits=revisits) as fetcher,
    ):
        first = await fetcher.fetch(server.url("/old"))
        server.requests.clear()
        server.routes["/a"] = faults.reply(b"", 304) if asked else server.routes["/a"]
        again = await fetcher.fetch(server.url("/old"))
        assert again == first
        assert again.outcome is Outcome.OK
        requests = {request.path: dict(request.headers) for request in server.requests}
        sent = {name: text for name, text in requests["/a"].items() if name.startswith("if-")}
        assert sent == asked
        assert not any(name.startswith("if-") for name in requests["/old"])
        assert len(reader.read_bodies) == (1 if asked else 2)


async def test_a_page_that_has_changed_is_read_and_remembered_anew() -> None:
    revisits = Remembered()
    async with (
        FaultServer({"/a": faults.reply(HTML, headers={"ETag": '"v1"'})}) as server,
        Fetcher(TextReader(), policy=PUBLIC, revisits=revisits) as fetcher,
    ):
        await fetcher.fetch(server.url("/a"))
        server.routes["/a"] = faults.reply(HTML + b"<p>News.", headers={"ETag": '"v2"'})
        assert "News." in (await fetcher.fetch(server.url("/a"))).text
        assert revisits.pages[server.url("/a")][0].etag == '"v2"'
        server.routes["/a"] = faults.reply(b"", 404)
        assert (await fetcher.fetch(server.url("/a"))).outcome is Outcome.GONE


async def test_not_modified_without_having_been_asked_is_no_page() -> None:
    async with (
        FaultServer({"/a": faults.reply(b"", 304)}) as server,
        Fetcher(TextReader(), policy=PUBLIC, revisits=Remembered()) as fetcher,
    ):
        assert (await fetcher.fetch(server.url("/a"))).outcome is Outcome.EMPTY


async def test_what_is_cut_or_cannot_be_read_is_not_remembered() -> None:
    revisits, long = Remembered(), Limits(text=5_000)
    routes = {
        "/long": faults.reply(HTML * 9, headers={"ETag": '"v1"'}),
        "/no": faults.reply(b"x", 403, {"ETag": '"v1"'}),
    }
    async with (
        FaultServer(routes) as server,
        Fetcher(TextReader(), policy=PUBLIC, revisits=revisits, limits=long) as fetcher,
    ):
        assert (await fetcher.fetch(server.url("/long"))).cut
        await fetcher.fetch(server.url("/no"))
    assert revisits.pages == {}
