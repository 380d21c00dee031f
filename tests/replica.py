"""A replica on loopback of search engines and of the sites that they find, with slow, broken and hostile ones among them.

    async with Replica() as web:
        done = await web.research(home, "ask", "--search", "duckduckgo,wikipedia", QUESTION)

Sound pages are those of the bundled sample web. Answers come after lognormal latencies from a seeded generator.
"""

from __future__ import annotations

import asyncio
import functools
import html
import json
import random
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests import faults
from tests.commands import environment, research
from tests.conftest import ROOT
from tests.faults import Act, FaultServer

PAGES = ROOT / "fixtures" / "web" / "pages"
CAPTCHA = b"<html><form id=challenge-form action=//duckduckgo.com/anomaly.js></form></html>"
RESULT = """<div class="result results_links web-result"><h2 class="result__title">
<a rel="nofollow" class="result__a" href="{url}">{title}</a></h2>
<a class="result__snippet" href="{url}">{snippet}</a></div>"""
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Found:
    """A result: the path of its page, what it is called, and what becomes of whoever reads it."""

    path: str
    title: str
    snippet: str
    act: Act
    host: int = 2  # the last part of its address: 127.0.0.…


def page(file: str, content_type: str = "text/html; charset=utf-8", after: float = 0.0, **headers: str) -> Act:
    return faults.reply((PAGES / file).read_bytes(), headers={"Content-Type": content_type, **headers}, after=after)


def results() -> list[Found]:
    """Sound pages and others, on four hosts."""
    rate = "US inflation rate, January 2025, compared with a year ago"
    said = "The US inflation rate was 3.0 percent in January 2025."
    slow = random.Random(7)
    latency = [slow.lognormvariate(-3.5, 0.8) for _ in range(6)]
    return [
        Found("/gone", f"{rate}: archive", said, faults.reply(b"", 404)),
        Found("/cpi", f"Consumer prices: {rate}", said, page("labor-statistics-cpi-january-2025.html", after=latency[0])),
        Found("/closed", f"{rate}: for members", said, faults.reply(b"<p>no</p>", 403), host=3),
        Found("/loop", f"{rate}: moved", said, faults.redirect("/loop"), host=3),
        Found("/bomb", f"{rate}: all figures", said, faults.bomb(1 << 26), host=4),
        Found("/table.pdf", f"Monthly table: {rate}", said, page("labor-statistics-cpi-u-monthly-table.pdf", "text/plain", latency[1]), host=4),
        Found("/story", f"Prices rise: {rate}", said, page("midland-wire-consumer-prices.html", after=latency[2]), host=5),
        Found("/brief", f"Inflation today: {rate}", said, page("money-brief-inflation-today.html", after=latency[3]), host=5),
        Found("/late", f"Explained: {rate}", said, page("prices-explained-inflation.html", after=1.5), host=5),
        Found("/ledger", f"Economy: {rate}", said, page("harbor-ledger-consumer-prices.html", after=latency[4])),
        Found("/goal", f"The goal: {rate}", said, page("reserve-policy-inflation-goal.html", after=latency[5]), host=3),
    ]  # fmt: skip


@dataclass
class Replica:
    """DuckDuckGo finds `found`; with `captcha` it asks for one. Wikipedia has one article."""

    found: list[Found] = field(default_factory=results)
    captcha: bool = False
    servers: dict[int, FaultServer] = field(default_factory=dict)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for host in sorted({2, *(one.host for one in self.found)}):
                routes = {one.path: one.act for one in self.found if one.host == host}
                self.servers[host] = await stack.enter_async_context(FaultServer(routes, host=f"127.0.0.{host}"))
            self.engines.routes |= {
                "/html/": faults.reply(CAPTCHA, 202) if self.captcha else faults.reply(self._results(), after=0.05),
                "/w/api.php": faults.reply(self._articles(), headers=JSON, after=0.05),
                "/wiki/Inflation_in_the_United_States": page("labor-statistics-cpi-january-2025.html", after=0.03),
            }
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def engines(self) -> FaultServer:
        return self.servers[2]

    @property
    def place(self) -> str:
        return f"127.0.0.2:{self.engines.port}"

    def paths(self) -> list[str]:
        """What the sites were asked for, robots.txt and the engines left out."""
        asked = [path.partition("?")[0] for server in self.servers.values() for path in server.paths()]
        return [path for path in asked if path not in ("/robots.txt", "/html/", "/w/api.php")]

    def settings(self) -> dict[str, str]:
        """The environment of a command that takes this for the web."""
        base = {"DUCKDUCKGO_BASE_URL": self.engines.url("/html/"), "WIKIPEDIA_BASE_URL": self.engines.url("/w/api.php")}
        return {**base, "RESEARCH_ALLOW_ADDRESSES": "127.0.0.0/8"}

    async def research(self, home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """The command with this web, run beside the test's own event loop."""
        done = await asyncio.to_thread(research, home, *arguments, **{**self.settings(), **more})
        assert "Warning" not in done.stderr, done.stderr
        return done

    async def scripted(self, script: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same in a Python of its own, by a script."""
        command, settings = [sys.executable, "-c", script, *arguments], environment(home, **self.settings())
        run = functools.partial(subprocess.run, capture_output=True, text=True, timeout=60)
        return await asyncio.to_thread(run, command, env=settings, cwd=home)

    def _results(self) -> bytes:
        boxes = [
            RESULT.format(
                url=self.servers[one.host].url(one.path), title=html.escape(one.title), snippet=html.escape(one.snippet)
            )
            for one in self.found
        ]
        none = "" if boxes else "<div class=no-results>No results.</div>"
        return f"<html><body><div id=links>{''.join(boxes)}{none}</div></body></html>".encode()

    def _articles(self) -> bytes:
        row = {"title": "Inflation in the United States", "snippet": "The US <b>inflation</b> rate was 3.0 percent."}
        return json.dumps({"query": {"search": [row]}}).encode()
