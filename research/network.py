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
    """Connects to what `addresses` gives, in that order, and checks certificates with the system's trust."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._network = httpcore.AnyIOBackend()
        self._trust: ssl.SSLContext | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            addresses = await self._addresses(host, port)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        failure: Exception = httpcore.ConnectError(f"no address for {host}")
        for address in addresses:
            try:
                stream = await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _Stream(stream, self.trust)
        raise failure

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


class _Stream(httpcore.AsyncNetworkStream):
    """Reads little at first after each request, then as much as there is."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, trust: Callable[[], ssl.SSLContext]) -> None:
        self._stream = stream
        self._trust = trust
        self._size = FIRST_READ
        self._ready = select.poll()  # the pool asks so often that looking the socket up each time is felt
        self._ready.register(stream.get_extra_info("socket"), select.POLLIN)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._stream.read(min(max_bytes, self._size), timeout)
        self._size = NEXT_READ
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._size = FIRST_READ
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(self._trust(), server_hostname, timeout), self._trust)

    def get_extra_info(self, info: str) -> Any:
        return bool(self._ready.poll(0)) if info == "is_readable" else self._stream.get_extra_info(info)
