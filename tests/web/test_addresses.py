"""Sixty and more spellings of internal addresses, through each door by which an address comes in: nobody gets inside.

The machine's own server stands for what is internal; 127.0.0.2 stands for the internet. Every connection that the
process tries is seen by an audit hook, so that a spelling is caught too that leads to some other internal address.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from research.app import App, Dates, load_pipeline
from research.llm.messages import Completion, Request, ToolCall, Usage
from research.llm.scripted import ScriptedModel
from research.records import Outcome, Page, Question
from research.settings import Settings
from research.web.live import Asking, LiveWeb
from tests import faults
from tests.faults import FaultServer
from tests.web.test_fetch import TextReader

# What stands for host and port, with {p} for the internal server's port. Names are looked up in NAMES.
SPELLINGS = [
    "127.0.0.1:{p}", "127.1:{p}", "127.0.1:{p}", "127.0.0.1.:{p}", "127.1.:{p}", "2130706433:{p}", "2130706433.:{p}",
    "0x7f000001:{p}", "0x7F000001:{p}", "0x7f.0.0.1:{p}", "0x7f.1:{p}", "0X7F.0X0.0X0.0X1:{p}", "017700000001:{p}",
    "0177.0.0.1:{p}", "0177.0.0.01:{p}", "0177.1:{p}", "127.0.0.01:{p}", "127.000.000.001:{p}", "0127.0.0.1:{p}",
    "127.0.0.0x1:{p}", "127.0.0.1:0{p}", "127.0.0.1:00{p}", "１２７.０.０.１:{p}", "１２７.1:{p}", "127。0。0。1:{p}",
    "127．0．0．1:{p}", "127｡0｡0｡1:{p}", "①②⑦.⓪.⓪.①:{p}", "127.0.0.\u00ad1:{p}", "127.0.0.1\u200b:{p}", "127\u20240.0.1:{p}",
    "0:{p}", "0.0.0.0:{p}", "0x0:{p}", "00000:{p}", "[::]:{p}", "[::1]:{p}", "[0:0:0:0:0:0:0:1]:{p}",
    "[0000:0000:0000:0000:0000:0000:0000:0001]:{p}", "[::ffff:127.0.0.1]:{p}", "[::ffff:7f00:1]:{p}",
    "[0:0:0:0:0:ffff:127.0.0.1]:{p}", "[::127.0.0.1]:{p}", "[64:ff9b::127.0.0.1]:{p}", "[64:ff9b:1::7f00:1]:{p}",
    "[2002:7f00:1::]:{p}", "[::1%25lo]:{p}", "[::1%lo]:{p}", "[fe80::1%25lo]:{p}", "[fd00::1]:{p}",
    "public.example@127.0.0.1:{p}", "user:word@127.0.0.1:{p}", "127.0.0.2@127.0.0.1:{p}", "public.example:80@127.0.0.1:{p}",
    "127.0.0.1:{p}\\@public.example", "public.example\\@127.0.0.1:{p}", "127.0.0.1:{p}#@public.example",
    "127.0.0.1:{p}?@public.example", "%31%32%37.0.0.1:{p}", "127%2e0%2e0%2e1:{p}", "127.0.0.1%00.public.example:{p}",
    "127.0.0.1 :{p}", " 127.0.0.1:{p}", "127.0.0.1\t:{p}", "/127.0.0.1:{p}", "//127.0.0.1:{p}",
    "localhost:{p}", "LOCALHOST:{p}", "localhost.:{p}", "ｌｏｃａｌｈｏｓｔ:{p}", "loc\u00adalhost:{p}", "app.localhost:{p}",
    "internal.example:{p}", "mixed.example:{p}", "mapped.example:{p}", "169.254.169.254", "metadata.example",
]  # fmt: skip
NAMES = {
    "localhost": ["127.0.0.1", "::1"],
    "app.localhost": ["127.0.0.1"],
    "internal.example": ["127.0.0.1"],
    "mixed.example": ["127.0.0.2", "127.0.0.1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "metadata.example": ["169.254.169.254"],
    "public.example": ["127.0.0.2"],
}
PUBLIC = [
    "http://{s}/page", "http://{s}/page?a=1&b=2", "http://{s}/page#part", "HTTP://{s}/page", "http://{s}/page?u=http://127.0.0.1/",
    "http://{s}/page?q=a@b", "http://{s}/./page", "http://{s}/x/../page", "http://{s}/%70age", "http://{s}/page?",
    "http://public.example:{p}/page", "http://PUBLIC.example:{p}/page", "http://public.example.:{p}/page",
    "http://ｐｕｂｌｉｃ.example:{p}/page", "http://www.public.example:{p}/page", "http://a-b.public.example:{p}/page",
    "http://xn--mller-kva.public.example:{p}/page", "http://müller.public.example:{p}/page", "http://1.public.example:{p}/page",
    "http://127.public.example:{p}/page", "http://sub_domain.public.example:{p}/page", "http://public。example:{p}/page",
]  # fmt: skip
TEXT = b"<html><title>T</title><p>" + b"Some words to read. " * 50 + b"</html>"
DATES = Dates("2025-03-01", "2999-01-01")

_dialled: list[tuple[Any, ...]] | None = None


def _see(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and _dialled is not None and isinstance(arguments[1], tuple):
        _dialled.append(arguments[1][:2])


sys.addaudithook(_see)


@pytest.fixture
def dialled() -> Iterator[list[tuple[Any, ...]]]:
    """Host and port of each connection that is tried."""
    global _dialled
    _dialled = []
    yield _dialled
    _dialled = None


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's resolver, with NAMES in it; names below public.example are public."""
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *more: Any, **how: Any) -> Any:
        name = host.decode("ascii") if isinstance(host, bytes) else host
        found = ["127.0.0.2"] if name and name.endswith(".public.example") else NAMES.get(name)
        if found is None:
            return real(host, port, *more, **how)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@dataclass
class Place:
    """The internal server, and a public one that also is a search engine."""

    internal: FaultServer
    public: FaultServer

    @property
    def urls(self) -> list[str]:
        return [f"http://{spelling.format(p=self.internal.port)}/secret" for spelling in SPELLINGS]

    def web(self) -> LiveWeb:
        variables = {"TAVILY_API_KEY": "k", "TAVILY_BASE_URL": self.public.url("/search")}
        return LiveWeb(Asking(["tavily"], variables, ["127.0.0.2/32"]), reader=TextReader())

    def finds(self, *urls: str) -> None:
        results = [{"url": url, "title": "T"} for url in urls]
        self.public.routes["/search"] = faults.reply(json.dumps({"results": results}).encode())


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with (
        FaultServer({"/secret": faults.reply(TEXT)}, host="127.0.0.1") as internal,
        FaultServer({"/page": faults.reply(TEXT)}) as public,
    ):
        yield Place(internal, public)


def _nobody_came_in(place: Place, dialled: list[tuple[Any, ...]]) -> None:
    assert place.internal.connections == 0
    assert set(dialled) <= {("127.0.0.2", place.public.port)}


def test_there_are_enough_spellings() -> None:
    assert len(set(SPELLINGS)) >= 60
    assert len(set(PUBLIC)) >= 20


async def test_the_trap_works(place: Place, dialled: list[tuple[Any, ...]]) -> None:
    """Whoever may go inside gets inside, and is seen."""
    async with LiveWeb(Asking(["mojeek"], {}, ["127.0.0.0/8"]), reader=TextReader()) as web:
        assert (await web.fetch(place.urls[0])).outcome is Outcome.OK
    assert place.internal.connections > 0
    assert ("127.0.0.1", place.internal.port) in dialled


async def test_as_a_search_result(place: Place, dialled: list[tuple[Any, ...]]) -> None:
    place.finds(*place.urls)
    async with place.web() as web:
        hits = await web.search("q", 100)
        assert 0 < len(hits) < len(SPELLINGS)  # what is no sound URL is left out at once
        for hit in hits:
            assert (await web.fetch(hit.url)).outcome is Outcome.REFUSED_ADDRESS, ascii(hit.url)
    _nobody_came_in(place, dialled)


async def test_as_a_redirect(place: Place, dialled: list[tuple[Any, ...]]) -> None:
    async with place.web() as web:
        for number, url in enumerate(place.urls):
            path = f"/moved{number}"
            place.public.routes[path] = faults.redirect(url.replace("\t", "%09"))
            page = await web.fetch(place.public.url(path))
            assert page.outcome is not Outcome.OK, ascii(url)
    _nobody_came_in(place, dialled)


async def test_as_a_redirect_of_robots_txt(place: Place, dialled: list[tuple[Any, ...]]) -> None:
    async with place.web() as web:
        for number, url in enumerate(place.urls):  # each site is asked for its own
            place.public.routes["/robots.txt"] = faults.redirect(url.replace("\t", "%09"))
            page = await web.fetch(place.public.url("/page", host=f"site{number}.public.example"))
            assert page.outcome is Outcome.OK, ascii(url)
    assert place.public.paths().count("/robots.txt") == len(SPELLINGS)
    _nobody_came_in(place, dialled)


async def test_as_a_call_of_fetch(place: Place, dialled: list[tuple[Any, ...]]) -> None:
    details = set()
    async with place.web() as web:
        for url in place.urls:
            page: Page = await web.fetch(url)
            assert page.outcome is Outcome.REFUSED_ADDRESS, ascii(url)
            details.add(page.detail)
    assert len(details) == 1  # nothing tells one refusal from another
    _nobody_came_in(place, dialled)


def _obedient(*urls: str) -> ScriptedModel:
    """A model that fetches these addresses in one go, and then answers from memory."""
    calls = tuple(ToolCall(f"c{number}", "fetch", json.dumps({"url": url})) for number, url in enumerate(urls))

    def script(request: Request) -> Completion:
        asked = any(message.calls for message in request.messages)
        if asked or request.tool_choice == "none":
            return Completion("It is so.", "stop", Usage(), "scripted")
        return Completion("", "tool_calls", Usage(), "scripted", calls)

    return ScriptedModel(script)


@pytest.mark.parametrize("door", ["a tool argument", "the command line"])
async def test_by_a_model_that_obeys(place: Place, dialled: list[tuple[Any, ...]], tmp_path: Path, door: str) -> None:
    """The model asks for each address: one that nobody gave it, or one that stands in the user's question."""
    app, pipeline, tried = App(Settings(tmp_path), {}), load_pipeline("tool-use"), 0
    async with place.web() as web:
        for number, url in enumerate(place.urls):
            model = _obedient(url)
            app.models = {"cheap": model, "capable": model}
            question = f"What does {url} say?" if door == "the command line" else f"What does server {number} say?"
            result = await app.ask(Question(text=question), pipeline, web, DATES)
            assert len(model.requests) >= 2, "the model had its say"
            assert result.answer.citations == ()
            assert "Some words to read" not in str(model.requests)
            tried += any(line.get("receipt", {}).get("outcome") == "refused address" for line in result.lines)
    app.close()
    assert tried >= 20 if door == "the command line" else tried == 0  # that they get so far is meant
    _nobody_came_in(place, dialled)


async def test_public_addresses_are_not_refused(place: Place) -> None:
    place.public.routes |= {
        f"/{spelled}": place.public.routes["/page"] for spelled in ("./page", "x/../page", "%70age")
    }
    async with place.web() as web:
        for form in PUBLIC:
            url = form.format(s=f"127.0.0.2:{place.public.port}", p=place.public.port)
            assert (await web.fetch(url)).outcome is Outcome.OK, ascii(url)
