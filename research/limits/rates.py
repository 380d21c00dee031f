"""Rate slots, shared by all stages, runs and processes of a machine, in one SQLite file.

Each request reserves the time at which it goes, in one short transaction, and sleeps until
then: no polling, first come first served, whatever process asks. After a refusal there is
one pause for all. How many go at once is held by file locks, which the kernel drops when
their owner dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from research.limits.pacing import Pace, told

POLL = 0.02  # seconds between looks at places that other calls hold
TRANSACTION = 30.0  # seconds that a transaction waits for those of other processes


@dataclass(frozen=True)
class Slot:
    """Leave to send one request: when, and how many tokens were reserved for it."""

    when: float
    tokens: int


class Rates:
    """All lanes of this machine, kept in `folder`; without one (or where it can't be written) of this process.

    `window` is the time in seconds that limits count over.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        window: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.folder = folder
        self.window = window
        self.clock = clock
        self.sleep = sleep
        self.places: dict[str, asyncio.Semaphore] = {}
        self._connection: sqlite3.Connection | None = None

    def lane(
        self, name: str, requests: float | None = None, tokens: float | None = None, at_once: int | None = None
    ) -> Lane:
        """The lane of that name, with the limits (per window) that are known beforehand."""
        return Lane(self, hashlib.sha256(name.encode()).hexdigest()[:32], requests, tokens, at_once)

    @contextlib.contextmanager
    def pace(self, name: str, now: float) -> Iterator[Pace]:
        """A lane's state, to be changed within one transaction.

        Where the file fails this process goes on by itself: limits are there to be helpful.
        """
        try:
            pace = self._begun(name, now)
        except sqlite3.Error:
            self._alone()
            pace = self._begun(name, now)
        try:
            yield pace
            self._opened().execute("INSERT OR REPLACE INTO lanes VALUES (?, ?)", (name, pace.plain()))
            self._opened().execute("COMMIT")
        except sqlite3.Error:
            self._alone()
        except BaseException:
            self._opened().execute("ROLLBACK")
            raise

    def _begun(self, name: str, now: float) -> Pace:
        """Within a transaction, the state of a lane."""
        connection = self._opened()
        connection.execute("BEGIN IMMEDIATE")
        row = connection.execute("SELECT state FROM lanes WHERE name = ?", (name,)).fetchone()
        return (_parsed(row[0], now) if row else None) or Pace(self.window)

    def _alone(self) -> None:
        self.close()
        self.folder = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = _open(self.folder)
            except (OSError, sqlite3.Error):
                self.folder = None
                self._connection = _open(None)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _parsed(state: str, now: float) -> Pace | None:
    """None for what is no state of this version's."""
    try:
        return Pace.parse(state, now)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _open(folder: Path | None) -> sqlite3.Connection:
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = ":memory:" if folder is None else str(folder / "rates.db")
    connection = sqlite3.connect(file, timeout=TRANSACTION, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")  # what a crash of the machine loses is a minute's count
    connection.execute("CREATE TABLE IF NOT EXISTS lanes (name TEXT PRIMARY KEY, state TEXT)")
    return connection


@dataclass
class Lane:
    """What one provider, or one model of it, allows."""

    rates: Rates
    name: str
    requests: float | None = None
    tokens: float | None = None
    at_once: int | None = None

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """One of the `at_once` places, for as long as the block runs."""
        if self.at_once is None:
            yield
            return
        async with self.rates.places.setdefault(self.name, asyncio.Semaphore(self.at_once)):
            while (file := self._locked(self.at_once)) is None:  # noqa: ASYNC110 - it depends on other processes
                await asyncio.sleep(POLL)
            try:
                yield
            finally:
                if file >= 0:
                    os.close(file)

    async def enter(self, tokens: int) -> Slot:
        """Wait for leave to send a request of so many tokens."""
        while True:
            now = self.rates.clock()
            with self._pace(now) as pace:
                when, sure = pace.take(now, tokens)
            slot = Slot(when, tokens)
            if sure and when <= now:
                return slot
            try:
                while (left := when - self.rates.clock()) > 0:
                    await self.rates.sleep(left)
            except asyncio.CancelledError:
                if sure:
                    self.leave(slot)
                raise
            if sure and self._still(slot):
                return slot

    def _still(self, slot: Slot) -> bool:
        """Whether no pause was made while a reserved request slept; else it is given back."""
        with self._pace(self.rates.clock()) as pace:
            if pace.paused <= slot.when:
                return True
            pace.give_back(slot.when, slot.tokens)
            return False

    def leave(self, slot: Slot) -> None:
        """The request was not sent."""
        with self._pace(self.rates.clock()) as pace:
            pace.give_back(slot.when, slot.tokens)

    def admitted(self, headers: Mapping[str, str]) -> None:
        """A request was let through, and its reply has begun."""
        now = self.rates.clock()
        with self._pace(now) as pace:
            pace.succeed(now)
            pace.tell(now, told(headers))

    def used(self, slot: Slot, tokens: int) -> None:
        """The request used so many tokens."""
        if tokens != slot.tokens:
            with self._pace(self.rates.clock()) as pace:
                pace.adjust(slot.when, tokens - slot.tokens)

    def refused(self, slot: Slot, wait: float | None, headers: Mapping[str, str]) -> None:
        """The request was refused for the rate; `wait` is what the provider asks for, in seconds."""
        now = self.rates.clock()
        with self._pace(now) as pace:
            pace.adjust(slot.when, -slot.tokens)
            pace.refuse(now, slot.when, wait)
            pace.tell(now, told(headers))

    @contextlib.contextmanager
    def _pace(self, now: float) -> Iterator[Pace]:
        with self.rates.pace(self.name, now) as pace:
            if self.requests is not None:
                pace.requests = self.requests
            if self.tokens is not None:
                pace.tokens = self.tokens
            yield pace

    def _locked(self, at_once: int) -> int | None:
        """An open file that holds one of the places; None if all are taken, -1 where processes share nothing."""
        folder = self.rates.folder
        if folder is None:
            return -1
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(at_once):
            file = os.open(folder / f"{self.name}.{number}", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
            else:
                return file
        return None
