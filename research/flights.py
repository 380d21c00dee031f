"""Single flight: identical work that is wanted at the same time is done once."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class Flight(Generic[T]):
    """Work that is going on, and how many wait for it."""

    task: asyncio.Future[T]
    waiting: int = 0
    told: bool = False


class Flights(Generic[T]):
    """The work in flight of one process, by key; shared by all runs on one store."""

    def __init__(self) -> None:
        self._flights: dict[str, Flight[T]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._flights

    def __len__(self) -> int:
        return len(self._flights)

    async def join(self, key: str, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """What `work` gives, begun only if it is not going on already; and whether we are the first to be told.

        It goes on when one of those who wait is cancelled, and is cancelled with the last.
        Raises: what `work` raises.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = Flight(asyncio.ensure_future(work()))
            flight.task.add_done_callback(functools.partial(self._landed, key, flight))
        flight.waiting += 1
        try:
            result = await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done():
                self._landed(key, flight, flight.task)
                flight.task.cancel()
        first, flight.told = not flight.told, True
        return result, first

    def _landed(self, key: str, flight: Flight[T], task: asyncio.Future[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if task.done() and not task.cancelled():
            task.exception()  # whoever waits has it; that nobody does any more is no news
