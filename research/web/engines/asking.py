"""Asking one engine over HTTP: a hit list, or an error that says which engine, what state, and what to do."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from ...errors import WebError
from ...transport import (
    BadAddress,
    Caps,
    Client,
    Incomplete,
    Reply,
    TooLarge,
    TransportError,
    Unreachable,
    Untrusted,
)
from ..base import Hits, Options
from .base import LARGEST_REPLY, Engine, State

if TYPE_CHECKING:
    from collections.abc import Mapping

DEADLINE = 10.0  # seconds for one request
_PAUSE = 0.5  # seconds before the second try, more or less
_FREE = (Unreachable, Untrusted, BadAddress)  # failures before anything was sent that could cost a fee
_CAPS = Caps(wire=LARGEST_REPLY, decoded=LARGEST_REPLY)


class EngineError(WebError):
    """An engine gave no answer. `retry_after` is how many seconds it asks to be left alone, if it says so.

    Without `reached` no connection was had to it.
    """

    def __init__(
        self, engine: str, state: State, detail: str, retry_after: float | None = None, reached: bool = True
    ) -> None:
        self.engine = engine
        self.state = state
        self.detail = detail
        self.retry_after = retry_after
        self.reached = reached
        super().__init__(f"{engine}: {state}: {detail}")


class EngineSearch:
    """An engine with a client to ask it by, under `name`. The client follows no redirects: it may carry a key."""

    def __init__(self, engine: Engine, client: Client, options: Options | None = None, name: str = "") -> None:
        self._engine = engine
        self._client = client
        self._options = options or Options()
        self.name = name or engine.name

    async def search(self, query: str, top: int) -> Hits:
        """At most `top` hits.

        Raises: EngineError where there was no true answer.
        """
        if self._engine.disabled:
            raise EngineError(self.name, State.DISABLED, self._engine.disabled)
        asked: list[str] = []
        try:
            reply = await self._asked(query, top, asked)
            found = self._engine.parse(reply.status, reply.body)
            if found.state not in (State.RESULTS, State.EMPTY):
                raise EngineError(self.name, found.state, found.detail, _seconds(reply.headers))
        except EngineError as error:
            error.asked = asked
            raise
        return Hits(found.hits[:top], self.name, asked=asked)

    async def _asked(self, query: str, top: int, asked: list[str]) -> Reply:
        """The reply; a connection that fails, or a server error, is tried once more."""
        try:
            reply = await self._once(query, top, asked)
        except (Unreachable, Incomplete):
            reply = None
        except TransportError as error:
            raise self._failed(error) from error
        if reply is not None and reply.status < 500:
            return reply
        await asyncio.sleep(_PAUSE * random.uniform(0.5, 1.5))
        try:
            return await self._once(query, top, asked)
        except TransportError as error:
            raise self._failed(error) from error

    async def _once(self, query: str, top: int, asked: list[str]) -> Reply:
        """One request; `asked` gets the engine's name if its reply may cost a fee: errors cost none."""
        call = self._engine.request(query, top, self._options)
        try:
            reply = await self._client.request(
                call.method,
                call.url,
                params=call.params,
                headers=call.headers,
                json=call.json,
                deadline=DEADLINE,
                caps=_CAPS,
            )
        except TransportError as error:
            if not isinstance(error, _FREE):
                asked.append(self.name)
            raise
        if reply.status < 300:
            asked.append(self.name)
        return reply

    def _failed(self, error: TransportError) -> EngineError:
        if isinstance(error, TooLarge):
            return EngineError(self.name, State.UNREADABLE, "its reply is too large; choose another engine")
        return EngineError(self.name, State.UNREADABLE, str(error), reached=not isinstance(error, Unreachable))


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds (RFC 9110, 10.2.3); its form as a date is left to the circuit breaker's own pause."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isascii() and value.isdecimal() and len(value) < 7 else None
