"""Asking one engine over HTTP: a hit list, or an error that says which engine, what state, and what to do."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from ...errors import WebError
from ...records import Hit
from ...transport import Caps, Client, Incomplete, Reply, TooLarge, TransportError, Unreachable
from ..base import Options
from .base import LARGEST_REPLY, Engine, State

if TYPE_CHECKING:
    from collections.abc import Mapping

DEADLINE = 10.0  # seconds for one request
_PAUSE = 0.5  # seconds before the second try, more or less
_CAPS = Caps(wire=LARGEST_REPLY, decoded=LARGEST_REPLY)


class EngineError(WebError):
    """An engine gave no answer. `retry_after` is how many seconds it asks to be left alone, if it says so."""

    def __init__(self, engine: str, state: State, detail: str, retry_after: float | None = None) -> None:
        self.engine = engine
        self.state = state
        self.detail = detail
        self.retry_after = retry_after
        super().__init__(f"{engine}: {state}: {detail}")


class EngineSearch:
    """An engine with a client to ask it by, under `name`. The client follows no redirects: it may carry a key."""

    def __init__(self, engine: Engine, client: Client, options: Options | None = None, name: str = "") -> None:
        self._engine = engine
        self._client = client
        self._options = options or Options()
        self.name = name or engine.name

    async def search(self, query: str, top: int) -> list[Hit]:
        """At most `top` hits.

        Raises: EngineError where there was no true answer.
        """
        if self._engine.disabled:
            raise EngineError(self.name, State.DISABLED, self._engine.disabled)
        reply = await self._asked(query, top)
        found = self._engine.parse(reply.status, reply.body)
        if found.state not in (State.RESULTS, State.EMPTY):
            raise EngineError(self.name, found.state, found.detail, _seconds(reply.headers))
        return list(found.hits[:top])

    async def _asked(self, query: str, top: int) -> Reply:
        """The reply; a connection that fails, or a server error, is tried once more."""
        try:
            reply = await self._once(query, top)
        except (Unreachable, Incomplete):
            reply = None
        except TransportError as error:
            raise self._failed(error) from error
        if reply is not None and reply.status < 500:
            return reply
        await asyncio.sleep(_PAUSE * random.uniform(0.5, 1.5))
        try:
            return await self._once(query, top)
        except TransportError as error:
            raise self._failed(error) from error

    async def _once(self, query: str, top: int) -> Reply:
        call = self._engine.request(query, top, self._options)
        return await self._client.request(
            call.method,
            call.url,
            params=call.params,
            headers=call.headers,
            json=call.json,
            deadline=DEADLINE,
            caps=_CAPS,
        )

    def _failed(self, error: TransportError) -> EngineError:
        if isinstance(error, TooLarge):
            return EngineError(self.name, State.UNREADABLE, "its reply is too large; choose another engine")
        return EngineError(self.name, State.UNREADABLE, str(error))


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds (RFC 9110, 10.2.3); its form as a date is left to the circuit breaker's own pause."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isascii() and value.isdecimal() and len(value) < 7 else None
