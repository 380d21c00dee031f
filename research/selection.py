"""Choosing the best k of a ranked list when only trying tells which are of use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import ResearchError


@dataclass(frozen=True)
class Selection:
    """The ranks (from 0) that were chosen. Stored, so that a warm run takes the same.

    `left` tells why others, that were tried, were left out. That is for those who read the journal: it goes
    into the receipt.
    """

    chosen: frozenset[int]
    left: Mapping[int, str] = field(default_factory=dict, compare=False)

    def data(self) -> bytes:
        return json.dumps(sorted(self.chosen)).encode()

    def receipt(self) -> dict[str, Any]:
        return {"left": {str(rank): reason for rank, reason in sorted(self.left.items())}} if self.left else {}

    @classmethod
    def parse(cls, data: bytes, receipt: Mapping[str, Any]) -> Selection:
        left = {int(rank): reason for rank, reason in receipt.get("left", {}).items()}
        return cls(frozenset(json.loads(data)), left)


async def best(
    count: int,
    want: int,
    attempt: Callable[[int], Awaitable[object]],
    dropped: Callable[[int, str], None],
    patience: float | None = None,
    earlier: Selection | None = None,
) -> Selection:
    """The best `want` of the ranks 0 … count - 1 whose `attempt` succeeds.

    As many are tried at once as are still wanted; a failure starts the next in rank. After
    `patience` seconds and one success, stragglers are left behind. An `earlier` selection
    is taken again; others are tried only in place of those of it that now fail.
    Raises: the first failure if all that were tried failed in a way that may pass; any
    failure that is not of one item alone.
    """
    waiting = list(range(count))
    if earlier is not None:
        waiting.sort(key=lambda rank: rank not in earlier.chosen)
        want = min(want, len(earlier.chosen))
    running: dict[asyncio.Task[object], int] = {}
    chosen: set[int] = set()
    failures: list[ResearchError] = []
    left = dict(earlier.left) if earlier is not None else {}
    clock = asyncio.get_running_loop().time
    until = None if patience is None else clock() + patience
    try:
        while running or (waiting and len(chosen) < want):
            late = until is not None and clock() >= until and bool(chosen)
            while waiting and not late and len(chosen) + len(running) < want:
                rank = waiting.pop(0)
                running[asyncio.ensure_future(attempt(rank))] = rank
            if late:
                break
            wait = None if until is None or not chosen else max(0.0, until - clock())
            done, _ = await asyncio.wait(running, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            ended = sorted(((running.pop(task), task.exception()) for task in done), key=lambda pair: pair[0])
            for rank, error in ended:
                if error is None:
                    chosen.add(rank)
                elif isinstance(error, ResearchError) and error.of_item:
                    failures.append(error)
                    left[rank] = str(error)
                    dropped(rank, str(error))
                else:
                    raise error
        for rank in sorted(running.values()):
            left[rank] = f"timed out: not there after {patience:g} s, when others were"
            dropped(rank, left[rank])
    finally:
        await _cancelled(running)
    if failures and not chosen and all(failure.passing for failure in failures):
        raise failures[0]
    return Selection(frozenset(chosen), left)


async def _cancelled(running: dict[asyncio.Task[object], int]) -> None:
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
