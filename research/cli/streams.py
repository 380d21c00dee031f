"""Standard output and standard error, on which a closed pipe or a full disk is no bug."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from ..errors import StoreError

Write = Callable[[OSError], None]
"""What becomes of a write that failed."""


class UnheardError(BaseException):
    """Who read standard output has what they wanted: `| head -1`. Not an Exception, since typer makes 1 of those."""


class _Stream(io.FileIO):
    """A file descriptor; `failed` is told of the first write that fails, and nothing is written from then on."""

    def __init__(self, descriptor: int, failed: Write) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._failed = failed
        self._gone = False

    def write(self, data: Any, /) -> int:
        if not self._gone:
            try:
                return super().write(data) or 0
            except OSError as error:
                self._gone = True
                self._failed(error)
        return memoryview(data).nbytes


def guard() -> None:
    """Put our streams in the place of Python's.

    From then on printing raises UnheardError where nobody reads it, and StoreError where it can't be written. What
    is said on standard error is dropped then, and the work goes on.
    """
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - for as long as the process lives
    sys.stdout = _guarded(sys.stdout, 1, _lost)
    sys.stderr = _guarded(sys.stderr, 2, lambda _: None)


def _guarded(stream: TextIO | None, descriptor: int, failed: Write) -> TextIO:
    if stream is None:  # closed by whoever started us: `>&-`
        return open(os.devnull, "w")
    stream.flush()
    raw = io.BufferedWriter(_Stream(descriptor, failed))
    lines = descriptor == 2 or raw.isatty()
    return io.TextIOWrapper(raw, encoding=stream.encoding, errors="replace", line_buffering=lines)


def _lost(error: OSError) -> None:
    if isinstance(error, BrokenPipeError):
        raise UnheardError
    raise StoreError(f"the output can't be written: {error.strerror or error}; check where it goes") from None
