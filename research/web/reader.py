"""Reading pages in processes that can be killed.

Parsers of HTML and PDF take hostile bytes, and some bytes make them crash, hang or eat
memory. So they run apart, with limits, no secrets and no files of ours; the worst that a
page can do is to fail alone.

What a failure means. A page that used up its share of processor time, ran out of memory,
or made two parsers crash one after the other would do so again: it is an `empty` page,
with the reason as its detail. A deadline that passed without the processor having been
used (the machine was busy or stopped) says nothing about the page: WebError.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import weakref
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from ..errors import WebError
from ..records import Outcome, Page
from .parser import LENGTH, LENGTHS

_START_TIMEOUT = 60.0  # seconds for a parser to load its libraries, on a busy machine
_LONGEST_REPLY = 32_000_000  # bytes; the text of a page is bounded well below
_CHUNK = 1 << 17
_CPU_SHARE = 0.8  # of the deadline may be processor time
_KEPT = ("LD_LIBRARY_PATH", "SYSTEMROOT")  # some builds of Python don't start without

# The package is put in place by its folder, without running its __init__ and without a
# search path: it is the one that runs here, wherever it was installed or checked out.
_BOOTSTRAP = """
import sys, types
package = types.ModuleType("research")
package.__path__ = [sys.argv[1]]
sys.modules["research"] = package
from research.web.parser import main
main()
"""


class Reader:
    """A pool of at most `workers` parser processes, started when first needed.

    `timeout` is the seconds that a page may take in a parser, `processor` how many of them it
    may compute (0.8 of the timeout if not given), `memory` the bytes of address space that a
    parser may hold. May be used from one event loop after another, though not
    from two at once. Close it with `aclose()`, or use it in `async with`.
    """

    def __init__(
        self, workers: int = 1, timeout: float = 10.0, memory: int = 1 << 30, processor: float | None = None
    ) -> None:
        self._width = max(1, workers)
        self._timeout = timeout
        self._processor = processor or timeout * _CPU_SHARE
        self._memory = memory
        self._idle: list[_Parser] = []
        self._ended: list[_Parser] = []  # killed, and not yet gone
        self._busy = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(self._width)

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page:
        """`reading.read_page` in a parser process; waits for a free one.

        Raises: WebError where no parser could be started, or none had the time.
        """
        header = {"url": url, "content_type": content_type, "status": status, "cpu": self._processor}
        async with self._slot():
            for last in (False, True):
                try:
                    return await self._read_once(header, body)
                except _CrashError as crash:
                    if last or crash.definite:
                        return Page(url=url, outcome=Outcome.EMPTY, detail=str(crash))
        raise AssertionError("a page is read, or given up, in the loop")

    async def warm(self) -> None:
        """Start the parsers now, so that the first page needn't wait for them. Returns at once."""
        self._start_idle(self._width - self._busy)

    async def aclose(self) -> None:
        """End all parsers, and wait until they are gone."""
        self._ended += self._idle
        self._idle.clear()
        for parser in self._ended:
            parser.kill()
            await parser.gone()
        self._ended.clear()

    def _slot(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._slots = loop, asyncio.Semaphore(self._width)
        return self._slots

    async def _read_once(self, header: dict[str, object], body: bytes) -> Page:
        self._ended = [parser for parser in self._ended if parser.alive()]
        parser = self._idle.pop() if self._idle else _Parser(self._memory)
        self._busy += 1
        kept = False
        try:
            page = await self._answer(parser, header, body)
            kept = parser.alive()
        except (WebError, _CrashError):
            self._start_idle(self._width - self._busy + 1)  # it loads while the old one dies
            raise
        finally:
            # Whatever the reason, cancellation too: a parser that owes an answer is of no more use.
            self._busy -= 1
            if kept:
                self._idle.append(parser)
            else:
                parser.kill()
                self._ended.append(parser)
        return page

    async def _answer(self, parser: _Parser, header: dict[str, object], body: bytes) -> Page:
        await self._made_ready(parser)
        try:
            async with asyncio.timeout(self._timeout):
                return Page.model_validate_json(await parser.ask(header, body))
        except TimeoutError as error:
            raise WebError(
                f"{header['url']}: no parser had the time to read it within {self._timeout:g} s. "
                "Try again when the machine is less busy"
            ) from error
        except (OSError, EOFError) as error:
            raise await parser.crash(self._processor) from error
        except ValidationError as error:
            raise _CrashError("the parser gave an answer that is no page", definite=True) from error

    async def _made_ready(self, parser: _Parser) -> None:
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                await parser.ready()
        except (OSError, EOFError, TimeoutError) as error:
            raise WebError(
                f"the parser process did not start: {error or 'no answer'}. "
                f"Check that {sys.executable} can import trafilatura, and that memory is left"
            ) from error

    def _start_idle(self, wanted: int) -> None:
        while len(self._idle) < wanted:
            self._idle.append(_Parser(self._memory))


class _CrashError(Exception):
    """A parser died over a page. `definite`: another would, too."""

    def __init__(self, reason: str, *, definite: bool) -> None:
        self.definite = definite
        super().__init__(reason)


class _Parser:
    """One parser process and the socket to it. Bound to no event loop."""

    def __init__(self, memory: int) -> None:
        self._socket, theirs = socket.socketpair()
        self._ready = False
        package = str(Path(__file__).resolve().parent.parent)
        theirs.setblocking(True)  # whatever socket.setdefaulttimeout() says
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOTSTRAP, package, str(memory)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
                start_new_session=True,  # Ctrl-C is for us: we end our parsers ourselves
            )
        self._socket.setblocking(False)
        self._finalizer = weakref.finalize(self, _put_an_end, self._process, self._socket)

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._socket.close()
        if self.alive():
            self._process.kill()

    async def ready(self) -> None:
        if not self._ready:
            await self._reply()
            self._ready = True

    async def ask(self, header: dict[str, object], body: bytes) -> bytes:
        """Raises: OSError or EOFError where the parser is gone."""
        loop = asyncio.get_running_loop()
        head = json.dumps(header).encode()
        first = b"".join((LENGTHS.pack(len(head), len(body)), head, body[:_CHUNK]))  # at once: it wakes the parser
        await loop.sock_sendall(self._socket, first)
        if len(body) > _CHUNK:
            await loop.sock_sendall(self._socket, memoryview(body)[_CHUNK:])
        return await self._reply()

    async def crash(self, allowance: float) -> _CrashError:
        """Why the process, whose socket has ended, is no more."""
        await self.gone()
        code = self._process.returncode
        if code in (-signal.SIGPROF, -signal.SIGALRM):
            return _CrashError(f"the parser was stopped after {allowance:g} s of processor time", definite=True)
        cause = signal.strsignal(-code) if code is not None and code < 0 else f"exit code {code}"
        return _CrashError(f"the parser crashed twice ({cause})", definite=False)

    async def gone(self) -> None:
        """Wait until the process has ended; at most a second, since it was killed or has closed its socket."""
        for _ in range(500):
            if not self.alive():
                break
            await asyncio.sleep(0.002)

    async def _reply(self) -> bytes:
        loop = asyncio.get_running_loop()
        received, size = bytearray(), LENGTH.size
        while len(received) < size:
            chunk = await loop.sock_recv(self._socket, _CHUNK)
            if not chunk:
                raise EOFError("the parser's socket has ended")
            received += chunk
            if size == LENGTH.size <= len(received):
                size += LENGTH.unpack_from(received)[0]
                if size > _LONGEST_REPLY:
                    raise EOFError(f"an answer of {size:,} bytes")
        return bytes(received[LENGTH.size :])


def _put_an_end(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    """For a parser that nobody closed: no process, no zombie and no warning is left behind."""
    ours.close()
    if process.poll() is None:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
