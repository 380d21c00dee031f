"""Reading a page: robots.txt, politeness, redirects, caps, and what became of it.

Every hop is checked anew (address, port, robots.txt) and shares one deadline, which runs only
while a request does, not while it waits for its turn at a busy host. What is definite becomes a
`Page` with its outcome; what may pass raises WebError and is not stored. Bodies of anything but
a success are never read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import urljoin

from ..errors import WebError
from ..network import Addresses, look_up
from ..records import Outcome, Page
from ..transport import BadAddress, BadCoding, Caps, Client, Stream, TimedOut, TooLarge, TransportError, Untrusted
from .guard import Guard, Policy, RefusedAddress, Target, target
from .media import HEAD, sniff
from .outcomes import by_status
from .revisits import Revisits, Validators
from .robots import LARGEST, Robots, RobotsReply

AGENT = "research"
USER_AGENT = f"{AGENT}/0.1"
_HEADERS = {
    "User-Agent": USER_AGENT,
    "Accept": "text/html,application/xhtml+xml,application/pdf,text/plain;q=0.9,*/*;q=0.5",
}
_REDIRECTS = (301, 302, 303, 307, 308)
_PASSING = (408, 425, 429)
_NEVER_TEXT = ("image/", "audio/", "video/", "font/")
_SMALL = 16_384  # bytes of a body that is cheaper to read than a new connection to make
_BOMB = 100  # times its compressed size: no text compresses so well


class PageReader(Protocol):
    """What makes a page of a body; it may take its time in another process."""

    async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page: ...


@dataclass(frozen=True)
class Limits:
    """Seconds, bytes and counts for one page. Text beyond `text` is left out and the page marked as cut."""

    deadline: float = 20.0
    robots_deadline: float = 8.0
    redirects: int = 5
    text: int = 4_000_000  # what the parser takes
    pdf: int = 25_000_000
    per_host: int = 2


@dataclass
class _Turns:
    """The right to ask one host, and how many hold it or wait for it."""

    free: asyncio.Semaphore
    users: int = 0


@dataclass
class _Document:
    """A body and where it came from."""

    target: Target
    status: int
    content_type: str
    validators: Validators
    body: bytearray = field(default_factory=bytearray)
    cut: bool = False


class Fetcher:
    """Fetches pages until it is closed.

    `policy` says which addresses may be dialled. A page that `revisits` remembers is asked for
    only if it has changed since.
    """

    def __init__(
        self,
        reader: PageReader,
        *,
        policy: Policy | None = None,
        resolve: Addresses = look_up,
        limits: Limits | None = None,
        revisits: Revisits | None = None,
    ) -> None:
        self._reader = reader
        self._revisits = revisits
        self._limits = limits or Limits()
        self._client = Client(addresses=Guard(policy, resolve).addresses, headers=_HEADERS)
        self._robots = Robots(self._robots_txt, AGENT)
        self._turns: dict[str, _Turns] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._robots.aclose()
        await self._client.aclose()

    async def fetch(self, url: str) -> Page:
        """The page at `url` after redirects, whatever became of it.

        Raises: WebError for what may pass: time-outs, broken connections, server errors, a busy or silent host.
        """
        found = await self._followed(url)
        if isinstance(found, Page):
            return found
        page = await self._reader.read(
            bytes(found.body), url=found.target.url, content_type=found.content_type, status=found.status
        )
        if self._revisits and found.validators and page.outcome is Outcome.OK and not found.cut:
            self._revisits.keep(found.target.url, found.validators, page)
        return page.model_copy(update={"cut": True}) if found.cut else page

    async def _followed(self, url: str) -> Page | _Document:
        seen: set[str] = set()
        left = self._limits.deadline
        while True:
            try:
                place = target(url)
            except RefusedAddress:
                return _refused(url)
            if place.url in seen or len(seen) > self._limits.redirects:
                return Page(url=place.url, outcome=Outcome.BLOCKED, detail="its redirects lead nowhere")
            seen.add(place.url)
            found, took = await self._hop(place, left)
            if not isinstance(found, str):
                return found
            url, left = found, left - took

    async def _hop(self, place: Target, left: float) -> tuple[Page | _Document | str, float]:
        """The document, what became of it, or where it has moved to; and the seconds that took."""
        clock = asyncio.get_running_loop().time
        try:
            if not await self._robots.allows(place):
                detail = "the site's robots.txt does not let programs read it"
                return Page(url=place.url, outcome=Outcome.BLOCKED, detail=detail), 0
            async with self._turn(place.host):
                began = clock()
                caps = Caps(2 * self._limits.pdf, 2 * self._limits.pdf)  # never reached: bodies are cut before
                earlier = self._revisits.earlier(place.url) if self._revisits else None
                asked, left = earlier[0].headers if earlier else None, max(left, 0.001)
                async with self._client.stream("GET", place.url, deadline=left, headers=asked, caps=caps) as stream:
                    if stream.status == 304 and earlier:
                        return earlier[1], clock() - began
                    return await self._received(place, stream), clock() - began
        except (RefusedAddress, TransportError) as error:
            return _definite(place.url, error), 0

    async def _received(self, place: Target, stream: Stream) -> Page | _Document | str:
        if stream.status in _REDIRECTS:
            await _drained(stream)
            return _moved(place, stream.headers.get("location", ""))
        if stream.headers.get("cf-mitigated", "") == "challenge":
            return Page(url=place.url, outcome=Outcome.BLOCKED, detail="it asks for a challenge to be solved")
        if stream.status >= 500 or stream.status in _PASSING:
            raise WebError(f"not reached: {place.url} answers with status {stream.status}; try again later")
        if ended := by_status(stream.status):
            return Page(url=place.url, outcome=Outcome(ended[0]), detail=ended[1])
        return await self._body(place, stream)

    async def _body(self, place: Target, stream: Stream) -> Page | _Document:
        content_type, validators = stream.headers.get("content-type", ""), Validators.of(stream.headers)
        found = _Document(place, stream.status, content_type, validators)
        kind: str | None = None
        async for piece in stream.pieces():
            found.body += piece
            if kind is None and len(found.body) >= HEAD // 8:
                kind = sniff(bytes(found.body[:HEAD]))
                if wrong := _wrong_type(found, kind):
                    return wrong
                if kind and _declared_length(stream) > self._limits.pdf:
                    return Page(url=place.url, outcome=Outcome.TOO_LARGE, media_type=kind)
            if len(found.body) > (self._limits.pdf if kind else self._limits.text):
                return self._overflowed(found, kind or "", stream)
        return _wrong_type(found, sniff(bytes(found.body[:HEAD]))) or found

    def _overflowed(self, found: _Document, kind: str, stream: Stream) -> Page | _Document:
        if kind or stream.decoded > _BOMB * stream.wire:
            detail = f"more than {len(found.body):,} bytes, from {stream.wire:,} on the wire"
            return Page(url=found.target.url, outcome=Outcome.TOO_LARGE, media_type=kind, detail=detail)
        del found.body[self._limits.text :]
        found.cut = True
        return found

    @asynccontextmanager
    async def _turn(self, host: str) -> AsyncIterator[None]:
        """A place among the few requests that a host gets at once."""
        turns = self._turns.setdefault(host, _Turns(asyncio.Semaphore(self._limits.per_host)))
        turns.users += 1
        try:
            async with turns.free:
                yield
        finally:
            turns.users -= 1
            if not turns.users:
                del self._turns[host]

    async def _robots_txt(self, url: str) -> RobotsReply:
        reply = await self._robots_hop(url)
        for _ in range(self._limits.redirects):
            if isinstance(reply, RobotsReply):
                return reply
            try:
                reply = await self._robots_hop(reply)
            except RefusedAddress:
                break
        return reply if isinstance(reply, RobotsReply) else RobotsReply(404)

    async def _robots_hop(self, url: str) -> RobotsReply | str:
        """What `url` answers, or where it has moved to. A body that can't be read counts as not found."""
        place, deadline = target(url), self._limits.robots_deadline
        async with self._turn(place.host), self._client.stream("GET", place.url, deadline=deadline) as stream:
            if stream.status in _REDIRECTS:
                moved = _moved(place, stream.headers.get("location", ""))
                return moved if isinstance(moved, str) else RobotsReply(404)
            if stream.status >= 300:
                await _drained(stream)
                return RobotsReply(stream.status)
            try:
                return RobotsReply(stream.status, await _start(stream, LARGEST))
            except (BadCoding, TooLarge):
                return RobotsReply(404)


async def _drained(stream: Stream) -> None:
    """Take a small body off the wire, unused, so that the connection can carry the next request."""
    if 0 <= _declared_length(stream) <= _SMALL:
        async for _ in stream.raw():
            pass


async def _start(stream: Stream, size: int) -> bytes:
    body = bytearray()
    async for piece in stream.pieces():
        body += piece
        if len(body) >= size:
            break
    return bytes(body[:size])


def _declared_length(stream: Stream) -> int:
    """What Content-Length says; -1 if there is none."""
    length = stream.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdecimal() and len(length) < 20 else -1


def _moved(place: Target, location: str) -> str | Page:
    """Where a redirect leads, as an absolute URL; a page that says so if it leads nowhere."""
    try:
        return urljoin(place.url, location) if location.strip() else _refused(place.url)
    except ValueError:
        return _refused(place.url)


def _refused(url: str) -> Page:
    return Page(url=url[:2_000], outcome=Outcome.REFUSED_ADDRESS, detail=str(RefusedAddress()))


def _definite(url: str, error: RefusedAddress | TransportError) -> Page:
    """What a failure that will not pass makes of the page.

    Raises: WebError for one that may.
    """
    if isinstance(error, RefusedAddress | BadAddress):
        return _refused(url)
    if isinstance(error, Untrusted):
        return Page(url=url, outcome=Outcome.REFUSED_ADDRESS, detail="its certificate is not valid")
    if isinstance(error, TooLarge):
        return Page(url=url, outcome=Outcome.TOO_LARGE, detail=str(error))
    if isinstance(error, BadCoding):
        return Page(url=url, outcome=Outcome.WRONG_TYPE, detail=str(error))
    raise WebError(f"{'timed out' if isinstance(error, TimedOut) else 'not reached'}: {error}") from error


def _wrong_type(found: _Document, kind: str) -> Page | None:
    """A page that says so if its first bytes, or their declared type, are of something without text."""
    declared = found.content_type.partition(";")[0].strip().lower()
    if kind == "application/pdf":
        return None
    media_type = kind or (declared if declared.startswith(_NEVER_TEXT) else "")
    if not media_type:
        return None
    return Page(url=found.target.url, outcome=Outcome.WRONG_TYPE, media_type=media_type, detail=f"it is {media_type}")
