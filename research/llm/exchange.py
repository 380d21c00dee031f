"""One try of a call: the request sent, its reply read within limits of time, every failure with its kind."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from research.errors import (
    MalformedError,
    ResearchError,
    TimedOutError,
    TruncatedError,
    UnreachableError,
    UsageError,
)
from research.llm.endpoint import Endpoint
from research.llm.failures import failure
from research.llm.messages import Completion
from research.llm.redaction import Pieces
from research.llm.sse import Decoder, Event
from research.llm.wires import WIRES, Encoded, Wire

if TYPE_CHECKING:
    from research.transport import Client, TransportError
    from research.transport import Stream as Reply

LONGEST_ERROR = 1 << 20  # bytes of a reply that is no completion
_PING = re.compile(r'\s*\{\s*"type"\s*:\s*"(ping|keepalive|heartbeat)"|\s*(\{\s*\})?\s*$')


@dataclass(frozen=True)
class Patience:
    """Seconds: for one try in all, until the first event of its stream, between two of them; and the longest
    wait that a provider may ask for. Comments and pings are no events."""

    call: float = 300.0
    first: float = 60.0
    silence: float = 45.0
    asked: float = 60.0


@dataclass
class Exchange:
    """One request and its reply. `patience` is what this request may take; `secrets` are shown to nobody.

    While it runs and after: `begun` tells whether some of the reply has come, `billed` whether the
    provider may ask money for it, `first` the seconds until the first piece of text. `on_admitted` is
    called with the headers of a reply as soon as it is sure to be a completion.
    """

    endpoint: Endpoint
    encoded: Encoded
    patience: Patience
    stream: bool
    secrets: tuple[str, ...] = ()
    on_text: Callable[[str], None] | None = None
    on_admitted: Callable[[Mapping[str, str]], None] = lambda headers: None
    begun: bool = False
    billed: bool = True
    first: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    _since: float = 0.0

    def begin(self) -> None:
        """Its time runs from now."""
        self._since = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._since

    async def completion(self, client: Client) -> Completion:
        """Raises: ProviderError or one of its kinds; UsageError for an address that can't be asked."""
        from research.transport import TransportError

        name, patience = self.endpoint.name, self.patience
        sent = client.stream(
            "POST",
            self.endpoint.base_url.rstrip("/") + self.encoded.path,
            deadline=patience.call,
            headers=self.encoded.headers,
            json=self.encoded.body,
        )
        try:
            async with asyncio.timeout(patience.first if self.stream else None) as limit, sent as reply:
                self.headers = dict(reply.headers)
                return await self._read(reply, limit)
        except TimeoutError:
            what = f"fell silent for {patience.silence:g} s" if self.begun else f"sent nothing for {patience.first:g} s"
            raise TimedOutError(f"{name} {what}. Run it again: finished work is kept.") from None
        except TransportError as error:
            raise self._translated(error) from None

    def _translated(self, error: TransportError) -> ResearchError:
        """A transport's failure as a provider's."""
        from research import transport

        told = f"{self.endpoint.name}: {error}"
        if isinstance(error, transport.TimedOut):
            return TimedOutError(told)
        if isinstance(error, transport.Incomplete):
            return TruncatedError(told) if self.headers else UnreachableError(told)
        if isinstance(error, transport.TooLarge | transport.BadCoding):
            return MalformedError(told)
        self.billed = False
        if isinstance(error, transport.BadAddress):
            return UsageError(told)
        failed = UnreachableError(told)
        failed.passing = not isinstance(error, transport.Untrusted)
        return failed

    async def _read(self, reply: Reply, limit: asyncio.Timeout) -> Completion:
        here = self.endpoint
        if reply.status != 200:
            self.billed = False
            body = await _whole(reply, LONGEST_ERROR)
            key = here.key_name or "its key"
            raise failure(reply.status, reply.headers, body, here.name, key=key, secrets=self.secrets)
        self.on_admitted(self.headers)
        if self.stream and "json" not in reply.headers.get("content-type", ""):
            return await self._streamed(reply, limit)
        limit.reschedule(None)
        body = await _whole(reply)
        self.begun = True
        completion = self._wire.decode(body, reply.headers, here.name)
        self.first = self.elapsed
        if self.on_text is not None and completion.text:
            pieces = Pieces(self.on_text, self.secrets)
            pieces.add(completion.text)
            pieces.end()
        return completion

    async def _streamed(self, reply: Reply, limit: asyncio.Timeout) -> Completion:
        stream, decoder = self._wire.streamed(reply.headers, self.endpoint.name), Decoder()
        pieces = None if self.on_text is None else Pieces(self.on_text, self.secrets)

        def take(events: list[Event]) -> None:
            for event in events:
                if _is_ping(event):
                    continue
                self.begun = True
                limit.reschedule(asyncio.get_running_loop().time() + self.patience.silence)
                for text in stream.feed(event):
                    self.first = self.first or self.elapsed
                    if pieces is not None:
                        pieces.add(text)

        async for piece in reply.pieces():
            take(decoder.feed(piece))
        take(decoder.finish())
        completion = stream.finish()
        self.first = self.first or self.elapsed
        if pieces is not None:
            pieces.end()
        return completion

    @property
    def _wire(self) -> Wire:
        return WIRES[self.endpoint.wire]


async def _whole(reply: Reply, most: int | None = None) -> bytes:
    """The body, or its first `most` bytes."""
    body = bytearray()
    async for piece in reply.pieces():
        body += piece
        if most is not None and len(body) >= most:
            break
    return bytes(body[:most])


def _is_ping(event: Event) -> bool:
    return event.name in ("ping", "keepalive", "heartbeat") or _PING.match(event.data) is not None
