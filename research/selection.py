"""Choosing the best k of a ranked list when only trying tells which are of use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .errors import ResearchError


class Selection(NamedTuple):
    """The ranks (from 0) that were chosen. Stored, so that a warm run takes the same.

    The rest is for those who read the journal, and goes into the receipt. `left` tells why others, that were
    tried, were left out; `passed` holds the work on those of no use, as the journal's lines tell of work, since it
    would have to be done again; `late` names for ranks that came in place of others which those were.
    """

    chosen: frozenset[int]
    left: Mapping[int, str] = {}
    passed: Mapping[int, Mapping[str, Any]] = {}
    late: Mapping[int, list[int]] = {}

    def data(self) -> bytes:
        return json.dumps(sorted(self.chosen)).encode()

    def receipt(self) -> dict[str, Any]:
        """Without what is empty."""
        parts = {"left": self.left, "passed": self.passed, "late": self.late}
        return {name: {str(rank): told for rank, told in sorted(part.items())} for name, part in parts.items() if part}

    @classmethod
    def parse(cls, data: bytes, receipt: Mapping[str, Any]) -> Selection:
        parts = [receipt.get(name, {}).items() for name in ("left", "passed", "late")]
        return cls(frozenset(json.loads(data)), *({int(rank): told for rank, told in part} for part in parts))


@dataclass(eq=False, repr=False)
class Trials:
    """How it goes with the ranks of a selection, as they are tried: `useless` are those that were of no use. `listed`
    are the keys of the work that made their list."""

    listed: list[str]
    earlier: Selection | None = None
    useless: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    late: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.earlier is not None:
            self.useless = dict(self.earlier.passed)

    def knows(self, rank: int) -> bool:
        """Whether it was chosen before."""
        return self.earlier is not None and rank in self.earlier.chosen

    def begin(self, rank: int) -> dict[str, list[str]]:
        """A rank is tried; gives what its journal line tells of what had to come first."""
        known = self.earlier.late.get(rank, []) if self.earlier is not None and self.knows(rank) else None
        before = sorted(self.useless) if known is None else known
        if before:
            self.late[rank] = before
        after = [*self.listed, *(self.useless[one]["key"] for one in before if one in self.useless)]
        return {"after": after} if after else {}

    def of(self, selection: Selection) -> Selection:
        """The selection with what the trials have told."""
        late = {rank: before for rank, before in self.late.items() if rank in selection.chosen}
        return selection._replace(passed=self.useless, late=late)


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
