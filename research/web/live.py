"""The live web: a chain of engines to search with, and a fetcher to read with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from ..errors import UsageError
from ..records import Hit, Page
from ..transport import Client
from .engines import engine
from .engines.asking import EngineSearch
from .engines.base import Options
from .engines.chain import Chain, Searcher
from .fetch import USER_AGENT, Fetcher, PageReader
from .guard import Policy


class LiveWeb:
    """`name` lists the engines and their options: it is a part of every search's key. Close it when done."""

    source = "live"

    def __init__(self, chain: Searcher, fetcher: Fetcher, client: Client, name: str = "") -> None:
        self._chain = chain
        self._fetcher = fetcher
        self._client = client
        self.name = name or chain.name

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections. The page reader belongs to the caller."""
        await self._fetcher.aclose()
        await self._client.aclose()

    async def search(self, query: str, top: int) -> list[Hit]:
        return await self._chain.search(query, top)

    async def fetch(self, url: str) -> Page:
        return await self._fetcher.fetch(url)


def live_web(
    names: Sequence[str],
    settings: Mapping[str, str],
    reader: PageReader,
    *,
    allow_addresses: Sequence[str] = (),
    options: Options | None = None,
    notice: Callable[[str], None] = lambda _: None,
) -> LiveWeb:
    """The live web through the engines `names` ("duckduckgo", "wikipedia"), tried in this order.

    `settings` holds keys and addresses under the names in `engines.ENGINES`; `allow_addresses`
    are ranges that pages may be read from although they are not public ("127.0.0.0/8").

    Raises: UsageError for an unknown engine, or what is no range.
    """
    if not names:
        raise UsageError("no search engine was named; choose one or more, for example duckduckgo,wikipedia")
    options = options or Options()
    client = Client(headers={"User-Agent": USER_AGENT})
    chain = Chain([EngineSearch(engine(name, settings), client, options) for name in names], notice=notice)
    fetcher = Fetcher(reader, policy=Policy.of(allow_addresses))
    return LiveWeb(chain, fetcher, client, chain.name + _suffix(options))


def _suffix(options: Options) -> str:
    wishes = [wish for wish in (options.region, options.language, options.recency) if wish]
    return f" ({' '.join(wishes)})" if wishes else ""
