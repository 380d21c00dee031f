"""Where a completion's tries are written down: reserved in the run's purse, settled on the receipt."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ledger import Call
from ..llm.messages import Attempt, Usage

if TYPE_CHECKING:
    from ..limits.budget import Hold
    from .job import Job

BUILTIN = "builtin:"  # models that cost nothing, so that nothing is reserved for them unless calls are counted


class JobAccount:
    """The account of one completion of a job; close it when that is over.

    A try that may have cost something has a row of its own. Those that surely cost nothing
    are counted in the row of the try that follows; in one of their own if none does.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._tries = 0
        self._seconds = 0.0
        self._waited = 0.0
        self._failed = ""
        self._batched = False

    async def reserve(self, most: Usage, name: str = "") -> Callable[[Attempt], None]:
        """Raises: BudgetError if a cap would be passed."""
        job, hold = self._job, None
        if job.purse is not None and (job.purse.counts_calls or not job.model.name.startswith(BUILTIN)):
            hold = await job.purse.reserve(lambda: self._worst(most), answering=job.answering, name=name)

        def settle(attempt: Attempt) -> None:
            self._settle(attempt, most, hold)

        return settle

    def close(self) -> None:
        if self._tries:
            self._write(Usage(), 0, 0.0, estimated=False)

    def _worst(self, most: Usage) -> int:
        """Nano-dollars; where writing to the provider's cache costs more than reading, all of it is written."""
        name, price = self._job.model.name, self._job.price
        return max(price(name, most) or 0, price(name, Usage(cache_write=most.input, output=most.output)) or 0)

    def _settle(self, attempt: Attempt, most: Usage, hold: Hold | None) -> None:
        self._tries += 1
        self._seconds += attempt.seconds + attempt.waited
        self._waited += attempt.waited
        self._failed = attempt.failed
        self._batched = attempt.batched
        if not attempt.billed:
            if hold is not None:
                hold.release()
            return
        used = attempt.usage or most
        usd = self._job.price(self._job.model.name, used)
        if attempt.usage is None and usd is not None:
            usd = self._worst(most)
        if hold is not None:
            hold.settle(usd or 0)
        self._write(used, usd, attempt.first, estimated=attempt.usage is None)

    def _write(self, used: Usage, usd: int | None, first: float, *, estimated: bool) -> None:
        call = Call(
            "model",
            self._job.model.name,
            self._job.tier,
            usd,
            used.input,
            used.cache_read,
            used.cache_write,
            used.output,
            used.reasoning,
            seconds=round(self._seconds, 4),
            waited=round(self._waited, 4),
            tries=self._tries,
            first=round(first, 4),
            failed=self._failed,
            estimated=estimated,
            batched=self._batched,
        )
        self._job.receipt.calls.append(call)
        self._tries, self._seconds, self._waited, self._failed = 0, 0.0, 0.0, ""
