"""Which web a question is asked of: the live one, a local index, a recorded world, or the bundled sample."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from .artifacts import encode
from .errors import StoreError, UsageError
from .records import Page
from .settings import FLAG, SAMPLE_WEB, Settings
from .store import PAGE, Store, digest, key_of
from .web.base import Options, Recency, Web
from .web.index import LocalWeb

if TYPE_CHECKING:
    from .web.index import BuildReport
    from .web.live import LiveWeb
    from .web.revisits import Validators

KEYLESS = "duckduckgo,mojeek,wikipedia"  # what is searched unless the user says otherwise


@asynccontextmanager
async def opened(
    settings: Settings,
    store: Store,
    notice: Callable[[str], None] = lambda _: None,
    *,
    offline: bool = False,
    world: Path | None = None,
    workers: int = 1,
) -> AsyncIterator[Web]:
    """The web that the user names: a world file, the sample web, or what the setting `search` lists.

    `workers` are the parser processes of a live web. Raises: UsageError if there is no such web, or more than one.
    """
    ways = {"--world": world is not None, "--offline": offline, "--search": settings.origin("search").startswith(FLAG)}
    given = [name for name, is_given in ways.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} name different webs; give one of them")
    if world is not None:
        from .web.world import World

        yield World(world)
    elif offline:
        with await sample(settings, notice) as web:
            yield web
    else:
        async with searched(settings, store, notice, workers) as live:
            yield live


@asynccontextmanager
async def searched(
    settings: Settings, store: Store, notice: Callable[[str], None], workers: int
) -> AsyncIterator[LiveWeb | LocalWeb]:
    """The engines and indexes that the setting `search` lists."""
    from .web.live import LOCAL, Asking, LiveWeb

    names = list(dict.fromkeys(name.strip() for name in (settings.search or KEYLESS).split(",") if name.strip()))
    indexes = {name: local(settings, name.removeprefix(LOCAL)) for name in names if name.startswith(LOCAL)}
    if len(names) == len(indexes) == 1:
        with indexes[names[0]] as index:
            yield index
        return
    options = Options(settings.region, settings.language, cast(Recency, settings.recency))
    variables = settings.engine_variables()
    asking = Asking(names, variables, settings.allow_addresses, options, indexes, workers)
    if len(asking.unasked) == len(names):
        own = {name: table["key_env"] for name, table in settings.engines.items() if "key_env" in table}
        wanted = " and ".join(own.get(name.partition("@")[0], needed) for name, needed in asking.unasked.items())
        raise UsageError(
            f"{', '.join(names)} can't be asked: set {wanted}, or search others, as {KEYLESS} without --search"
        )
    async with LiveWeb(asking, notice=notice, revisits=Kept(store, asking.source)) as web:
        yield web


@contextmanager
def recorded(web: Web, file: Path | None, date: str) -> Iterator[Web]:
    """`web`, and where a file is named, all that it answers kept there as the world of that day.

    Raises: UsageError where the file exists; StoreError where it can't be written.
    """
    if file is None:
        yield web
        return
    from .web.world import Recorder

    with Recorder(web, file, date) as recorder:
        yield recorder


class Kept(NamedTuple):
    """The pages of a store, by the URL at which they were read, each with what its server calls its state by."""

    store: Store
    source: str

    def earlier(self, url: str) -> tuple[Validators, Page] | None:
        from .web.revisits import Validators

        found = self.store.find(self._key(url))
        return None if found is None else (Validators(**found.receipt), Page.model_validate_json(found.data))

    def keep(self, url: str, validators: Validators, page: Page) -> None:
        self.store.put(self._key(url), encode(page, Page), vars(validators), PAGE)

    def _key(self, url: str) -> str:
        return key_of({"revisits": 1, "source": self.source, "url": url})


def sample_date() -> str:
    """The day of which the sample web is a snapshot (YYYY-MM-DD)."""
    return str(json.loads((SAMPLE_WEB / "web.json").read_text(encoding="utf-8"))["date"])


async def sample(settings: Settings, notice: Callable[[str], None]) -> LocalWeb:
    """The bundled sample web; its index is made when it is first asked for."""
    index = settings.index_of(f"sample-{_sample_digest()[:12]}")
    try:
        return LocalWeb(index, "sample web", sample_date())
    except UsageError:  # not built yet, or not whole
        notice("Reading the sample web for the first time …")
        await build(index, SAMPLE_WEB / "pages.jsonl")
    return LocalWeb(index, "sample web", sample_date())


def local(settings: Settings, name: str) -> LocalWeb:
    """The local index of that name.

    Raises: UsageError if there is none.
    """
    index = settings.index_of(checked(name))
    if not index.is_file():
        raise UsageError(f"there is no index {name!r}; make it with `research index build FOLDER --name {name}`")
    return LocalWeb(index, f"local:{name}")


def removed(settings: Settings, name: str) -> Path:
    """The file of a local index that was, with all that SQLite kept beside it.

    Raises: UsageError if there is none; StoreError if it can't be removed.
    """
    index = settings.index_of(checked(name))
    if not index.is_file():
        raise UsageError(f"there is no index {name!r}; `research index list` lists them")
    try:
        for file in (index, *index.parent.glob(f"{index.name}-*")):
            file.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{index} can't be removed: {error.strerror}; check its folder's rights") from None
    return index


def checked(name: str) -> str:
    """An index's name, which becomes a file's.

    Raises: UsageError if it could lead elsewhere.
    """
    if not name or not all(char.isalnum() or char in "-_" for char in name):
        raise UsageError(f"{name!r} is no index's name: use letters, digits, - and _")
    return name


async def build(index: Path, sources: Path, progress: Callable[[int, int], None] | None = None) -> BuildReport:
    """Make or bring up to date the index of a folder or a JSONL; see `web.index.building`."""
    from .web.index.building import build as build_index
    from .web.reader import Reader

    async with Reader(workers=os.cpu_count() or 1) as reader:
        return await build_index(index, sources, reader, progress=progress)


def _sample_digest() -> str:
    """Changes with every file of the sample web."""
    files = sorted(path for path in SAMPLE_WEB.rglob("*") if path.is_file())
    return digest("".join(f"{path.name} {digest(path.read_bytes())}\n" for path in files))
