"""Caps on dollars, calls and time: reserve the worst case before anything is sent, then settle.

Nothing is sent if what is settled and what is reserved would pass the cap. A reply that
reports more than was reserved is settled at what it reports, and the next one is refused.
Several runs and processes may share one budget, in one SQLite file; what a process that
died had reserved counts as spent, since it may have been.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from research.errors import BudgetError, StoreError, UsageError
from research.limits import accounts

NANO = 1_000_000_000
MORE = "What is finished is kept: run it again with a higher"
POLL, LONGEST_POLL = 0.05, 5.0  # seconds between looks at what others have reserved
PATIENT = 0.05  # of the time that was waited already
ANSWERING = 0.25  # of the deadline: held back for the answer, and at most
LONGEST_ANSWERING = 30.0  # seconds of it


class Caps(NamedTuple):
    """The most that may be spent: nano-dollars, calls of models, seconds. None is no cap."""

    usd: int | None = None
    calls: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, max_usd: str | None = None, max_calls: str | None = None, deadline: str | None = None) -> Caps:
        """From the words of a command line; "none" is no cap, as is nothing.

        Raises: UsageError for what is no amount, number or time.
        """
        usd = _figure("--max-usd", max_usd, r"\$?(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})", "an amount such as 0.50")
        calls = _figure("--max-calls", max_calls, r"(\d{1,9})", "a whole number such as 20")
        seconds = _figure("--deadline", deadline, r"(\d{1,7}(?:\.\d{1,3})?)\s?s?", "seconds, such as 90")
        return cls(
            None if usd is None else round(float(usd) * NANO),
            None if calls is None else int(calls),
            None if seconds is None else float(seconds),
        )


def _figure(flag: str, text: str | None, pattern: str, form: str) -> str | None:
    if text is None or text.strip().lower() == "none":
        return None
    found = re.fullmatch(pattern, text.strip(), re.ASCII)
    if found is None:
        raise UsageError(f"{flag} {text!r}: that is not {form}")
    return found[1]


@dataclass(eq=False, repr=False)
class Hold:
    """An amount that is reserved. Exactly one of `settle` and `release` ends it; a second time does nothing."""

    budget: Budget
    row: int | str | None  # of what is held, or the name under which it is entrusted
    calls: int = 1

    def settle(self, usd: int) -> None:
        """The call was made, and cost so many nano-dollars."""
        if self.row is not None:
            self.budget.end(self.row, usd, self.calls)
            self.row = None

    def release(self) -> None:
        """Nothing was used."""
        if self.row is not None:
            self.budget.end(self.row, 0, 0)
            self.row = None


class Budget:
    """What all runs together may spend; shared by all processes that give the same `file`."""

    def __init__(self, caps: Caps, file: Path | None = None) -> None:
        self.caps = caps
        self.file = file
        self._connection: sqlite3.Connection | None = None

    def reserve(
        self, usd: int, share: tuple[int, int] = (0, 0), instead: int | None = None, calls: int = 1, name: str = ""
    ) -> tuple[Hold, int | None]:
        """Reserve one call of at most `usd` nano-dollars, and with it a `share` (dollars, calls) for later.

        `calls` is 0 for what is no call of a model. `instead` is a share to be given up for it. A call with a `name`
        outlives its process; what is reserved by that name already is not reserved again. Gives the hold, and the
        row of the share. Raises: BudgetError, with everything as it was, if a cap would be passed.
        """
        with self._transaction() as connection:
            if name and accounts.is_entrusted(connection, name):
                return Hold(self, name), None
            if instead is not None:
                connection.execute("DELETE FROM held WHERE row = ?", (instead,))
            self._check(accounts.totals(connection), usd, calls, share)
            kept = accounts.hold(connection, *share, sent=False) if any(share) else None
            if not name:
                return Hold(self, accounts.hold(connection, usd, calls, sent=True), calls), kept
            accounts.entrust(connection, name, usd)
        return Hold(self, name), kept

    def _check(self, total: tuple[int, int], usd: int, calls: int, share: tuple[int, int]) -> None:
        spent, used = total
        caps = self.caps
        if caps.usd is not None and spent + usd + share[0] > caps.usd:
            kept = f", and {_dollars(share[0])} kept for the answer" if share[0] else ""
            raise BudgetError(
                f"budget reached: a call of at most {_dollars(usd)}{kept} would pass --max-usd "
                f"{caps.usd / NANO:g}, of which {_dollars(spent)} is spent or reserved. {MORE} --max-usd"
            )
        if calls and caps.calls is not None and used + calls + share[1] > caps.calls:
            kept = ", and one is kept for the answer" if share[1] else ""
            raise BudgetError(
                f"budget reached: {used} of --max-calls {caps.calls} are used or reserved{kept}. {MORE} --max-calls"
            )

    def end(self, row: int | str, usd: int, calls: int) -> None:
        """A hold is over: it cost so much."""
        with self._transaction() as connection:
            if isinstance(row, str):
                accounts.end(connection, row, usd, calls)
            else:
                connection.execute("DELETE FROM held WHERE row = ?", (row,))
                accounts.settle(connection, usd, calls)

    def tidy(self, names: Collection[str]) -> None:
        """Give back what was entrusted under other names: nobody has it, or will ask for it."""
        with self._transaction() as connection:
            accounts.tidy(connection, names)

    def may_free(self, usd: int, share: tuple[int, int], more: int = 1) -> bool:
        """Whether a call (or with `more` = 0 what is none) of `usd` would fit if those on their way came to cost
        nothing."""
        with self._transaction() as connection:
            spent, calls = accounts.settled(connection)
            out = accounts.out(connection)
        caps = self.caps
        fits = caps.usd is None or spent + usd + share[0] <= caps.usd
        return out and fits and (not more or caps.calls is None or calls + more + share[1] <= caps.calls)

    def spent(self) -> tuple[int, int]:
        """Settled: nano-dollars and calls."""
        with self._transaction() as connection:
            return accounts.settled(connection)

    def most_spent(self) -> int:
        """Nano-dollars that are settled, and those that are still reserved: as much may have been spent."""
        with self._transaction() as connection:
            return accounts.totals(connection)[0]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Raises: StoreError: where the account can't be kept, nothing may be spent."""
        try:
            if self._connection is None:
                self._connection = accounts.opened(self.file)
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            with connection:  # commits, or rolls back
                yield connection
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"the budget's account {self.file} can't be kept: {error}; check the disk") from error


def _dollars(nano: int) -> str:
    return f"${nano / NANO:.2g}" if nano < NANO // 100 else f"${nano / NANO:.4g}"


@dataclass(eq=False, repr=False)
class Purse:
    """What one run may spend of a budget.

    `plan` gives the share (nano-dollars, calls) that is kept for its answer, or raises what
    forbids any call. It is asked once, with the first call, so that a run that is answered
    from the store needs nothing. The run's time begins when the purse is made.
    """

    budget: Budget
    plan: Callable[[], tuple[int, int]] = lambda: (0, 0)
    clock: Callable[[], float] = time.monotonic
    _share: tuple[int, int] | None = None
    _kept: int | None = None
    _answering: bool = False
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def counts_calls(self) -> bool:
        return self.budget.caps.calls is not None

    async def reserve(
        self, worst: Callable[[], int], *, answering: bool = False, calls: int = 1, name: str = ""
    ) -> Hold:
        """Reserve a call of at most `worst()` nano-dollars; only the answer's may use the share. A search is no
        call, `calls` is 0 then. `name`: as `Budget.reserve` has it.

        While calls are on their way that may turn out cheaper than was reserved, it waits for them.
        Raises: BudgetError if a cap would be passed; what `plan` raises.
        """
        if self._share is None:
            self._share = self.plan()
        usd, began = worst(), self.clock()
        while True:
            try:
                return self._reserved(usd, self._share, answering, calls, name)
            except BudgetError:
                if not self.budget.may_free(usd, (0, 0) if answering else self._share, calls):
                    raise
            await asyncio.sleep(min(max(POLL, PATIENT * (self.clock() - began)), LONGEST_POLL))

    def _reserved(self, usd: int, share: tuple[int, int], answering: bool, calls: int, name: str) -> Hold:
        if answering:
            hold, _ = self.budget.reserve(usd, instead=self._kept, calls=calls, name=name)
            self._kept = None
            return hold
        hold, kept = self.budget.reserve(usd, (0, 0) if self._kept is not None else share, calls=calls, name=name)
        self._kept = self._kept if kept is None else kept
        return hold

    def seconds_left(self, *, answering: bool = False) -> float | None:
        """Until the deadline; for all but the answer until the time that is held back for it."""
        whole = self.budget.caps.seconds
        if whole is None:
            return None
        kept = 0.0 if answering or self._answering else min(ANSWERING * whole, LONGEST_ANSWERING)
        return max(0.0, self._began + whole - kept - self.clock())

    def answer_now(self) -> None:
        """From now on all calls are the answer's: they may use what was kept for it."""
        self.close()
        self._share, self._answering = (0, 0), True

    @contextlib.asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """Raises: BudgetError out of the block when the run's time is up."""
        try:
            async with asyncio.timeout(self.seconds_left(answering=True)) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise BudgetError(
                f"budget reached: no answer within --deadline {self.budget.caps.seconds:g} s. {MORE} --deadline"
            ) from None

    def close(self) -> None:
        """The run is over: what was kept for its answer is free again."""
        if self._kept is not None:
            self.budget.end(self._kept, 0, 0)
            self._kept = None
