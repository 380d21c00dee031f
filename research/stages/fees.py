"""What a search may cost: the fees of its engines, reserved in the run's purse, settled on the receipt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..ledger import Call
from ..web.base import engines

if TYPE_CHECKING:
    from ..limits.budget import Hold
    from .job import Job

TRIES = 2  # of one engine that may be charged: a reply that breaks off is asked for once more


class Fees:
    """The fees of one search; exactly one of `answered`, `failed` and `cancelled` ends it.

    Until then the fees of all engines that it may ask are reserved, since each is asked where those
    before it have nothing, and asked twice where its reply breaks off.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._fees = {name: job.fee(name.partition("@")[0]) for name in engines(job.web)}
        self._hold: Hold | None = None

    async def reserve(self) -> None:
        """Raises: BudgetError if a cap would be passed; UsageError if there is one and a fee is not known."""
        if self._job.purse is not None and any(fee != 0 for fee in self._fees.values()):
            self._hold = await self._job.purse.reserve(lambda: self._worst, calls=0)

    @property
    def _worst(self) -> int:
        return TRIES * sum(fee or 0 for fee in self._fees.values())

    def answered(self, engine: str, asked: Iterable[str]) -> None:
        """`engine` gave the hits; `asked` are all whose replies may cost a fee, it among them."""
        others = [name for name in asked if self._fees.get(name) != 0]
        if engine in others:
            others.remove(engine)
        self._end([*(self._call(name) for name in others), self._call(engine)])

    def failed(self, asked: Iterable[str], kind: str) -> None:
        self._end([self._call(name, kind) for name in asked if self._fees.get(name) != 0])

    def cancelled(self) -> None:
        """Nobody knows who was asked: it counts as all that can have been."""
        if self._hold is not None:
            usd = None if None in self._fees.values() else self._worst
            self._end([Call("search", self._job.web.name, usd=usd, failed="cancelled", estimated=True)])

    def _call(self, engine: str, failed: str = "") -> Call:
        return Call("search", engine, usd=self._fees.get(engine, 0), failed=failed)

    def _end(self, calls: list[Call]) -> None:
        self._job.receipt.calls += calls
        if self._hold is not None:
            self._hold.settle(sum(call.usd or 0 for call in calls))
