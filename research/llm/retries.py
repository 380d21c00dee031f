"""Whether a failed call is tried again, and after how long."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from research.errors import (
    MalformedError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    TimedOutError,
    TruncatedError,
)

TRIES = 4  # of one completion, whatever happens
ONCE_MORE = (TruncatedError, MalformedError, TimedOutError)  # costly, or likely to come out the same: tried twice
FIRST_GAP = 0.5  # seconds; doubled each time


@dataclass
class Retries:
    """The tries of one completion. `longest` is the longest wait in seconds that a provider may ask for."""

    longest: float
    failed: int = 0
    again: int = 0  # failures of those kinds that are tried once more only

    def gap(self, error: ProviderError, begun: bool) -> float:
        """Seconds until the next try of what failed with `error`; `begun` if some of the reply had come.

        Raises: `error`, where it is of no use to try again.
        """
        self.failed += 1
        once = begun or isinstance(error, ONCE_MORE)
        self.again += once
        if not error.passing or self.failed >= TRIES or (once and self.again > 1):
            raise error
        wait = error.retry_after
        if wait is not None and wait > self.longest:
            raise too_long(error, wait, self.longest)
        if wait is not None:
            return wait + random.uniform(0.0, min(0.1 * wait, 1.0))
        return FIRST_GAP * 2.0 ** (self.failed - 1) * random.uniform(0.75, 1.25)


def too_long(error: ProviderError, wait: float, longest: float) -> ProviderError:
    """`error`, saying until when the provider asks to be left alone."""
    until = time.strftime("%H:%M:%S", time.gmtime(time.time() + wait))
    message = (
        f"{error} It asks to wait {wait:,.0f} s, and a call waits {longest:g} s at most: "
        f"give the same command again after {until} UTC, and finished work is taken up."
    )
    kind = type(error) if isinstance(error, RateLimitError | OverloadedError) else RateLimitError
    return kind(message, status=error.status, retry_after=wait, usage=error.usage)
