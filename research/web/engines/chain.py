"""Engines one after the other: the first that answers is the answer, and what was skipped is said.

A circuit breaker for each keeps a batch from asking what will not answer: an engine that refuses
(captcha, block, no key) rests at once, one that fails three times in a row as well. After its rest
one query tries it again; the rest doubles each time that this fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...errors import WebError
from ...records import Hit
from ..base import Hits
from .asking import EngineError
from .base import State

FAILURES = 3  # in a row, before an engine rests
REST = 60.0  # seconds, at first
LONGEST_REST = 1_800.0
RESTING = " (resting)"
_AT_ONCE = (State.CAPTCHA, State.BLOCKED)


class Searcher(Protocol):
    """An engine, a local index, or anything else that finds hits, and raises WebError where it can't."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, top: int) -> list[Hit]: ...


@dataclass
class Breaker:
    """Whether an engine may be asked. `clock` gives monotonic seconds."""

    clock: Callable[[], float]
    failures: int = 0
    rest: float = REST
    until: float = 0.0
    error: WebError | None = None  # the last
    trying: bool = False

    def lets(self) -> bool:
        """Whether to ask now; after a rest, for one query only until that has ended."""
        if not self.until:
            return True
        if self.trying or self.clock() < self.until:
            return False
        self.trying = True
        return True

    def succeeded(self) -> None:
        self.failures, self.rest, self.until, self.error, self.trying = 0, REST, 0.0, None, False

    def failed(self, error: WebError) -> None:
        self.failures += 1
        self.error = error
        refused = isinstance(error, EngineError) and error.state in _AT_ONCE
        if isinstance(error, EngineError) and error.state is State.DISABLED:
            self.until = float("inf")
        elif self.trying or refused or self.failures >= FAILURES:
            asked = error.retry_after if isinstance(error, EngineError) else None
            self.until = self.clock() + min(max(self.rest, asked or 0.0), LONGEST_REST)
            self.rest = min(2 * self.rest, LONGEST_REST)
        self.trying = False

    def left(self) -> None:
        """The query was cancelled: nothing is known."""
        self.trying = False


class Chain:
    """`searchers` in order of preference. `notice` is told of each engine that is skipped, once for each reason."""

    def __init__(
        self,
        searchers: Sequence[Searcher],
        *,
        notice: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._links = [(searcher, Breaker(clock)) for searcher in searchers]
        self._notice = notice
        self._told: set[str] = set()
        self.name = ",".join(searcher.name for searcher in searchers)

    async def search(self, query: str, top: int) -> Hits:
        """The hits of the first engine that has any; none if those that answered found none.

        Raises: WebError, with what each engine said, where none answered.
        """
        reasons: dict[str, WebError | None] = {}
        asked: list[str] = []
        answered = ""
        for searcher, breaker in self._links:
            if not breaker.lets():
                reasons[f"{breaker.error}{RESTING}"] = breaker.error
                continue
            try:
                hits = await self._ask(searcher, breaker, query, top)
            except WebError as error:
                asked += error.asked
                reasons[str(error)] = error
                continue
            asked += hits.asked if isinstance(hits, Hits) else ()
            answered = answered or searcher.name
            if hits:
                break
        else:
            hits = []
        if not answered:
            raise _none_answered(reasons, asked)
        for reason in reasons:
            self._tell(f"skipped {reason}")
        return Hits(hits, searcher.name if hits else answered, [*reasons], asked)

    async def _ask(self, searcher: Searcher, breaker: Breaker, query: str, top: int) -> list[Hit]:
        try:
            hits = await searcher.search(query, top)
        except WebError as error:
            breaker.failed(error)
            raise
        except BaseException:
            breaker.left()
            raise
        breaker.succeeded()
        return hits

    def _tell(self, text: str) -> None:
        text = text.removesuffix(RESTING)
        if text not in self._told and len(self._told) < 100:
            self._told.add(text)
            self._notice(text)


def _none_answered(reasons: Mapping[str, WebError | None], asked: Sequence[str]) -> WebError:
    """What is told where no engine answered: what each said, or that none was reached."""
    unreached = [error.engine for error in reasons.values() if isinstance(error, EngineError) and not error.reached]
    if len(unreached) == len(reasons):
        failed = WebError(
            f"no search engine could be reached ({', '.join(unreached)}): is this machine online? `--offline` asks the "
            "bundled sample web"
        )
    else:
        failed = WebError("no search engine answered. " + "; ".join(reasons))
    failed.asked = asked
    return failed
