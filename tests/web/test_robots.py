"""robots.txt as RFC 9309 has it."""

from __future__ import annotations

import asyncio

import pytest

from research.errors import WebError
from research.records import Outcome
from research.web.fetch import Fetcher
from research.web.guard import target
from research.web.robots import LARGEST, MOST_ORIGINS, Robots, RobotsReply
from tests import faults
from tests.faults import FaultServer
from tests.web.test_fetch import HTML, PUBLIC, TextReader

RULES = b"""\xef\xbb\xbf# with a byte order mark
User-agent: *
Disallow: /

User-agent: research
Disallow: /private
Allow: /private/open
Disallow: /*.pdf$
Disallow: /*/print/
Allow: /same
Disallow: /same
Disallow: /a%20b
"""


async def _allowed(body: bytes, *paths: str, status: int = 200) -> list[bool]:
    async def get(url: str) -> RobotsReply:
        assert url == "https://example.org/robots.txt"
        return RobotsReply(status, body)

    robots = Robots(get, "research")
    return [await robots.allows(target(f"https://example.org{path}")) for path in paths]


async def test_rules_for_this_agent_hold_by_the_longest_match() -> None:
    assert await _allowed(RULES, "/", "/public", "/private", "/private/x", "/private/open/x") == [
        True,
        True,
        False,
        False,
        True,
    ]


async def test_wildcards_and_ends() -> None:
    paths = ("/x/y.pdf", "/x/y.pdf?z", "/x/print/1", "/print/1", "/same", "/a%20b/c")
    assert await _allowed(RULES, *paths) == [False, True, False, True, True, False]


async def test_the_rules_for_all_hold_where_there_are_none_for_this_agent() -> None:
    assert await _allowed(b"User-agent: *\nDisallow: /x\n\nUser-agent: other\nDisallow: /", "/x", "/y") == [False, True]


@pytest.mark.parametrize("status", [300, 400, 401, 403, 404, 410])
async def test_no_file_allows_everything(status: int) -> None:
    assert await _allowed(b"User-agent: *\nDisallow: /", "/x", status=status) == [True]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_server_errors_disallow_for_now(status: int) -> None:
    with pytest.raises(WebError, match=f"status {status}, so nothing there may be read for now") as error:
        await _allowed(b"", "/x", status=status)
    assert error.value.passing


@pytest.mark.parametrize("body", [b"", b"<html>Not found</html>", b"\xff\xfe\x00", b"Disallow: /x", b"\0" * 1000])
async def test_a_file_without_rules_allows_everything(body: bytes) -> None:
    assert await _allowed(body, "/x") == [True]


async def test_a_file_made_to_be_slow_is_not() -> None:
    rules = b"User-agent: *\n" + b"Disallow: /%s$\n" % (b"*a" * 200 + b"*b") * 50
    assert await _allowed(rules, "/" + "a" * 7_000) == [True]


async def test_what_stands_beyond_the_cap_is_not_read() -> None:
    filling = b"# " + b"x" * 997 + b"\n"
    start = b"User-agent: *\nDisallow: /early\n" + filling * (LARGEST // 1000 + 2)
    assert await _allowed(start + b"Disallow: /late\n", "/early", "/late") == [False, True]


async def test_each_origin_is_asked_once_and_a_failure_again() -> None:
    asked: list[str] = []

    async def get(url: str) -> RobotsReply:
        asked.append(url)
        await asyncio.sleep(0.01)
        return RobotsReply(503 if len(asked) == 1 else 404)

    robots = Robots(get, "research")
    place = target("http://example.org/x")
    results = await asyncio.gather(*(robots.allows(place) for _ in range(5)), return_exceptions=True)
    assert [type(result) for result in results] == [WebError] * 5
    assert await asyncio.gather(*(robots.allows(place) for _ in range(5))) == [True] * 5
    await robots.allows(target("https://example.org/x"))
    await robots.allows(target("http://example.org:8080/x"))
    assert asked == [
        "http://example.org/robots.txt",
        "http://example.org/robots.txt",
        "https://example.org/robots.txt",
        "http://example.org:8080/robots.txt",
    ]


async def test_one_callers_cancellation_is_not_the_others() -> None:
    going_on = asyncio.Event()

    async def get(url: str) -> RobotsReply:
        await going_on.wait()
        return RobotsReply(404)

    robots = Robots(get, "research")
    first, second = (asyncio.create_task(robots.allows(target("http://example.org/"))) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    going_on.set()
    assert await second is True
    assert first.cancelled()


async def test_the_rules_of_old_origins_are_given_up() -> None:
    async def get(url: str) -> RobotsReply:
        return RobotsReply(404)

    robots = Robots(get, "research")
    for number in range(MOST_ORIGINS + 5):
        await robots.allows(target(f"http://h{number}.example/"))
    assert len(robots._rules) == MOST_ORIGINS


# Through the fetcher


async def _fetched(routes: dict[str, faults.Act], path: str = "/a") -> tuple[Outcome, list[str]]:
    served = {"/a": faults.reply(HTML), **routes}
    async with FaultServer(served) as server, Fetcher(TextReader(), policy=PUBLIC) as fetcher:
        page = await fetcher.fetch(server.url(path))
        return page.outcome, server.paths()


async def test_a_disallowed_page_is_not_asked_for() -> None:
    robots = faults.reply(b"User-agent: *\nDisallow: /a")
    assert await _fetched({"/robots.txt": robots}) == (Outcome.BLOCKED, ["/robots.txt"])
    hops = {"/robots.txt": robots, "/b": faults.redirect("/a")}
    assert await _fetched(hops, "/b") == (Outcome.BLOCKED, ["/robots.txt", "/b"])


async def test_robots_txt_may_move_five_times() -> None:
    deny = faults.reply(b"User-agent: *\nDisallow: /")
    hops: dict[str, faults.Act] = {"/robots.txt": faults.redirect("/r1")}
    hops |= {f"/r{hop}": faults.redirect(f"/r{hop + 1}") for hop in range(1, 5)}
    assert (await _fetched({**hops, "/r5": deny}))[0] is Outcome.BLOCKED
    assert (await _fetched({**hops, "/r5": faults.redirect("/r6"), "/r6": deny}))[0] is Outcome.OK


@pytest.mark.parametrize("to", ["http://127.0.0.1:9/robots.txt", "file:///etc/passwd", "", "http://[::1"])
async def test_robots_txt_that_moves_to_a_refused_place_counts_as_not_found(to: str) -> None:
    assert (await _fetched({"/robots.txt": faults.redirect(to)}))[0] is Outcome.OK


async def test_robots_txt_that_cannot_be_decoded_counts_as_not_found() -> None:
    robots = faults.reply(b"x" * 100, headers={"Content-Encoding": "br"})
    assert (await _fetched({"/robots.txt": robots}))[0] is Outcome.OK


async def test_a_robots_bomb_is_cut() -> None:
    assert (await _fetched({"/robots.txt": faults.bomb(1 << 28)}))[0] is Outcome.OK


async def test_without_an_answer_for_robots_txt_the_page_is_not_read() -> None:
    for act in (faults.reply(b"", 503), faults.reset(), faults.short(b"User-agent: *")):
        with pytest.raises(WebError):
            await _fetched({"/robots.txt": act})
