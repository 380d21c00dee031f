"""A server's process, and messages to and from it as the SDK's session takes them.

One JSON message a line (https://modelcontextprotocol.io/specification/2025-11-25/basic/transports).
Nothing here waits or grows without bound, whatever the server does: a line that is too
long is thrown away and what was asked fails with it; what is no message is thrown away;
what the server does not read is held back only so far. The process, with all that it has
started, is gone when the block ends. It gets no environment but what it is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

CHUNK = 1 << 16  # bytes
LONGEST = 4 << 20  # bytes of a message
BLOCKS = 500  # of a result that are looked at
WASTE = 64 << 20  # bytes thrown away, after which the server is ended
JUNK = 1 << 14  # bytes that a line which is no message counts for at least
UNREAD = 4 << 20  # bytes that the server has not read yet, after which it is ended
COMPLAINT = 2_000  # bytes kept of what it says last on stderr
GRACE = 0.5  # seconds to end by itself when its input ends, and again when it is told to
POLL = 0.01  # seconds
TOO_LONG = "its reply is longer than 4 MB"


class Pipe:
    """Messages to and from a process. `reading` and `writing` are a session's."""

    def __init__(self, process: Process) -> None:
        import anyio

        self.process = process
        self.complaint = b""
        self.wasted = 0
        self._asked: set[int | str] = set()
        self._arriving, self.reading = anyio.create_memory_object_stream[Any](16)
        self.writing, self._leaving = anyio.create_memory_object_stream[Any](0)

    async def hear(self) -> None:
        """What it says, line by line, to its end."""
        assert self.process.stdout is not None
        held, dropping = bytearray(), False
        with self._arriving:
            while self.wasted <= WASTE and (chunk := await self.process.stdout.read(CHUNK)):
                for place, part in enumerate(chunk.split(b"\n")):
                    if self.wasted > WASTE:
                        break
                    if place:
                        await self._message(bytes(held))
                        held, dropping = bytearray(), False
                    if not dropping and len(held) + len(part) <= LONGEST:
                        held += part
                        continue
                    if not dropping:
                        await self._refuse()
                    self.wasted += len(held) + len(part)
                    held, dropping = bytearray(), True
        kill(self.process)

    async def _message(self, line: bytes) -> None:
        from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self.wasted += max(len(line), JUNK)
            return
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._asked.discard(message.id)
        if isinstance(message, JSONRPCResponse):
            _cut(message.result)
        await self._arrived(message)

    async def _refuse(self) -> None:
        """Whose reply it was that is too long can't be told: all that was asked fails."""
        from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

        for asked in list(self._asked):
            error = ErrorData(code=INTERNAL_ERROR, message=TOO_LONG)
            await self._arrived(JSONRPCError(jsonrpc="2.0", id=asked, error=error))
        self._asked.clear()

    async def _arrived(self, message: JSONRPCMessage) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._arriving.send(SessionMessage(message))

    async def say(self) -> None:
        """What it is told; never waits for it to read."""
        from mcp_types import JSONRPCRequest

        assert self.process.stdin is not None
        sent: SessionMessage
        async with self._leaving:
            async for sent in self._leaving:
                if isinstance(sent.message, JSONRPCRequest):
                    self._asked.add(sent.message.id)
                if self.process.stdin.is_closing():
                    continue
                data = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                self.process.stdin.write(f"{data}\n".encode())
                if self.process.stdin.transport.get_write_buffer_size() > UNREAD:
                    kill(self.process)

    async def overhear(self) -> None:
        """The end of what it says on stderr, which goes nowhere else."""
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(CHUNK):
            self.complaint = (self.complaint + chunk)[-COMPLAINT:]

    def close(self) -> None:
        for stream in (self._arriving, self.reading, self.writing, self._leaving):
            stream.close()


def _cut(result: dict[str, Any]) -> None:
    """Of very many blocks the first, before the SDK makes an object of each."""
    content = result.get("content")
    if isinstance(content, list) and len(content) > BLOCKS:
        left_out = {"type": "text", "text": f"({len(content) - BLOCKS:,} blocks more, not shown)"}
        result["content"] = [*content[:BLOCKS], left_out]


@contextlib.asynccontextmanager
async def piped(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> AsyncIterator[Pipe]:
    """A process in a session of its own.

    Raises: OSError, ValueError where there can be none.
    """
    process = await asyncio.create_subprocess_exec(
        *_tied(command, environment),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    pipe = Pipe(process)
    tasks = [asyncio.ensure_future(work) for work in (pipe.hear(), pipe.say(), pipe.overhear())]
    try:
        yield pipe
    finally:
        try:
            await _end(process)
        finally:
            kill(process)
            for task in tasks:
                task.cancel()
            pipe.close()
            _let_go(process)
            await asyncio.gather(*tasks, return_exceptions=True)


def _tied(command: Sequence[str], environment: Mapping[str, str]) -> Sequence[str]:
    """The command such that it dies with this process, even if that is killed; where the system can do that."""
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("tied.py")), ",".join(environment), *command]


async def _end(process: Process) -> None:
    """Its input ends; then it is told to end; then it is made to."""
    assert process.stdin is not None
    process.stdin.close()
    for step in (None, signal.SIGTERM, signal.SIGKILL):
        if step is not None:
            kill(process, step)
        for _ in range(round(GRACE / POLL)):
            if process.returncode is not None:
                return
            await asyncio.sleep(POLL)


def kill(process: Process, by: signal.Signals = signal.SIGKILL) -> None:
    """The process and what it has started, as far as that stayed in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, by)


def _let_go(process: Process) -> None:
    """Closes the pipes' ends here, though something that left the group may hold the others."""
    transport: Any = getattr(process, "_transport", None)  # nothing public gives it
    if transport is not None:
        with contextlib.suppress(PermissionError, ProcessLookupError):
            transport.close()
