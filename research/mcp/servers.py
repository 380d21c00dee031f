"""The servers that run: each for as long as somebody needs it, and once for all who do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from .server import Server, Setup


class Servers:
    """`tables` are the user's settings, [mcp.NAME]; `notice` is told what is not offered."""

    def __init__(self, tables: Mapping[str, Mapping[str, Any]], notice: Callable[[str], None] = lambda _: None) -> None:
        self.tables = tables
        self.notice = notice
        self._running: dict[str, Server] = {}
        self._starting = asyncio.Lock()

    def __getitem__(self, name: str) -> Server:
        """One that is needed just now."""
        return self._running[name]

    @contextlib.asynccontextmanager
    async def needed(self, names: Iterable[str]) -> AsyncIterator[None]:
        """They run while the block does.

        Raises: UsageError for one that is not set up or can't be run; WebError for one that does not work.
        """
        async with contextlib.AsyncExitStack() as stack:
            for name in names:
                server = await self._taken(name)
                stack.push_async_callback(self._let_go, server)
            yield

    async def _taken(self, name: str) -> Server:
        async with self._starting:
            server = self._running.get(name)
            if server is None or server.ended:
                server = Server(Setup.of(name, self.tables))
                await server.start()
                self._running[name] = server
                for told in server.left_out:
                    self.notice(f"mcp:{name}: {told}")
            server.holders += 1
            return server

    async def _let_go(self, server: Server) -> None:
        server.holders -= 1
        if server.holders:
            return
        if self._running.get(server.setup.name) is server:
            del self._running[server.setup.name]
        await server.stop()
