"""A loopback web server that misbehaves on purpose, and counts what it is asked.

    async with FaultServer({"/": reply(b"hello"), "/drip": drip(b"x" * 50, every=0.3)}) as server:
        server.url("/drip"), server.requests, server.connections, server.peak

It writes raw bytes, so that it can do what no HTTP library would: lie about lengths, cut chunks,
reset. An act is `async (writer, request) -> None`; a connection is kept for the next request
unless the act closes it. Runs in the test's own event loop.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Received:
    """A request as it came. `headers` has lower case names, in order, repeated ones included."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)


Act = Callable[[asyncio.StreamWriter, Received], Awaitable[None]]


def head(status: int = 200, headers: Mapping[str, str] | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status} Told", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    return "\r\n".join([*lines, "", ""]).encode()


def reply(body: bytes = b"", status: int = 200, headers: Mapping[str, str] | None = None, after: float = 0) -> Act:
    """A sound response, `after` seconds late; as text/html unless `headers` say otherwise."""
    sent = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body)), **(headers or {})}

    async def act(writer: asyncio.StreamWriter, request: Received) -> None:
        await asyncio.sleep(after)
        writer.write(head(status, sent) + (b"" if request.method == "HEAD" else body))

    return act


def raw(data: bytes, close: bool = True) -> Act:
    """Exactly these bytes, then the end of the connection."""

    async def act(writer: asyncio.StreamWriter, request: Received) -> None:
        writer.write(data)
        await writer.drain()
        if close:
            writer.close()

    return act


def redirect(to: str, status: int = 302) -> Act:
    return reply(b"", status, {"Location": to})


def hang() -> Act:
    """No answer at all."""

    async def act(writer: asyncio.StreamWriter, request: Received) -> None:
        await asyncio.sleep(3600)

    return act


def drip(body: bytes, every: float) -> Act:
    """One byte of the body every so many seconds."""

    async def act(writer: asyncio.StreamWriter, request: Received) -> None:
        writer.write(head(200, {"Content-Type": "text/html", "Content-Length": str(len(body))}))
        for byte in body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(every)

    return act


def short(body: bytes, missing: int = 10) -> Act:
    """A Content-Length that promises more than comes."""
    return raw(head(200, {"Content-Type": "text/html", "Content-Length": str(len(body) + missing)}) + body)


def chunked(body: bytes, size: int = 100, complete: bool = True) -> Act:
    """Chunks; without `complete`, the connection ends in the middle of one."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    data = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    data = data + b"0\r\n\r\n" if complete else data[: len(data) - size // 2]
    return raw(head(200, {"Content-Type": "text/html", "Transfer-Encoding": "chunked"}) + data, close=not complete)


def reset(sent: bytes = b"") -> Act:
    """A TCP reset after `sent`."""

    async def act(writer: asyncio.StreamWriter, request: Received) -> None:
        writer.write(sent)
        await writer.drain()
        await asyncio.sleep(0.02)
        transport_socket = writer.get_extra_info("socket")
        transport_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return act


def gzipped(body: bytes, cut: int = 0, coding: str = "gzip") -> Act:
    """The body as gzip, without its last `cut` bytes (the Content-Length agrees)."""
    packed = gzip.compress(body, mtime=0)
    packed = packed[: len(packed) - cut]
    return reply(packed, headers={"Content-Encoding": coding})


def bomb(size: int, fill: bytes = b" ", layers: int = 1, content_type: str = "text/html") -> Act:
    """gzip that expands to `size` times the byte `fill`, wrapped `layers` times and declared so; sizes are whole MiB."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(fill * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)  # stands for itself: can be repeated
    header, ending = b"\x1f\x8b\x08" + bytes(6) + b"\xff", b"\x03\0" + bytes(8)
    packed = header + block * (size >> 20) + ending
    for _ in range(layers - 1):
        packed = gzip.compress(packed, mtime=0)
    coding = ", ".join(["gzip"] * layers)
    return reply(packed, headers={"Content-Type": content_type, "Content-Encoding": coding})


def endless(piece: bytes, headers: Mapping[str, str] | None = None) -> Act:
    """A body without end, as fast as it is read."""

    async def act(writer: asyncio.StreamWriter, request: Received) -> None:
        writer.write(head(200, {"Content-Type": "text/html", **(headers or {})}))
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()

    return act


@dataclass
class FaultServer:
    """`routes` maps paths (with their query, else without) to acts; anything else is a 404."""

    routes: dict[str, Act]
    host: str = "127.0.0.2"
    tls: ssl.SSLContext | None = None
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    active: int = 0
    peak: int = 0  # the most requests that were being answered at once
    port: int = 0  # any that is free, unless one is named

    def __post_init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked = asyncio.Event()  # set with the first request

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, self.host, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def url(self, path: str = "/", host: str = "") -> str:
        return f"{'https' if self.tls else 'http'}://{host or self.host}:{self.port}{path}"

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (request := await _read(reader)) is not None and not writer.is_closing():
                await self._answer(writer, request)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass  # clients may leave at any time, and so does the test
        finally:
            self._tasks.discard(task)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, request: Received) -> None:
        self.requests.append(request)
        self.asked.set()
        act = self.routes.get(request.path) or self.routes.get(request.path.partition("?")[0]) or reply(b"", 404)
        self.active += 1
        self.peak = max(self.peak, self.active)
        try:
            await act(writer, request)
            if not writer.is_closing():
                await writer.drain()
        finally:
            self.active -= 1


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    method, path, _ = lines[0].split(" ", 2)
    pairs = [line.split(":", 1) for line in lines[1:] if line]
    headers = tuple((name.lower(), value.strip()) for name, value in pairs)
    body = await reader.readexactly(int(dict(headers).get("content-length", 0)))
    return Received(method, path, headers, body)
