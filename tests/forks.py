"""Processes that begin with the libraries loaded: one process has loaded them, and forks for each call.

What is the program's own is not among them, so that a call loads it as a user's process does.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

LIBRARIES = "asyncio, sqlite3, diskcache, typer, pydantic.fields, httpx, jinja2, rich.console, tomllib"
PROGRAM = "from research.cli import main; main()"


class Forks:
    """Runs the command, one call at a time, in forks of a process that is started with the first call."""

    def __init__(self, pythonpath: str) -> None:
        self._path = pythonpath
        self._turn = threading.Lock()
        self._channel: socket.socket | None = None

    def run(
        self,
        arguments: list[str],
        environment: dict[str, str],
        folder: Path,
        stdin: bytes = b"",
        together: bool = False,
        seconds: float = 60,
    ) -> tuple[int, bytes, bytes]:
        """The exit code (of a signal, its negative number), and what was printed; `together`, in one.

        Raises: TimeoutError, after which the command has been killed; EOFError where it took the others with it.
        """
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            with self._turn:
                code = self._called(
                    [arguments, environment, str(folder)], [given, out, out if together else err], seconds
                )
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def _called(self, call: list[object], files: list[io.BufferedRandom], seconds: float) -> int:
        if self._channel is None:
            self._channel = self._started()
        channel, self._channel = self._channel, None  # if this call fails half-way, the next one needs another
        channel.settimeout(60)
        message = json.dumps(call).encode()
        socket.send_fds(channel, [struct.pack("I", len(message))], [file.fileno() for file in files])
        channel.sendall(message)
        pid = _number(channel)
        channel.settimeout(seconds)
        try:
            status = _number(channel)
        except TimeoutError:
            with suppress(ProcessLookupError):  # it may just have ended
                os.kill(pid, signal.SIGKILL)
            channel.settimeout(10)
            channel.recv(4)
            self._channel = channel
            raise
        self._channel = channel
        return os.waitstatus_to_exitcode(status)

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        theirs.setblocking(True)  # whatever the default is here
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": self._path},
        )
        theirs.close()
        atexit.register(process.wait)
        atexit.register(ours.close)  # first: nothing more to come is its end
        return ours


def _number(channel: socket.socket) -> int:
    """Raises: EOFError where the process that forks has ended."""
    head = channel.recv(4)
    if not head:
        raise EOFError("the process that forks has ended")
    return int(struct.unpack("i", head)[0])


def calls(channel: socket.socket) -> None:
    """Forks for each call; returns in the forks alone."""
    while True:
        head, files, _, _ = socket.recv_fds(channel, 4, 3)
        if not head:
            sys.exit()
        message = bytearray()
        while len(message) < struct.unpack("I", head)[0]:
            message += channel.recv(1 << 16)
        pid = os.fork()
        if pid == 0:
            channel.close()
            arguments, environment, folder = json.loads(message)
            become(arguments, environment, folder, files)
            return
        for file in files:
            os.close(file)
        channel.sendall(struct.pack("i", pid))
        channel.sendall(struct.pack("i", os.waitpid(pid, 0)[1]))


def become(arguments: list[str], environment: dict[str, str], folder: str, files: list[int]) -> None:
    """What a process finds that is started so."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["-c", *arguments]
    sys.path[0] = ""


if __name__ == "__main__":
    exec(f"import {LIBRARIES}")
    calls(socket.socket(fileno=int(sys.argv[1])))
    exec(PROGRAM)
