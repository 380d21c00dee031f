"""The web as stages see it: something to search and to fetch from."""

from __future__ import annotations

from typing import Protocol

from ..records import Hit, Page


class Web(Protocol):
    """A web to ask: the live one, a local index, a recorded world.

    `name` is what the user calls it ("local:docs"). `source` is `live`, or the digest of
    the recorded content: it is part of every key, so that recorded and live webs never mix.
    """

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...

    async def search(self, query: str, top: int) -> list[Hit]:
        """At most `top` hits, best first; none is a result too.

        Raises: WebError where no true answer was had.
        """
        ...

    async def fetch(self, url: str) -> Page:
        """The page at `url`, whatever became of it.

        Raises: WebError for what may pass (time-outs, resets, 5xx).
        """
        ...
