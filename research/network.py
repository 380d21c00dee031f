"""Names and connections, below HTTP: one look-up, and only what it gave is dialled."""

# ruff: noqa: ASYNC109 (the `timeout` arguments are httpcore's interface)
from __future__ import annotations

import asyncio
import select
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore

FIRST_READ = 4_096  # bytes; so that a body's first piece tells its type before more has come in
NEXT_READ = 262_144  # what the event loop takes off the wire at once
LOOK_UP_DEADLINE = 10.0  # seconds
NEXT_ADDRESS = 3.0  # seconds that an address may take to answer while there are others

Addresses = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port → the addresses that may be dialled, the preferred one first. Raises OSError where there is none."""


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of `host` as the system's resolver gives them, without repetitions.

    Raises: OSError where there is none, or none within ten seconds.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[str]] = loop.create_future()

    def settle(addresses: list[str]) -> None:
        if not found.done():
            found.set_result(addresses)

    def ask() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            rows = []
        addresses = list(dict.fromkeys(str(row[4][0]) for row in rows))
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, addresses)

    # A thread of its own, which a resolver that hangs can keep: the loop's pool would be waited for at exit.
    threading.Thread(target=ask, name=f"look-up {host}", daemon=True).start()
    try:
        addresses = await asyncio.wait_for(found, LOOK_UP_DEADLINE)
    except TimeoutError:
        addresses = []
    if not addresses:
        raise OSError(f"the name {host} could not be resolved")
    return addresses


class Dialler(httpcore.AsyncNetworkBackend):
    """Connects to what `addresses` gives, in that order, and checks certificates with the system's trust.

    Time is bounded by the one deadline around each request: the interface's own time-outs are not used.
    """

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._trust: ssl.SSLContext | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            addresses = await self._addresses(host, port)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        failure: Exception = OSError(f"no address for {host}")
        for left, address in zip(range(len(addresses) - 1, -1, -1), addresses, strict=True):
            try:
                async with asyncio.timeout(NEXT_ADDRESS if left else None):
                    _, wire = await loop.create_connection(_Wire, address, port)
            except (OSError, OverflowError) as error:
                failure = error
            else:
                return _Stream(wire, self.trust)
        raise httpcore.ConnectError(str(failure)) from failure

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("Unix sockets are not dialled")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def trust(self) -> ssl.SSLContext:
        """What certificates are checked by: made when first needed, since reading the authorities takes a while."""
        if self._trust is None:
            self._trust = ssl.create_default_context()  # honours SSL_CERT_FILE and SSL_CERT_DIR
            if not self._trust.cert_store_stats()["x509_ca"]:
                import certifi

                self._trust.load_verify_locations(certifi.where())
            self._trust.set_alpn_protocols(["http/1.1"])
        return self._trust


class _Wire(asyncio.Protocol):
    """What has come in on a connection and was not yet taken; at most one task waits for it to change."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.received = bytearray()
        self.ended = False
        self.cause: Exception | None = None
        self.full = False  # no more should be sent for now
        self._changed: asyncio.Future[None] | None = None

    async def change(self) -> None:
        self._changed = asyncio.get_running_loop().create_future()
        await self._changed

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        if len(self.received) >= NEXT_READ:
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self.ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended, self.cause = True, exc
        self._wake()

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        self._wake()

    def take(self, most: int) -> bytes:
        taken = bytes(self.received[:most])
        del self.received[:most]
        self.transport.resume_reading()
        return taken


class _Stream(httpcore.AsyncNetworkStream):
    """Reads little at first after each request, then as much as there is.

    On asyncio itself, and not on the library that httpcore would use, which costs a tenth of the time of fetching
    a page, and which has the pool ask the kernel about each idle connection before each request. Here the kernel is
    asked about the one that is taken: it may have ended, and the event loop not know of it yet.
    """

    def __init__(self, wire: _Wire, trust: Callable[[], ssl.SSLContext]) -> None:
        self._wire = wire
        self._trust = trust
        self._size = FIRST_READ
        self.taken = 0  # bytes off the wire, as they come

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        wire = self._wire
        while not wire.received and not wire.ended:
            await wire.change()
        if not wire.received and (wire.cause is not None or _was_cut(wire.transport.get_extra_info("ssl_object"))):
            raise httpcore.ReadError(str(wire.cause or "the connection was cut")) from wire.cause
        size, self._size = self._size, NEXT_READ
        taken = wire.take(min(max_bytes, size))
        self.taken += len(taken)
        return taken

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        wire, is_first = self._wire, self._size != FIRST_READ
        if is_first and _is_readable(wire.transport.get_extra_info("socket")):
            raise httpcore.ConnectionNotAvailable("it ended while it was idle")  # the pool takes another one
        self._size = FIRST_READ
        wire.transport.write(buffer)
        while wire.full and not wire.ended and not wire.received:
            await wire.change()
        if wire.ended or wire.full:
            raise httpcore.WriteError("the connection has ended, or is answered early") from wire.cause

    async def aclose(self) -> None:
        self._wire.transport.abort()
        await asyncio.sleep(0)  # in which the socket is closed

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        wire = self._wire
        try:
            wire.transport = await asyncio.get_running_loop().start_tls(
                wire.transport, wire, self._trust(), server_hostname=server_hostname
            )
        except (ssl.SSLError, OSError) as error:
            raise httpcore.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # of an idle connection: it has ended, or says what nobody asked for
            return self._wire.ended or bool(self._wire.received)
        return self._wire.transport.get_extra_info(info)


def _is_readable(connection: Any) -> bool:
    ready = select.poll()
    ready.register(connection.fileno(), select.POLLIN)
    return bool(ready.poll(0))


def _was_cut(channel: ssl.SSLObject | None) -> bool:
    """Whether a connection under TLS has ended without the farewell that makes what came through it whole."""
    if channel is None:
        return False
    try:
        channel.read(1)
    except ssl.SSLZeroReturnError:
        return False
    except ssl.SSLError:
        return True
    return False
