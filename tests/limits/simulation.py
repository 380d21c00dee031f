"""Workers that call a limited service as fast as they may, in simulated time: how much gets through, how much is refused."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from research.limits.pacing import Pace

HEADERS = 0.2  # seconds at most until a service says whether it lets a call through


class Service(Protocol):
    def admits(self, now: float) -> bool: ...

    def wait(self, now: float) -> float | None:
        """What it asks for when it refuses."""
        ...


@dataclass
class Sliding:
    """At most `most` in any window."""

    most: int
    window: float = 60.0
    tells: bool = False
    admitted: deque[float] = field(default_factory=deque)

    def admits(self, now: float) -> bool:
        while self.admitted and self.admitted[0] <= now - self.window:
            self.admitted.popleft()
        if len(self.admitted) >= self.most:
            return False
        self.admitted.append(now)
        return True

    def wait(self, now: float) -> float | None:
        return self.admitted[0] + self.window - now if self.tells else None


@dataclass
class Minutes:
    """At most `most` in each minute of the clock."""

    most: int
    window: float = 60.0
    number: int = -1
    count: int = 0

    def admits(self, now: float) -> bool:
        if int(now // self.window) != self.number:
            self.number, self.count = int(now // self.window), 0
        self.count += 1
        return self.count <= self.most

    def wait(self, now: float) -> float | None:
        return None


@dataclass
class Bucket:
    """A bucket of `capacity` that is refilled at `most` a window."""

    most: int
    capacity: float
    window: float = 60.0
    tells: bool = False
    level: float = -1.0
    at: float = 0.0

    def admits(self, now: float) -> bool:
        if self.level < 0:
            self.level, self.at = self.capacity, now
        self.level = min(self.capacity, self.level + (now - self.at) * self.most / self.window)
        self.at = now
        if self.level < 1:
            return False
        self.level -= 1
        return True

    def wait(self, now: float) -> float | None:
        return (1 - self.level) * self.window / self.most if self.tells else None


@dataclass
class Outcome:
    admitted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    def rate(self, first: float, last: float) -> float:
        """Per minute, between two times."""
        return sum(first <= at < last for at in self.admitted) * 60 / (last - first)

    def wasted(self, first: float, last: float) -> float:
        """The share of calls that were refused."""
        refused = sum(first <= at < last for at in self.refused)
        return refused / max(1, refused + sum(first <= at < last for at in self.admitted))


def simulate(
    pace: Pace, service: Service, seconds: float, workers: int = 50, latency: Callable[[], float] | None = None,
    headers: dict[str, float] | None = None,
) -> Outcome:  # fmt: skip
    """All workers call without a break; each waits for its slot, then for the reply."""
    chance = random.Random(7)
    latency = latency or (lambda: chance.uniform(0.1, 0.6))
    outcome, origin = Outcome(), 1_000.0
    queue: list[tuple[float, int, str, float]] = [(origin, number, "wish", 0.0) for number in range(workers)]
    heapq.heapify(queue)
    while queue and queue[0][0] < origin + seconds:
        now, worker, what, when = heapq.heappop(queue)
        if what == "send" and pace.paused > when:
            pace.give_back(when, 0)
            what = "wish"
        if what == "wish":
            when, sure = pace.take(now, 0)
            heapq.heappush(queue, (when, worker, "send" if sure else "wish", when))
        elif what == "send":
            admitted = service.admits(now)
            (outcome.admitted if admitted else outcome.refused).append(now - origin)
            wait = None if admitted else service.wait(now)
            told = "admitted" if admitted else f"refused {'' if wait is None else wait}"
            whole = latency()
            begins = min(whole, HEADERS)
            heapq.heappush(queue, (now + begins, worker, told, when))
            if admitted:
                heapq.heappush(queue, (now + whole, worker, "wish", 0.0))
        elif what == "admitted":
            pace.succeed(now)
            pace.tell(now, headers or {})
        else:
            wait_text = what.partition(" ")[2]
            pace.refuse(now, when, float(wait_text) if wait_text else None)
            heapq.heappush(queue, (now, worker, "wish", 0.0))
    return outcome
