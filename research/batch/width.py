"""How many rows of a batch are at work at once: as many as keep the providers' limits busy, and no more.

Calls are counted where they pass on their way to a model: those that wait for a rate slot, and
those that are on their way. While none waits, the limit is not reached, and more rows may
begin. When many wait, or when this process itself can't keep up, fewer may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from research.errors import ProviderError
from research.llm.messages import Account, Attempt, Completion, Model, Request, Unpaid, Usage

PERIOD = 0.25  # seconds between looks
FIRST, LEAST, MOST = 16, 4, 128  # rows
GROWTH, DECLINE = 1.25, 0.9  # with each look
QUEUE = 3.0  # seconds of the providers' pace that may wait
LATE = 0.05  # seconds by which looks come too late on average when this process has too much to do
BUSY = 0.8  # of one processor: more rows would not be done sooner


class HaltedError(ProviderError):
    """The batch has stopped, and this call was not sent."""

    passing = False
    of_item = False


@dataclass
class Gauge:
    """Counts the calls of all models that were made by `model`. Once `halted`, no further one is sent."""

    waiting: int = 0
    sent: int = 0
    ended: int = 0  # tries, so far
    halted: str = ""

    def model(self, model: Model) -> Model:
        return _Counted(model, self)

    def check(self) -> None:
        """Raises: HaltedError."""
        if self.halted:
            raise HaltedError(f"not sent: {self.halted}")


@dataclass
class _Counted:
    """A model whose calls are counted."""

    inner: Model
    gauge: Gauge

    @property
    def name(self) -> str:
        return self.inner.name

    async def complete(
        self, request: Request, account: Account | None = None, on_text: Callable[[str | None], None] | None = None
    ) -> Completion:
        """As `Model.complete`. Raises also: HaltedError."""
        self.gauge.check()
        tries = _Tries(self.gauge, account or Unpaid())
        self.gauge.waiting += 1
        try:
            return await self.inner.complete(request, tries, on_text)
        finally:
            tries.end()


@dataclass
class _Tries:
    """An account that counts as it passes on."""

    gauge: Gauge
    inner: Account
    sent: bool = False

    async def reserve(self, most: Usage, name: str = "") -> Callable[[Attempt], None]:
        self.gauge.check()
        settle = await self.inner.reserve(most, name)
        self.gauge.waiting -= 1
        self.gauge.sent += 1
        self.sent = True

        def settled(attempt: Attempt) -> None:
            if self.sent:
                self.sent = False
                self.gauge.sent -= 1
                self.gauge.waiting += 1
                self.gauge.ended += 1
            settle(attempt)

        return settled

    def end(self) -> None:
        if self.sent:
            self.gauge.sent -= 1
        else:
            self.gauge.waiting -= 1


@dataclass
class Width:
    """`allowed` rows may be at work. Call `look` every `PERIOD` seconds; with `steady` it changes nothing."""

    gauge: Gauge
    most: int = MOST
    steady: bool = False
    allowed: int = field(init=False)
    pace: float = 0.0  # calls a second
    late: float = 0.0  # seconds by which looks come too late, on average
    _looked: float | None = None
    _used: float = 0.0
    _ended: int = 0

    def __post_init__(self) -> None:
        self.allowed = self.most if self.steady else min(FIRST, self.most)

    def look(self, now: float, used: float, running: int) -> None:
        """`now` by a monotonic clock, with so many rows at work and `used` seconds of the processor so far."""
        if self._looked is not None and now > self._looked and not self.steady:
            since = now - self._looked
            busy = (used - self._used) / since
            self.pace += 0.1 * ((self.gauge.ended - self._ended) / since - self.pace)
            self.late += 0.3 * (since - PERIOD - self.late)
            if self.late > LATE or self.gauge.waiting > max(4.0, QUEUE * self.pace):
                self._narrow()
            elif not self.gauge.waiting and busy < BUSY and running >= self.allowed:
                self.allowed = min(self.most, max(self.allowed + 1, int(self.allowed * GROWTH)))
        self._looked, self._used, self._ended = now, used, self.gauge.ended

    def cap(self, most: int) -> None:
        """From now on never more than that."""
        self.most = max(1, min(self.most, most))
        self.allowed = min(self.allowed, self.most)

    def _narrow(self) -> None:
        self.allowed = max(min(LEAST, self.most), int(self.allowed * DECLINE))
