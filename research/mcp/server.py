"""One server as it runs: its offers, and calls of its tools, each within its time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError, WebError
from ..llm.redaction import SHORTEST, blanked
from ..output import on_one_line
from ..settings import user_config
from ..store import key_of
from ..web.tidy import shorten, tidy
from .offers import Listed, Offer, offered

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp_types import CallToolResult, Tool

    from .pipe import Pipe

TIMEOUT = 30.0  # seconds for starting, and for a call
LISTS = 20  # pages of a server's list of tools
LONGEST_ERROR = 1_000  # characters
MISSING = f"that needs the MCP SDK; install it: {sys.executable} -m pip install 'mcp >= 2.3, < 3'"


@dataclass(frozen=True)
class Setup:
    """A server as the user's settings have it: [mcp.NAME]. `env` names the variables that it is given."""

    name: str
    command: tuple[str, ...]
    allow: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: float = TIMEOUT

    @classmethod
    def of(cls, name: str, tables: Mapping[str, Mapping[str, Any]]) -> Setup:
        """Raises: UsageError for a server that is not set up."""
        if "command" not in tables.get(name, {}):
            known = f"; there are {', '.join(tables)}" if tables else ""
            remedy = f'Write [mcp.{name}] with command = ["PROGRAM", "ARGUMENT"] in {user_config()}'
            raise UsageError(f"mcp:{name}: no such server is set up{known}. {remedy}")
        return cls(name, **tables[name])

    @property
    def environment(self) -> dict[str, str]:
        return {name: os.environ[name] for name in self.env if name in os.environ}

    @property
    def folder(self) -> Path:
        """Where it runs: never where a question is asked, which can be a folder from anywhere."""
        home = Path.home()
        return home if home.is_dir() else Path("/")

    @property
    def program(self) -> str:
        """Raises: UsageError where there is none."""
        named = self.command[0]
        found = shutil.which(str(self.folder / Path(named).expanduser()) if "/" in named else named)
        if found is None:
            remedy = f"give its whole path in {user_config()}"
            raise UsageError(f"[mcp.{self.name}] command: there is no program {self.command[0]!r}; {remedy}")
        return found


class Server:
    """A running server. It lives in a task of its own, so that whoever needs it may come and go.

    `offers` are its tools by the names that models call them by; `left_out` tells in
    sentences what is not offered.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.offers: Mapping[str, Offer] = {}
        self.left_out: list[str] = []
        self.holders = 0
        self._session: ClientSession | None = None
        self._over = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._living: asyncio.Task[None] | None = None

    @property
    def digest(self) -> str:
        """Of what it offers: part of the recipe of what is made with it."""
        return key_of([offer.digest for offer in self.offers.values()])

    @property
    def ended(self) -> bool:
        return self._session is None

    async def start(self) -> None:
        """Raises: UsageError where it can't be run; WebError where it does not do as the protocol says."""
        self._living = asyncio.ensure_future(self._live(self.setup.program))
        try:
            await asyncio.wait([self._ready, self._living], return_when=asyncio.FIRST_COMPLETED)
            if not self._ready.done():
                self._living.result()
            self._ready.result()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Ends it, with all that it has started."""
        self._over.set()
        if self._living is None:
            return
        if not self._ready.done():
            self._living.cancel()
        await asyncio.wait([self._living])

    async def _live(self, program: str) -> None:
        _quiet()
        from .pipe import piped

        setup = self.setup
        try:
            async with piped([program, *setup.command[1:]], setup.environment, setup.folder) as pipe:
                await self._talk(pipe)
        except (OSError, ValueError) as error:
            raise UsageError(f"[mcp.{setup.name}] command: it can't be run: {error}") from None

    async def _talk(self, pipe: Pipe) -> None:
        from mcp import ClientSession

        async with ClientSession(pipe.reading, pipe.writing) as session:
            try:
                async with asyncio.timeout(self.setup.timeout):
                    await session.initialize()
                    tools = await self._listed(session)
            except TimeoutError:
                self._ready.set_exception(self._unfit(pipe, f"it was not ready within {self.setup.timeout:g} s"))
                return
            except RuntimeError:
                self._ready.set_exception(self._unfit(pipe, "it speaks a version of the protocol that is not known"))
                return
            except _faults() as error:
                self._ready.set_exception(self._unfit(pipe, _why(error)))
                return
            offers, self.left_out = offered(self.setup.name, self.setup.command, tools, self.setup.allow)
            self.offers = {offer.name: offer for offer in offers}
            self._session = session
            self._ready.set_result(None)
            await self._until_over(pipe)
            self._session = None

    async def _until_over(self, pipe: Pipe) -> None:
        """Until it is told to end, or has ended."""
        while not self._over.is_set() and pipe.process.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), 0.2)

    def _unfit(self, pipe: Pipe, why: str) -> WebError:
        lines = pipe.complaint.decode(errors="replace").strip().splitlines()
        last = f"; it said: {on_one_line(self._blanked(lines[-1]))[:200]}" if lines else ""
        return WebError(f"mcp:{self.setup.name}: the server can't be used: {on_one_line(why)[:300]}{last}")

    async def _listed(self, session: ClientSession) -> list[Listed]:
        from mcp_types import ListToolsRequest, ListToolsResult, PaginatedRequestParams

        found: list[Tool] = []
        cursor = None
        for _ in range(LISTS):
            params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
            result = await session.send_request(ListToolsRequest(params=params), ListToolsResult)
            found += result.tools
            cursor = result.next_cursor
            if cursor is None:
                break
        return [
            Listed(
                tool.name, tool.description or "", tool.input_schema,
                tool.annotations is not None and tool.annotations.read_only_hint is True,
            )
            for tool in found
        ]  # fmt: skip

    async def call(self, offer: Offer, arguments: Mapping[str, Any]) -> str:
        """What the tool gives, as text that is kept like a page's: tidy, cut, without the variables it was given.

        Raises: WebError for whatever goes wrong, with what the server says of it.
        """
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

        if self._session is None:
            raise self._failed("the server has ended")
        request = CallToolRequest(params=CallToolRequestParams(name=offer.tool, arguments=dict(arguments)))
        try:
            async with asyncio.timeout(self.setup.timeout):
                result = await self._session.send_request(request, CallToolResult)
        except TimeoutError:
            raise self._failed(f"no reply within {self.setup.timeout:g} s") from None
        except _faults() as error:
            raise self._failed(_why(error)) from None
        try:
            text = tidy(self._blanked(_text(result)))
        except ValueError:
            raise self._failed("its structured content holds a number that JSON has none for") from None
        if result.is_error:
            raise self._failed(shorten(text, LONGEST_ERROR)[0] or "it failed, and did not say why")
        return text

    def _failed(self, why: str) -> WebError:
        return WebError(f"mcp:{self.setup.name}: {tidy(self._blanked(why))[:LONGEST_ERROR]}")

    def _blanked(self, text: str) -> str:
        return blanked(text, [value for value in self.setup.environment.values() if len(value) >= SHORTEST])


def _text(result: CallToolResult) -> str:
    """The text of a result; what is none is named.

    Raises: ValueError for structured content that is no JSON: NaN, infinity.
    """
    import json

    parts = []
    for block in result.content:
        text = getattr(block, "text", None) or getattr(getattr(block, "resource", None), "text", None)
        parts.append(text or (str(block.uri) if block.type == "resource_link" else f"({block.type}, not shown)"))
    if not parts and result.structured_content is not None:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1, allow_nan=False))
    return "\n\n".join(parts)


def _faults() -> tuple[type[Exception], ...]:
    """What a session raises for a server that errs, breaks off, or does not keep to the protocol."""
    from mcp import MCPError
    from pydantic import ValidationError

    return MCPError, ValidationError


def _why(error: Exception) -> str:
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    if not isinstance(error, MCPError):
        return "its reply is not as the protocol says"
    closed = error.code == CONNECTION_CLOSED and error.message == "Connection closed"  # others may use that code too
    return "the server has ended" if closed else error.message


def _quiet() -> None:
    """The SDK's log repeats what servers send, and would reach the terminal.

    Raises: UsageError where the SDK is not installed.
    """
    import logging

    try:
        import mcp  # noqa: F401
    except ImportError:
        raise UsageError(f"tools of a server: {MISSING}") from None
    log = logging.getLogger("mcp")
    log.addHandler(logging.NullHandler())
    log.propagate = False
