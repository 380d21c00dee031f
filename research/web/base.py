"""The web as stages see it: something to search and to fetch from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol

from ..records import Hit, Page

Recency = Literal["", "day", "week", "month", "year"]


class Web(Protocol):
    """A web to ask: the live one, a local index, a recorded world.

    `name` is what the user calls it ("local:docs"). `source` begins with `live`, or is the
    digest of the recorded content: it is part of every key, so that recorded and live webs
    never mix. `date` is the day of which a snapshot is; None stands for today.
    """

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def date(self) -> str | None: ...

    async def search(self, query: str, top: int) -> list[Hit]:
        """At most `top` hits, best first; none is a result too. `Hits` tell who gave them.

        Raises: WebError where no true answer was had.
        """
        ...

    async def fetch(self, url: str) -> Page:
        """The page at `url`, whatever became of it.

        Raises: WebError for what may pass (time-outs, resets, 5xx).
        """
        ...


class Hits(list[Hit]):
    """Hits with the name of the engine that gave them, and what each one said that was asked in vain before.

    `asked` names engines, this one and others, once for each reply that may cost a fee.
    """

    def __init__(
        self, hits: Iterable[Hit] = (), engine: str = "", skipped: Iterable[str] = (), asked: Iterable[str] = ()
    ) -> None:
        super().__init__(hits)
        self.engine = engine
        self.skipped = tuple(skipped)
        self.asked = tuple(asked)


class Options(NamedTuple):
    """Wishes that an engine follows where it can: "us", "en", and how old results may be."""

    region: str = ""  # ISO 3166-1, two letters
    language: str = ""  # ISO 639-1, two letters
    recency: Recency = ""

    def __str__(self) -> str:
        return " ".join(wish for wish in (self.region, self.language, self.recency) if wish)


def engines(web: Web) -> list[str]:
    """The engines that a search may ask, in their order; none where recorded pages answer."""
    if not is_live(web.source):
        return []
    unasked = getattr(web, "unasked", ())  # only webs of engines know of such
    return [name for name in web.name.partition(" (")[0].split(",") if name not in unasked]


def is_live(source: str) -> bool:
    """Whether a web of this source changes from day to day."""
    return source.partition(" ")[0] == "live"
