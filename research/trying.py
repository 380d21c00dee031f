"""One piece of work, within its limits of time, tried again where that may help."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from typing import Any

from .errors import BudgetError, NotRecordedError, ResearchError, TimedOutError
from .journal import Journal
from .ledger import Receipt
from .steps import Calls, Step


async def tried(step: Step, values: Mapping[str, Any], receipt: Receipt, calls: Calls, journal: Journal) -> Any:
    """What the step's work gives. The receipt gets its seconds, also where it fails.

    Raises: what the work raises; TimedOutError at the limit of the stage's policy, BudgetError
    when the run's time is up. What a failure has cost is in the journal.
    """
    policy, began, tries = step.stage.policy, time.monotonic(), 0
    failed = True
    try:
        while True:
            try:
                value = await _once(step, values, receipt, calls)
            except ResearchError as error:
                if not error.passing or isinstance(error, NotRecordedError) or tries >= policy.retries:
                    raise error from None
                tries += 1
                await asyncio.sleep(0.5 * 2**tries * random.uniform(0.5, 1))
            else:
                failed = False
                return value
    finally:
        receipt.seconds = time.monotonic() - began - calls.busy
        if failed and receipt.calls:
            journal.write("in_vain", stage=step.stage.name, receipt=receipt.plain())


async def _once(step: Step, values: Mapping[str, Any], receipt: Receipt, calls: Calls) -> Any:
    limit, left = step.stage.policy.timeout, step.seconds_left()
    over = left is not None and (limit is None or left < limit)
    if left == 0:
        raise _time_is_up(step)
    try:
        async with asyncio.timeout(left if over else limit):
            return await step.make(values, receipt, calls)
    except TimeoutError:
        if over:
            raise _time_is_up(step) from None
        raise TimedOutError(f"{step.stage.name}: no result within {limit:g} s") from None


def _time_is_up(step: Step) -> BudgetError:
    return BudgetError(
        f"budget reached: {step.stage.name} was not done in time for the deadline. What is finished is kept: "
        "run it again with a higher --deadline"
    )
