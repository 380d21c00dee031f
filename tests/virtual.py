"""An event loop whose clock jumps to the next thing to do: hours pass at once, and every run takes exactly as long."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` stands still while something runs."""

    def __init__(self) -> None:
        self.now = 1_000.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.now


class _Jumping(selectors.DefaultSelector):  # type: ignore[valid-type,misc]
    """Waits for nothing, and lets the time pass that it was to wait."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        self._loop.now += max(0.0, timeout or 0.0)
        return super().select(0)


def run(work: Coroutine[Any, Any, T], monkeypatch: pytest.MonkeyPatch) -> T:
    """Runs `work` with `time.monotonic` and the loop's clock in virtual seconds."""
    loop = VirtualLoop()
    monkeypatch.setattr(time, "monotonic", loop.time)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)
