"""The parser process: reads a body from its socket, answers with a page, until the socket ends.

It is started by `reader.py` and shares nothing with it but one socket (file descriptor 0).
A request is two lengths (of header and body, big-endian, 32 bits each), a JSON header and
the body; a reply is one length and a JSON object of page fields. An empty reply says that
it is ready. There is no pickle, and nothing in a request is run.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import sys

from .reading import read_fields

LENGTHS = struct.Struct(">II")
LENGTH = struct.Struct(">I")
OUT_OF_MEMORY = "the parser ran out of memory"

_PAGE = resource.getpagesize()
_CHUNK = 1 << 18


def main() -> None:
    """Serve until the other end closes. Arguments: the package's folder, memory in bytes."""
    os.nice(5)  # the event loop, which feeds all parsers, goes first
    memory = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _warm_up()
    _send(b"")
    while request := _receive(LENGTHS.size):
        header_size, body_size = LENGTHS.unpack(request)
        header = json.loads(_receive(header_size))
        fields, exhausted = _read(header, _receive(body_size))
        _send(json.dumps(fields, ensure_ascii=False).encode())
        if exhausted or _size() > memory // 2:
            return  # a fresh process takes over before memory could become a page's misfortune


def _read(header: dict[str, object], body: bytes) -> tuple[dict[str, object], bool]:
    """The page's fields, and whether memory ran out over them.

    The process is killed by the kernel once the page has used its processor time, and at
    twice the deadline in any case, should nobody be left to kill it.
    """
    signal.setitimer(signal.ITIMER_PROF, float(str(header["cpu"])))
    signal.alarm(int(2 * float(str(header["cpu"]))) + 10)
    url, content_type, status = str(header["url"]), str(header["content_type"]), int(str(header["status"]))
    try:
        return dict(read_fields(body, url=url, content_type=content_type, status=status)), False
    except MemoryError:
        return {"url": url, "outcome": "empty", "detail": OUT_OF_MEMORY}, True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def _warm_up() -> None:
    """Load what every page needs while nobody waits."""
    read_fields(b"<html><body><article><p>Ready.</p></article></body></html>", url="")


def _size() -> int:
    """Bytes of address space in use."""
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[0]) * _PAGE


def _receive(size: int) -> bytes:
    """Exactly `size` bytes, or none where the other end has closed."""
    received = bytearray()
    while len(received) < size:
        chunk = os.read(0, min(size - len(received), _CHUNK))
        if not chunk:
            return b""
        received += chunk
    return bytes(received)


def _send(reply: bytes) -> None:
    waiting = memoryview(LENGTH.pack(len(reply)) + reply)
    while waiting:
        waiting = waiting[os.write(0, waiting) :]
