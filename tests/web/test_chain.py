"""Engines asked over HTTP, one after the other; what fails is skipped, rests, and is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from research.errors import UsageError, WebError
from research.records import Hit, Outcome
from research.transport import Client
from research.web.base import Options, Web
from research.web.engines import asking, engine
from research.web.engines.asking import EngineError, EngineSearch
from research.web.engines.base import LARGEST_REPLY, State
from research.web.engines.chain import LONGEST_REST, REST, Chain
from research.web.live import Asking, LiveWeb
from tests import faults
from tests.faults import FaultServer
from tests.web.test_engines import RESULT
from tests.web.test_fetch import HTML, TextReader

JSON = {"Content-Type": "application/json"}
TAVILY = json.dumps({"results": [{"url": f"https://a.test/{n}", "title": f"T{n}"} for n in range(5)]}).encode()
CAPTCHA = b"<html><form id=challenge-form action=//duckduckgo.com/anomaly.js></form></html>"


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_PAUSE", 0.0)


def _tavily(server: FaultServer, client: Client, key: str = "k") -> EngineSearch:
    return EngineSearch(engine("tavily", {"TAVILY_API_KEY": key, "TAVILY_BASE_URL": server.url("/search")}), client)


async def _answer(act: faults.Act) -> tuple[list[Hit] | EngineError, FaultServer]:
    async with FaultServer({"/search": act}) as server, Client() as client:
        try:
            return await _tavily(server, client).search("q", 3), server
        except EngineError as error:
            return error, server


async def test_an_engine_is_asked_once_and_gives_the_top_hits() -> None:
    hits, server = await _answer(faults.reply(TAVILY, headers=JSON))
    assert isinstance(hits, list)
    assert [hit.url for hit in hits] == ["https://a.test/0", "https://a.test/1", "https://a.test/2"]
    (request,) = server.requests
    assert (request.method, request.header("authorization")) == ("POST", "Bearer k")
    assert json.loads(request.body) == {"query": "q", "max_results": 3}


@pytest.mark.parametrize(
    ("act", "state", "requests"),
    [
        (faults.reply(b"{}", 401), State.DISABLED, 1),
        (faults.reply(b"{}", 429), State.BLOCKED, 1),
        (faults.reply(b"{}", 500), State.UNREADABLE, 2),
        (faults.reply(b"not json"), State.UNREADABLE, 1),
        (faults.redirect("/elsewhere"), State.UNREADABLE, 1),
        (faults.reset(), State.UNREADABLE, 2),
        (faults.short(TAVILY), State.UNREADABLE, 2),
        (faults.bomb(1 << 26), State.UNREADABLE, 1),
        (faults.endless(b'{"results": [' + b'{"url": "https://a.test/"},' * 1000), State.UNREADABLE, 1),
        (faults.reply(TAVILY, headers={"Content-Encoding": "br"}), State.UNREADABLE, 1),
    ],
)
async def test_what_is_no_answer_is_an_error_that_says_so(act: faults.Act, state: State, requests: int) -> None:
    error, server = await _answer(act)
    assert isinstance(error, EngineError)
    assert error.state is state
    assert str(error).startswith(f"tavily: {state}: ")
    assert error.detail
    assert error.passing
    assert len(server.requests) == requests


async def test_a_second_try_may_succeed() -> None:
    acts = [faults.reset(), faults.reply(TAVILY)]

    async def act(writer: asyncio.StreamWriter, request: faults.Received) -> None:
        await acts.pop(0)(writer, request)

    hits, server = await _answer(act)
    assert isinstance(hits, list)
    assert len(server.requests) == 2


async def test_a_reply_of_50_mb_is_cut_off() -> None:
    body = b'{"results": ["' + b"x" * 50_000_000 + b'"]}'
    error, _ = await _answer(faults.reply(body))
    assert isinstance(error, EngineError)
    assert "too large" in error.detail
    assert len(body) > LARGEST_REPLY


async def test_without_its_key_an_engine_is_not_asked() -> None:
    async with FaultServer({}) as server, Client() as client:
        with pytest.raises(EngineError, match="disabled: TAVILY_API_KEY is not set"):
            await _tavily(server, client, key="").search("q", 3)
        assert server.connections == 0


# The chain


@dataclass
class Scripted:
    """Answers as told, one after the other; the last for ever."""

    name: str
    answers: list[list[Hit] | Exception]
    asked: list[str] = field(default_factory=list)

    async def search(self, query: str, top: int) -> list[Hit]:
        self.asked.append(query)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def _hits(name: str) -> list[Hit]:
    return [Hit(url=f"https://{name}.test/", title=name, rank=1)]


def _error(state: State, name: str = "first", retry_after: float | None = None) -> EngineError:
    return EngineError(name, state, "detail", retry_after)


async def test_the_first_that_answers_is_the_answer() -> None:
    first, second = Scripted("first", [_hits("a")]), Scripted("second", [_hits("b")])
    chain = Chain([first, second])
    assert chain.name == "first,second"
    assert await chain.search("q", 5) == _hits("a")
    assert second.asked == []


@pytest.mark.parametrize("state", [s for s in State if s not in (State.RESULTS, State.EMPTY)])
async def test_what_does_not_answer_is_skipped_and_told_once(state: State) -> None:
    notes: list[str] = []
    first, second = Scripted("first", [_error(state)]), Scripted("second", [_hits("b")])
    chain = Chain([first, second], notice=notes.append)
    for _ in range(4):
        assert await chain.search("q", 5) == _hits("b")
    assert notes == [f"skipped first: {state}: detail"]


async def test_an_empty_answer_falls_through_and_counts_as_an_answer() -> None:
    notes: list[str] = []
    empty = Scripted("first", [[]])
    assert await Chain([empty, Scripted("second", [_hits("b")])]).search("q", 5) == _hits("b")
    assert await Chain([empty, Scripted("second", [[]])]).search("q", 5) == []
    chain = Chain([empty, Scripted("second", [_error(State.CAPTCHA, "second")])], notice=notes.append)
    assert await chain.search("q", 5) == []
    assert notes == ["skipped second: captcha: detail"]


async def test_where_none_answers_each_reason_is_said() -> None:
    broken = Scripted("second", [WebError("second: out of order")])
    chain = Chain([Scripted("first", [_error(State.CAPTCHA)]), broken])
    with pytest.raises(WebError, match="first: captcha: detail; second: out of order") as error:
        await chain.search("q", 5)
    assert error.value.passing
    with pytest.raises(WebError, match=r"first: captcha: detail \(resting\)"):
        await chain.search("q", 5)


async def test_a_captcha_makes_an_engine_rest_and_one_query_tries_it_again() -> None:
    clock = Clock()
    first = Scripted("first", [_error(State.CAPTCHA), _error(State.CAPTCHA), _hits("a")])
    chain = Chain([first, Scripted("second", [_hits("b")])], clock=clock)
    for _ in range(3):
        assert await chain.search("q", 5) == _hits("b")
    assert len(first.asked) == 1
    clock.now += REST - 1
    await chain.search("q", 5)
    assert len(first.asked) == 1
    clock.now += 2
    await chain.search("q", 5)  # fails again: the rest is twice as long
    assert len(first.asked) == 2
    clock.now += REST + 1
    await chain.search("q", 5)
    assert len(first.asked) == 2
    clock.now += REST
    assert await chain.search("q", 5) == _hits("a")
    assert await chain.search("q", 5) == _hits("a")
    assert len(first.asked) == 4


async def test_a_failure_that_may_be_chance_is_forgiven_twice() -> None:
    first = Scripted("first", [_error(State.UNREADABLE)])
    chain = Chain([first, Scripted("second", [_hits("b")])], clock=Clock())
    for _ in range(6):
        await chain.search("q", 5)
    assert len(first.asked) == 3


async def test_a_success_forgets_failures() -> None:
    answers: list[list[Hit] | Exception] = [_error(State.UNREADABLE), _error(State.UNREADABLE), _hits("a")] * 3
    first = Scripted("first", answers)
    chain = Chain([first, Scripted("second", [_hits("b")])], clock=Clock())
    for _ in range(9):
        await chain.search("q", 5)
    assert len(first.asked) == 9


async def test_a_missing_key_is_never_asked_for_again() -> None:
    clock = Clock()
    first = Scripted("first", [_error(State.DISABLED)])
    chain = Chain([first, Scripted("second", [_hits("b")])], clock=clock)
    await chain.search("q", 5)
    clock.now += 1e9
    await chain.search("q", 5)
    assert len(first.asked) == 1


async def test_retry_after_lengthens_the_rest_up_to_a_cap() -> None:
    for wish, rest in ((300.0, 300.0), (1.0, REST), (99_999.0, LONGEST_REST)):
        clock = Clock()
        first = Scripted("first", [_error(State.BLOCKED, retry_after=wish), _hits("a")])
        chain = Chain([first, Scripted("second", [_hits("b")])], clock=clock)
        await chain.search("q", 5)
        clock.now += rest - 1
        assert await chain.search("q", 5) == _hits("b")
        clock.now += 2
        assert await chain.search("q", 5) == _hits("a")


async def test_only_one_query_tries_a_rested_engine() -> None:
    clock = Clock()
    going_on = asyncio.Event()

    class Slow(Scripted):
        async def search(self, query: str, top: int) -> list[Hit]:
            if self.asked:
                self.asked.append(query)
                await going_on.wait()
            return await super().search(query, top)

    first = Slow("first", [_error(State.CAPTCHA), _hits("a")])
    chain = Chain([first, Scripted("second", [_hits("b")])], clock=clock)
    await chain.search("q1", 5)
    clock.now += REST + 1
    trying = asyncio.create_task(chain.search("q2", 5))
    await asyncio.sleep(0)
    assert await chain.search("q3", 5) == _hits("b")
    trying.cancel()
    await asyncio.gather(trying, return_exceptions=True)
    going_on.set()
    assert await chain.search("q4", 5) == _hits("a")  # a cancelled try leaves it open
    assert "q3" not in first.asked


async def test_a_bug_is_no_skipped_engine() -> None:
    chain = Chain([Scripted("first", [ZeroDivisionError()]), Scripted("second", [_hits("b")])])
    with pytest.raises(ZeroDivisionError):
        await chain.search("q", 5)


# The live web


async def test_a_captcha_falls_through_to_wikipedia_and_says_so() -> None:
    """Through a replica of both engines on loopback, from the query to the page."""
    found = {"query": {"search": [{"title": "Solar sail", "snippet": "by <span>light</span>"}]}}
    routes = {
        "/html/": faults.reply(CAPTCHA, 202),
        "/w/api.php": faults.reply(json.dumps(found).encode(), headers=JSON),
        "/wiki/Solar_sail": faults.reply(HTML),
    }
    notes: list[str] = []
    async with FaultServer(routes) as server:
        settings = {"DUCKDUCKGO_BASE_URL": server.url("/html/"), "WIKIPEDIA_BASE_URL": server.url("/w/api.php")}
        asking = Asking(["duckduckgo", "wikipedia"], settings, ["127.0.0.2/32"])
        async with LiveWeb(asking, reader=TextReader(), notice=notes.append) as web:
            hits = await web.search("solar sails", 5)
            (hit,) = hits
            assert (hit.url, hit.snippet) == (server.url("/wiki/Solar_sail"), "by light")
            assert (await web.fetch(hit.url)).outcome is Outcome.OK
        place = f"127.0.0.2:{server.port}"
        assert web.name == f"duckduckgo@{place},wikipedia@{place}"
        assert [request.header("user-agent") for request in server.requests] == ["research/0.1"] * 4
    assert len(notes) == 1
    assert notes[0].startswith("skipped duckduckgo@")
    assert "captcha" in notes[0]


async def test_the_live_web_is_a_web_with_its_options_in_its_name() -> None:
    web: Web = LiveWeb(Asking(["duckduckgo", "wikipedia"], {}))
    assert (web.name, web.source, web.date) == ("duckduckgo,wikipedia", "live", None)
    other = LiveWeb(Asking(["mojeek"], {}, ["127.0.0.0/8", "fd00::/8"], Options("us", "en", "week")))
    assert other.name == "mojeek (us en week)"
    assert other.source == "live 127.0.0.0/8 fd00::/8"  # what is refused elsewhere may be a page here


async def test_an_internal_hit_is_refused_when_it_is_fetched() -> None:
    page = RESULT.format(url="http://127.0.0.1:1/", ad="").encode()
    async with FaultServer({"/html/": faults.reply(page)}) as server:
        settings = {"DUCKDUCKGO_BASE_URL": server.url("/html/")}
        async with LiveWeb(Asking(["duckduckgo"], settings), reader=TextReader()) as web:
            (hit,) = await web.search("q", 5)
            assert (await web.fetch(hit.url)).outcome is Outcome.REFUSED_ADDRESS


def test_engines_are_checked_at_once() -> None:
    for names in ([], ["altavista"], ["duckduckgo", "local:none"]):
        with pytest.raises(UsageError):
            Asking(names, {})


async def test_a_recorded_page_through_the_wire(data: Callable[[str], Path]) -> None:
    body = (data("serp-responses") / "dev/files/duckduckgo-html-html-results-06617c.html").read_bytes()
    async with FaultServer({"/html/": faults.gzipped(body)}) as server, Client() as client:
        search = EngineSearch(engine("duckduckgo", {"DUCKDUCKGO_BASE_URL": server.url("/html/")}), client)
        hits = await search.search("rust language", 4)
        assert hits[0].url == "https://rust-lang.org/"
        assert [hit.rank for hit in hits] == [1, 2, 3, 4]
        assert server.paths() == ["/html/?q=rust+language"]
