"""robots.txt (RFC 9309): asked once per origin, and kept for as long as this object lives.

Found: its rules hold. Not found (4xx), or more redirects than five: everything is allowed. Server errors
and silence mean that nothing may be read there for now, which is an error that may pass.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import WebError
from .guard import Target

if TYPE_CHECKING:
    from protego import Protego

LARGEST = 500 * 1024  # bytes; the rest of a longer file is not read (RFC 9309, 2.5)
MOST_ORIGINS = 2_000
_LONG = 16 * 1024  # characters; longer files are parsed beside the event loop


@dataclass(frozen=True)
class RobotsReply:
    """`status` after redirects; 404 stands for redirects that lead nowhere."""

    status: int
    body: bytes = b""


class Robots:
    """`get` fetches a robots.txt by its URL, with redirects, and raises WebError where there is no answer."""

    def __init__(self, get: Callable[[str], Awaitable[RobotsReply]], agent: str) -> None:
        self._get = get
        self._agent = agent
        self._rules: OrderedDict[str, asyncio.Task[Protego | None]] = OrderedDict()

    async def allows(self, target: Target) -> bool:
        """Whether the rules of the target's origin let this agent read it.

        Raises: WebError where robots.txt could not be had, and what `get` raises.
        """
        rules = await self._of(target.origin)
        return rules is None or rules.can_fetch(target.url, self._agent)

    async def aclose(self) -> None:
        for task in self._rules.values():
            task.cancel()
        await asyncio.gather(*self._rules.values(), return_exceptions=True)
        self._rules.clear()

    async def _of(self, origin: str) -> Protego | None:
        task = self._rules.get(origin)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._rules[origin] = asyncio.create_task(self._load(origin))
            task.add_done_callback(_seen)
            if len(self._rules) > MOST_ORIGINS:
                self._rules.popitem(last=False)
        self._rules.move_to_end(origin)
        return await asyncio.shield(task)  # one caller's cancellation is not the others'

    async def _load(self, origin: str) -> Protego | None:
        reply = await self._get(f"{origin}/robots.txt")
        if reply.status >= 500 or reply.status == 429:
            raise WebError(
                f"not reached: {origin}/robots.txt answers with status {reply.status}, so nothing there may be "
                "read for now; try again later"
            )
        if reply.status >= 300:
            return None
        from protego import Protego

        text = reply.body[:LARGEST].decode("utf-8-sig", "replace")
        return Protego.parse(text) if len(text) < _LONG else await asyncio.to_thread(Protego.parse, text)


def _seen(task: asyncio.Task[Protego | None]) -> None:
    """Takes notice of a failure that no caller waited for."""
    if not task.cancelled():
        task.exception()
