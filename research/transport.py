"""HTTP, for models, engines and pages alike: the only module that knows httpx.

A client has no state beyond its connections: no cookies, no redirects, no proxy or password from
the environment, no header that was not given to it but `Host` and the encoding. Names are looked
up once per connection, and what the look-up gave is what is dialled, so that a caller's address
policy (`addresses`) can't be circumvented. One deadline covers a request from look-up to last byte.
Bodies come in pieces, decoded within caps; gzip is the only coding that is offered and accepted.

    TransportError
    ├── TimedOut         the deadline passed                              may pass
    ├── Unreachable      no such name, no connection                      may pass
    ├── Incomplete       the connection broke, or the body was cut short  may pass
    ├── Untrusted        the certificate is not valid for the host
    ├── TooLarge         more bytes than the caps allow
    ├── BadCoding        a content coding that was not asked for, or broken gzip
    └── BadAddress       no URL that can be asked for
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote_to_bytes

import httpcore
import httpx

from .errors import ResearchError
from .network import Addresses, Dialler, look_up

LARGEST_PIECE = 65_536  # bytes that decoding gives at once
PIECES_AT_ONCE = 64  # of a body, until others have a turn: a server may send it byte by byte


class TransportError(ResearchError):
    exit_code = 6


class TimedOut(TransportError):
    passing = True


class Unreachable(TransportError):
    passing = True


class Incomplete(TransportError):
    passing = True


class Untrusted(TransportError):
    pass


class TooLarge(TransportError):
    pass


class BadCoding(TransportError):
    pass


class BadAddress(TransportError):
    pass


@dataclass(frozen=True)
class Caps:
    """The most that one body may take: bytes as they come, and bytes when decoded."""

    wire: int = 20_000_000
    decoded: int = 50_000_000


@dataclass(frozen=True)
class Reply:
    """A whole response. `headers` don't mind case; repeated ones are joined with commas."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream:
    """A response whose body is still to come. `wire` and `decoded` count the bytes so far."""

    def __init__(self, response: httpx.Response, caps: Caps) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.wire = 0
        self.decoded = 0
        self._response = response
        self._caps = caps
        self._connection = response.extensions.get("network_stream")
        self._taken = getattr(self._connection, "taken", 0)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The decoded body, piece by piece; once only.

        Raises: Incomplete, TooLarge, BadCoding; TimedOut out of the `async with` around it.
        """
        decoder = _decoder(self.headers.get("content-encoding", ""))
        async for raw in self.raw():
            for piece in decoder.feed(raw):
                self.decoded += len(piece)
                self._check()
                yield piece
        decoder.finish()

    async def raw(self) -> AsyncIterator[bytes]:
        """The body as it comes, not decoded; instead of `pieces`."""
        count = 0
        async for raw in self._response.aiter_raw():
            self.wire += len(raw)
            self._check()
            yield raw
            count += 1
            if not count % PIECES_AT_ONCE:
                await asyncio.sleep(0)

    def _check(self) -> None:
        framed = getattr(self._connection, "taken", 0) - self._taken  # with what stands around the body's chunks
        if max(self.wire, framed / 2) > self._caps.wire or self.decoded > self._caps.decoded:
            raise TooLarge(f"the reply is larger than {self._caps.decoded:,} bytes; nothing of it was used")


class Client:
    """Connections to many hosts, kept alive between requests. Close it, or use it in `async with`."""

    def __init__(
        self, *, addresses: Addresses | None = None, headers: Mapping[str, str] | None = None, connections: int = 100
    ) -> None:
        self._headers = {**(headers or {}), "Accept-Encoding": "gzip"}
        self._transport = _Pinned(addresses or look_up, connections)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._transport.aclose()

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        deadline: float,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        content: bytes | None = None,
        caps: Caps = Caps(),
    ) -> AsyncIterator[Stream]:
        """The response as soon as its headers are there, within `deadline` seconds for everything inside the `with`.

        User info in the URL is sent as Basic authentication (RFC 7617).

        Raises: TransportError of each kind, and what the client's `addresses` raises.
        """
        place = _place(url)
        try:
            request = self._request(method, url, params, headers, json=json, content=content)
        except (httpx.InvalidURL, ValueError) as error:
            raise BadAddress(f"{place!r} is no URL that can be asked for; check it") from error
        try:
            async with asyncio.timeout(deadline):
                response = await self._transport.handle_async_request(request)
                try:
                    yield Stream(response, caps)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise TimedOut(f"{place} did not answer completely within {deadline:g} s; try again later") from error
        except httpx.TransportError as error:
            raise _told(error, place) from error

    def _request(
        self, method: str, url: str, params: Mapping[str, str] | None, headers: Mapping[str, str] | None, **body: Any
    ) -> httpx.Request:
        whole = httpx.URL(url)
        if whole.scheme not in ("http", "https") or not whole.host:
            raise ValueError("neither http nor https, or without a host")
        if params:
            whole = whole.copy_merge_params(params)
        sent = {**self._headers, **(headers or {})}
        if whole.userinfo:
            sent.setdefault("Authorization", f"Basic {b64encode(unquote_to_bytes(whole.userinfo)).decode()}")
        return httpx.Request(method, whole, headers=sent, **body)

    async def request(self, method: str, url: str, *, deadline: float, **how: Any) -> Reply:
        """The whole response; arguments and errors as for `stream`."""
        async with self.stream(method, url, deadline=deadline, **how) as stream:
            body = b"".join([piece async for piece in stream.pieces()])
            return Reply(stream.status, stream.headers, body)


def _place(url: str) -> str:
    """What messages call the URL: without user info and query, where keys may stand."""
    start, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{start}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0].partition('#')[0]}"[:200]


def _told(error: httpx.TransportError, place: str) -> TransportError:
    if _caused_by(error, ssl.SSLCertVerificationError):
        return Untrusted(f"the certificate of {place} is not valid; its content was not read")
    if isinstance(error, httpx.ConnectError | httpx.ProxyError):
        return Unreachable(f"no connection to {place}; check the address, or try again later")
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return BadAddress(f"{place} can't be asked for; check the address and the key")
    return Incomplete(f"the connection to {place} broke before the reply was complete; try again later")


def _caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False


class _Pinned(httpx.AsyncHTTPTransport):
    """httpx's transport over a pool that dials what `addresses` gives.

    httpx has no public way to set a pool's network; a test holds that this one is used.
    """

    def __init__(self, addresses: Addresses, connections: int) -> None:
        bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody: the dialler brings the real one
        super().__init__(verify=bare, trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=bare,
            max_connections=connections,
            max_keepalive_connections=20,
            keepalive_expiry=30.0,
            network_backend=Dialler(addresses),
        )


# Decoding


class _Identity:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def finish(self) -> None:
        return None


class _Gunzip:
    """gzip (RFC 1952), members one after the other, in pieces of at most 64 KiB."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member.eof:
                if data[0] != 0x1F:  # padding after the last member, which decoders pass over
                    return
                self._member = zlib.decompressobj(wbits=31)
            self._begun = True
            try:
                piece = self._member.decompress(data, LARGEST_PIECE)
            except zlib.error as error:
                raise BadCoding("the body says that it is gzip and is not; nothing of it was used") from error
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if piece:
                yield piece

    def finish(self) -> None:
        if self._begun and not self._member.eof:
            raise Incomplete("the compressed body ends too early; try again later")


def _decoder(coding: str) -> _Identity | _Gunzip:
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return _Identity()
    if coding in ("gzip", "x-gzip"):
        return _Gunzip()
    raise BadCoding(f"the body has the coding {coding[:40]!r}, which was not asked for; nothing of it was used")
