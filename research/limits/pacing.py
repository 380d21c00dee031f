"""When the next request may be sent: the arithmetic of rate limits, without a clock or a file.

A limit that is known (from the configuration or from reply headers) is kept in two ways. No
window holds more than it allows, which suits services that count in sliding or fixed minutes
and those that refill a bucket. And when more than a few requests come at once they are spaced
evenly, by the generic cell rate algorithm (ITU-T I.371), which suits those that look at seconds.

A limit that only shows in refusals is estimated: a refusal tells that what was admitted in
the last window is about what is allowed. From there the rate creeps up, slowly where it was
refused before (as in congestion control: RFC 9438), until the next refusal.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

SPACED = 0.965  # of a known limit: the rate at which requests are spaced
SPARED = 100  # one of so many that a known limit allows in a window is not used
FREE = 16  # requests that are not spaced when the window is almost empty
SLOTS = 120  # per window
LATE = 2  # slots by which a request may reach the service later than it was to be sent
OTHERS = 0.1  # of a limit: what others use is noticed from there on
IDLE = 10  # windows without a request after which what refusals taught is forgotten
PROBE = 15.0  # seconds in which a provider lets a request through or refuses it
LONGEST_PAUSE = 60.0  # seconds; longer ones are for people to decide
AHEAD = 1.0  # seconds (of a window of a minute) that are reserved ahead by an estimate
FIRST = 2.0  # requests per second (of a window of a minute) that the first refusal leaves at least
CUT = 2.0  # seconds (of a window of a minute) in which an estimate is lowered once only
FRUITLESS = 1.0  # seconds: the first pause after a refusal that names none; doubled each time

# Growth of an estimated limit, per second (of a window of a minute), while it is what holds requests up.
PROBING, RECOVERING, CREEPING = 0.19, 0.01, 0.0003


@dataclass
class Pace:
    """The state of one provider's (or model's) limits. Times are of one monotonic clock, in seconds."""

    window: float = 60.0
    requests: float | None = None  # allowed per window, as far as known
    tokens: float | None = None
    slots: dict[int, list[int]] = field(default_factory=dict)  # slot number → requests and tokens sent in it
    next: float = 0.0  # when an evenly spaced request may go next
    rate: float | None = None  # requests per second that refusals have taught
    high: float = 0.0  # the rate that was last refused
    lowered: float = 0.0  # when that was last lowered
    firm: bool = False  # that estimate is to be trusted
    paused: float = 0.0  # until then nothing is sent
    refused: float = 0.0  # when the last series of refusals began
    probe: float = 0.0  # when the last request was sent
    misses: int = 0  # series of refusals without a success in between
    seen: float = 0.0

    @classmethod
    def parse(cls, text: str, now: float) -> Pace:
        """What `plain` gave; a new state if that is of another boot's clock, or long ago."""
        pace = cls(**json.loads(text))
        pace.slots = {int(number): counts for number, counts in pace.slots.items()}
        if pace.seen > now + LONGEST_PAUSE:
            return cls(pace.window, pace.requests, pace.tokens)
        if now - pace.seen > IDLE * pace.window:
            pace.rate, pace.firm, pace.misses = None, False, 0
        return pace

    def plain(self) -> str:
        return json.dumps({each.name: getattr(self, each.name) for each in fields(self)}, separators=(",", ":"))

    def take(self, now: float, tokens: int) -> tuple[float, bool]:
        """Reserve one request of so many tokens; gives the time at which it may be sent, and True.

        While a limit is only estimated nothing is reserved far ahead, since the estimate may
        change, and after a refusal one request tries whether there is room again: the others
        get the time at which to ask again, and False.
        """
        self._forget(now)
        when = max(now, self.paused)
        when = self._room(when, 0, 1, self.requests)
        when = self._room(when, 1, tokens, self.tokens)
        spacing = self._spacing(max(when, self.next))
        if spacing and not self._idle():
            when = max(when, self.next if self.rate is None else min(self.next, self.probe + spacing))
        if self.rate is not None and when > now and not self.misses:
            self._grow(now)
        self.seen = now
        trying = self.misses > 0 and self.paused <= self.probe <= now < self.probe + PROBE
        if trying or (self.rate is not None and when - now > AHEAD * self._second and when > self.paused):
            return max(self.paused, now + AHEAD * self._second * random.uniform(0.25, 0.5)), False
        self.probe = when
        if spacing:
            self.next = max(self.next, when) + spacing
        self._count(when, 1, tokens)
        return when, True

    def give_back(self, when: float, tokens: int) -> None:
        """A request reserved for `when` was not sent, or not admitted."""
        self._count(when, -1, -tokens)

    def adjust(self, when: float, tokens: int) -> None:
        """So many tokens more (or fewer) than were reserved for `when`."""
        self._count(when, 0, tokens)

    def refuse(self, now: float, when: float, wait: float | None) -> None:
        """The request of `when` was refused for the rate, with leave to come back after `wait` seconds if known.

        A refusal of what was sent before the last series of refusals began belongs to it.
        """
        self.give_back(when, 0)
        admitted = self.admitted(now) / self.window
        if when <= self.refused:
            if not self.firm and self.rate is not None:
                self.rate = max(min(self.rate, admitted), FIRST / self._second)
            if wait is None:
                return
        else:
            self._learn(now, admitted)
            self.refused = now
            self.misses += 1
            wait = FRUITLESS * self._second * 2.0 ** (self.misses - 1) if wait is None else wait
            wait *= random.uniform(1.0, 1.1)
        self.paused = max(self.paused, now + min(wait, LONGEST_PAUSE))
        self.next = max(self.next, self.paused)

    def succeed(self, now: float) -> None:
        if self.misses:
            self.firm = self.firm or now - self.refused > self.window / 4 or self.misses > 3
            self.misses = 0

    def tell(self, now: float, told: Mapping[str, float]) -> None:
        """What a reply's headers say: `requests` and `tokens` allowed, `requests_left` and `tokens_left`.

        Where fewer are left than we have used, somebody else uses them too.
        """
        for column, name in enumerate(("requests", "tokens")):
            limit = told.get(name)
            if not limit:
                continue
            setattr(self, name, limit)
            left = told.get(f"{name}_left")
            if left is not None and (others := int(limit - left - self._sum(column))) > OTHERS * limit:
                self._count(now, *((others, 0) if column == 0 else (0, others)))

    def admitted(self, now: float) -> int:
        """How many requests of the last window were sent and not refused."""
        first, last = self._slot(now - self.window), self._slot(now)
        return sum(counts[0] for number, counts in self.slots.items() if first < number <= last)

    def _learn(self, now: float, admitted: float) -> None:
        if self.rate is None:
            self.lowered = now
            whole = bool(self.slots) and now - min(self.slots) * self._width > 0.9 * self.window
            self.rate, self.high, self.firm = max(admitted, FIRST / self._second), admitted, whole
        elif not self.misses:
            if now - self.lowered < CUT * self._second:
                return
            self.high = self.rate
            self.rate = max(0.98 * admitted, 0.7 * self.rate, self._least())
            self.firm, self.lowered = True, now
        else:  # even single requests, seconds apart, are refused: so the window is full, and says what it holds
            self.rate = max(min(self.rate, admitted), self._least())

    def _grow(self, now: float) -> None:
        assert self.rate is not None
        growth = PROBING if not self.firm else RECOVERING if self.rate < 0.9 * self.high else CREEPING
        seconds = min(max(now - self.seen, 0.0) / self._second, 1.0)
        self.rate *= (1 + growth) ** seconds

    def _spacing(self, when: float) -> float:
        """Seconds between requests; wider at first after a pause."""
        rates = [SPACED * self.requests / self.window] if self.requests else []
        if self.rate is not None:
            since = (when - self.paused) / self._second
            rates.append(self.rate * min(1.0, 0.25 * 2.0 ** min(since, 8.0)))
        return 1 / min(rates) if rates else 0.0

    def _idle(self) -> bool:
        return self.rate is None and self._sum(0) < min(FREE, (self.requests or 0) / 4)

    def _room(self, when: float, column: int, need: int, limit: float | None) -> float:
        """The earliest time from `when` at which the window has room for `need` more."""
        if not limit:
            return when
        most = limit - limit // SPARED
        total = self._sum(column) + min(need, most)
        for number in sorted(self.slots):
            if total <= most:
                break
            total -= self.slots[number][column]
            when = max(when, (number + 1 + LATE) * self._width + self.window)
        return when

    def _forget(self, now: float) -> None:
        first = self._slot(now - self.window) - LATE - 1
        for number in [number for number in self.slots if number < first]:
            del self.slots[number]

    def _count(self, when: float, requests: int, tokens: int) -> None:
        counts = self.slots.setdefault(self._slot(when), [0, 0])
        counts[0] = max(counts[0] + requests, 0)
        counts[1] = max(counts[1] + tokens, 0)

    def _sum(self, column: int) -> int:
        return sum(counts[column] for counts in self.slots.values())

    def _slot(self, when: float) -> int:
        return int(when // self._width)

    def _least(self) -> float:
        return 1 / self.window

    @property
    def _width(self) -> float:
        return self.window / SLOTS

    @property
    def _second(self) -> float:
        """What a second is to a window of a minute."""
        return self.window / 60


def told(headers: Mapping[str, str]) -> dict[str, Any]:
    """The limits that a reply's headers tell, for `Pace.tell`.

    Sources: OpenAI's guide "Rate limits" (x-ratelimit-limit-requests …; most compatible
    services follow it), Anthropic's API reference "Rate limits" (anthropic-ratelimit-requests-limit …).
    """
    found = {name.lower(): value.strip() for name, value in headers.items() if "ratelimit" in name.lower()}
    figures: dict[str, Any] = {}
    for name in ("requests", "tokens"):
        for limit, left in (
            (f"x-ratelimit-limit-{name}", f"x-ratelimit-remaining-{name}"),
            (f"anthropic-ratelimit-{name}-limit", f"anthropic-ratelimit-{name}-remaining"),
        ):
            if (most := _figure(found.get(limit))) is not None:
                figures[name] = most
                if (rest := _figure(found.get(left))) is not None:
                    figures[f"{name}_left"] = rest
                break
    return figures


def _figure(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() and len(text) < 13 else None
