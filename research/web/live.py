"""The live web: engines to search with, and a fetcher to read with, opened when they are first asked.

Until then nothing heavy is imported, no process is started and nothing is dialled: whoever is answered
from the store needs the web's name only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from ..errors import UsageError
from ..records import Hit, Outcome, Page
from ..settings import ENGINES, KEYED, engine_names
from ..values import near
from .base import Options
from .index import LocalWeb

if TYPE_CHECKING:
    from ..transport import Client
    from .engines.chain import Chain, Searcher
    from .fetch import Fetcher, PageReader
    from .reader import Reader
    from .revisits import Revisits

LOCAL = "local:"


@dataclass(frozen=True)
class Asking:
    """How the live web is asked.

    `engines` are tried in this order; `local:NAME` among them is one of `indexes`. `variables`
    hold keys and addresses under the names that `engines.ENGINES` tells. `allow_addresses` are
    ranges that pages may be read from although they are not public ("127.0.0.0/8"). Pages are
    parsed in `workers` processes.

    Raises: UsageError for an unknown engine, or none.
    """

    engines: Sequence[str]
    variables: Mapping[str, str]
    allow_addresses: Sequence[str] = ()
    options: Options = Options()
    indexes: Mapping[str, LocalWeb] | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        if not self.engines:
            raise UsageError("no search engine was named; choose one or more, for example duckduckgo,wikipedia")
        for name in self.engines:
            if name not in ENGINES and name not in (self.indexes or {}):
                known = f"{', '.join(ENGINES)}, and local:NAME{near(name, ENGINES)}"
                raise UsageError(f"there is no search engine {name!r}. Known are {known}")

    @property
    def name(self) -> str:
        """The engines and their options, a part of every search's key."""
        wishes = f" ({self.options})" if str(self.options) else ""
        return ",".join(self.label(name) for name in self.engines) + wishes

    @property
    def unasked(self) -> dict[str, str]:
        """Engines that are skipped for want of a key or an address, as they are called in `name`: what they want."""
        wanted = {name: engine_names(name)[1] for name in KEYED} | {"searxng": engine_names("searxng")[0]}
        return {
            self.label(name): wanted[name]
            for name in self.engines
            if name in wanted and not self.variables.get(wanted[name])
        }

    @property
    def source(self) -> str:
        """`live`, with what else decides what a page is: own address ranges, own indexes."""
        indexes = [index.source for index in (self.indexes or {}).values()]
        return " ".join([*(["live", *self.allow_addresses] if self.live else []), *indexes])

    @property
    def live(self) -> bool:
        return any(not name.startswith(LOCAL) for name in self.engines)

    def label(self, name: str) -> str:
        """An engine's name, with the host if that is one of the user's own: its results are not the public engine's."""
        if name.startswith(LOCAL):
            return name
        base = self.variables.get(engine_names(name)[0], "")
        return f"{name}@{urlsplit(base).netloc.rpartition('@')[2]}" if base else name


@dataclass(frozen=True)
class _Opened:
    chain: Chain
    client: Client
    fetcher: Fetcher
    reader: Reader | None  # where it is our own


class LiveWeb:
    """A web as `asking` says. Close it when done. `notice` is told which engines are skipped, and why.

    `reader` reads pages in place of parser processes of its own, and stays its owner's;
    `revisits` remembers pages for servers that can tell whether they have changed.
    """

    date = None

    def __init__(
        self,
        asking: Asking,
        *,
        notice: Callable[[str], None] = lambda _: None,
        reader: PageReader | None = None,
        revisits: Revisits | None = None,
    ) -> None:
        self.name, self.source, self.unasked = asking.name, asking.source, asking.unasked
        self._asking = asking
        self._notice = notice
        self._reader = reader
        self._revisits = revisits
        self._opened: _Opened | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close connections, own indexes, and end the parsers."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.fetcher.aclose()
            await opened.client.aclose()
            if opened.reader is not None:
                await opened.reader.aclose()
        for index in (self._asking.indexes or {}).values():
            index.close()

    async def search(self, query: str, top: int) -> list[Hit]:
        opened = self._open()
        if opened.reader is not None and self._asking.live:
            await opened.reader.warm()  # it loads while the engines are asked
        return await opened.chain.search(query, top)

    async def fetch(self, url: str) -> Page:
        """From the indexes where they have it, else as it is now."""
        page = Page(url=url, outcome=Outcome.GONE, detail="no index has it")
        for index in (self._asking.indexes or {}).values():
            page = await index.fetch(url)
            if page.outcome is not Outcome.GONE:
                return page
        return await self._open().fetcher.fetch(url) if self._asking.live else page

    def _open(self) -> _Opened:
        if self._opened is None:
            self._opened = _made(self._asking, self._notice, self._reader, self._revisits)
        return self._opened


def _made(
    asking: Asking, notice: Callable[[str], None], reader: PageReader | None, revisits: Revisits | None
) -> _Opened:
    from ..transport import Client
    from .engines import engine
    from .engines.asking import EngineSearch
    from .engines.chain import Chain
    from .fetch import USER_AGENT, Fetcher
    from .guard import Policy
    from .reader import Reader

    client = Client(headers={"User-Agent": USER_AGENT})
    indexes = asking.indexes or {}

    def searcher(name: str) -> Searcher:
        if name in indexes:
            return indexes[name]
        return EngineSearch(engine(name, asking.variables), client, asking.options, asking.label(name))

    chain = Chain([searcher(name) for name in asking.engines], notice=notice)
    own = Reader(asking.workers)
    policy = Policy.of(asking.allow_addresses)
    return _Opened(chain, client, Fetcher(reader or own, policy=policy, revisits=revisits), None if reader else own)
