"""Many questions, one after another and many at once: none lost, none paid twice.

All rows share one store, one budget and one set of rate slots, behind whoever asks; rows
are taken from, and results given to, whoever keeps them. A second implementation of these
few methods is all that many machines need.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from research.batch.width import MOST, PERIOD, Gauge, HaltedError, Width
from research.errors import (
    AuthError,
    BudgetError,
    OutOfMoneyError,
    ProviderError,
    ResearchError,
    StoreError,
    UnknownModelError,
    UsageError,
    first_cause,
)
from research.ledger import as_if_cold, paid
from research.results import answered, failed, not_started

if TYPE_CHECKING:
    from research.app import Asked
    from research.questions import Row
    from research.records import Answer

STOPPING = (AuthError, OutOfMoneyError, UnknownModelError)  # the next row would meet them too
OUTAGE = 20  # rows in a row, and twice those at work, that a provider failed: it is down

Lines = list[dict[str, Any]]


class Rows(Protocol):
    """Where rows come from, and where what becomes of them is kept."""

    async def take(self) -> Row | None:
        """A row that is now ours to run; None when there is none left, however often it is asked."""
        ...

    async def finish(self, row: Row, record: Mapping[str, Any]) -> None:
        """Keep the record of a row that was taken.

        Raises: StoreError if it can't be kept.
        """
        ...


class Ask(Protocol):
    """Runs one question, with the store, the rate slots and the budget that all share."""

    def __call__(self, row: Row, listen: Callable[[dict[str, Any]], None]) -> Awaitable[Asked]:
        """`listen` gets the journal's lines. Raises: ResearchError."""
        ...


@dataclass
class Tally:
    """What this command has done so far. Dollars are nano; `unknown` counts calls without a known price."""

    endings: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)  # by kind
    not_started: int = 0
    usd: int = 0
    cold_usd: int = 0
    unknown: int = 0
    calls: int = 0
    made: int = 0
    reused: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def ended(self) -> int:
        """Rows that came to an end, good or bad."""
        return self.endings.total() + self.errors.total()

    @property
    def reuse(self) -> float:
        """The share of artifacts that were in the store already."""
        return self.reused / (self.made + self.reused) if self.made + self.reused else 0.0

    def add(self, lines: Lines) -> None:
        spent, cold = paid(lines), as_if_cold(lines)
        self.usd += spent.usd
        self.cold_usd += cold.usd
        self.unknown += spent.unknown
        self.calls += spent.models
        used = Counter(line["event"] for line in lines if line.get("item") is not None)
        self.made += used["made"]
        self.reused += used["reused"]


@dataclass(frozen=True)
class Stop:
    """Why a batch ended early, and with which exit code."""

    reason: str
    exit_code: int


@dataclass
class Task:
    """A row at work. `lines` are those of all its runs."""

    row: Row
    lines: Lines = field(default_factory=list)


@dataclass
class Batch:
    """`made` tells by what answers are made, and goes into each record. `deadline`: seconds that a row may take."""

    rows: Rows
    ask: Ask
    made: Mapping[str, str]
    gauge: Gauge = field(default_factory=Gauge)
    most: int | None = None  # rows at work
    deadline: float | None = None
    tell: Callable[[Row, Mapping[str, Any]], None] = lambda row, record: None
    steady: bool = False  # always `most` rows, not as many as the providers' pace allows
    tally: Tally = field(default_factory=Tally)
    stop: Stop | None = None
    width: Width = field(init=False)
    _running: set[asyncio.Task[None]] = field(default_factory=set)
    _again: deque[Task] = field(default_factory=deque)  # rows that wait for what the budget still holds
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _failures: int = 0  # of providers, since a row was answered

    def __post_init__(self) -> None:
        self.width = Width(self.gauge, MOST if self.most is None else self.most, self.steady)

    @property
    def running(self) -> int:
        return len(self._running)

    async def run(self) -> Tally:
        """Run all rows, or as many as can be.

        Raises: UsageError and StoreError, which would meet every row. What is finished is kept.
        """
        looking = asyncio.ensure_future(self._look())
        try:
            async with asyncio.TaskGroup() as group:
                while (task := await self._next()) is not None:
                    running = group.create_task(self._one(task))
                    self._running.add(running)
                    running.add_done_callback(self._ended)
        except* ResearchError as errors:
            raise first_cause(errors) from None
        finally:
            looking.cancel()
        if self.stop is not None:
            await self._leave()
        return self.tally

    async def _next(self) -> Task | None:
        """The next row, once there is room for it; None when all have ended, or the batch is to stop."""
        while self.stop is None:
            if self.running < self.width.allowed:
                if self._again:
                    return self._again.popleft()
                row = await self.rows.take()
                if row is not None:
                    return Task(row)
                if not self.running and not self._again:
                    return None
            self._news.clear()
            await self._news.wait()
        return None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._news.set()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            self.width.look(time.monotonic(), time.process_time(), self.running)
            self._news.set()

    async def _one(self, task: Task) -> None:
        began = time.monotonic()
        try:
            asked = await self.ask(task.row, task.lines.append)
        except HaltedError:
            self._again.append(task)
        except BudgetError as error:
            await self._over_budget(task, error, began, None)
        except (UsageError, StoreError):
            raise
        except ResearchError as error:
            await self._failed(task, error)
        else:
            self._failures = 0
            if cut_short_by_budget(asked):
                await self._over_budget(task, BudgetError(asked.answer.reason), began, asked.answer)
            else:
                await self._answered(task, asked.answer)

    async def _over_budget(self, task: Task, error: BudgetError, began: float, part: Answer | None) -> None:
        """A cap was met; `part` is the answer that came of it all the same, if one did.

        What others have reserved may come free: only who is alone and refused tells that the
        budget is used up. Where a row's own time was up, no budget is to blame.
        """
        if self.deadline is not None and time.monotonic() - began > self.deadline / 2:
            await (self._failed(task, error) if part is None else self._answered(task, part))
        elif self.stop is None and self.running > 1:
            self.width.cap(self.running - 1)
            self._again.append(task)
        else:
            self._halt(error, 5)
            await self._failed(task, error, part)

    async def _answered(self, task: Task, answer: Answer) -> None:
        self.tally.endings[answer.ending] += 1
        await self._finish(task, answered(task.row, answer, task.lines, self.made))

    async def _failed(self, task: Task, error: ResearchError, part: Answer | None = None) -> None:
        if isinstance(error, ProviderError):
            self._failures += 1
            if isinstance(error, STOPPING) or self._failures >= OUTAGE + 2 * self.running:
                self._halt(error, error.exit_code)
        self.tally.errors[type(error).__name__] += 1
        await self._finish(task, failed(task.row, error, task.lines, self.made, part))

    def _halt(self, error: ResearchError, exit_code: int) -> None:
        """Take no further rows, and let no further call go out; what is on its way comes in."""
        if self.stop is None:
            self.stop = Stop(str(error), exit_code)
            self.gauge.halted = self.gauge.halted or f"the batch has stopped: {error}"
            self._news.set()

    async def _finish(self, task: Task, record: Mapping[str, Any]) -> None:
        self.tally.add(task.lines)
        await self.rows.finish(task.row, record)
        self.tell(task.row, record)

    async def _leave(self) -> None:
        """Write down what was not started, and what was and could not go on."""
        assert self.stop is not None
        why = f"the batch had stopped: {self.stop.reason}"
        while (task := await self._left()) is not None:
            self.tally.not_started += 1
            self.tally.add(task.lines)
            await self.rows.finish(task.row, not_started(task.row, why, task.lines, self.made))

    async def _left(self) -> Task | None:
        if self._again:
            return self._again.popleft()
        row = await self.rows.take()
        return None if row is None else Task(row)


def cut_short_by_budget(asked: Asked) -> bool:
    """Whether something was left out of an answer for want of money, calls or time."""
    last = max(at for at, line in enumerate(asked.lines) if line["event"] == "began")
    return any(line["event"] == "dropped" and line.get("cause") == "budget" for line in asked.lines[last:])
