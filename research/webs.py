"""Which web a question is asked of: the bundled sample, a local index, or the live one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from .errors import UsageError
from .settings import SAMPLE_WEB, Settings
from .store import digest
from .web.index import LocalWeb, is_built

NO_WEB = (
    "no web to search: add --offline for the bundled sample web, or --search local:NAME for documents of your own "
    "(`research index build FOLDER --name NAME` makes an index)"
)


def sample_date() -> str:
    """The day of which the sample web is a snapshot (YYYY-MM-DD)."""
    return str(json.loads((SAMPLE_WEB / "web.json").read_text(encoding="utf-8"))["date"])


async def sample(settings: Settings, notice: Callable[[str], None]) -> LocalWeb:
    """The bundled sample web; its index is made when it is first asked for."""
    index = settings.index(f"sample-{_sample_digest()[:12]}")
    if not is_built(index):
        notice("Reading the sample web for the first time …")
        await build(index, SAMPLE_WEB / "pages.jsonl")
    return LocalWeb(index, "sample web", sample_date())


def local(settings: Settings, name: str) -> LocalWeb:
    """The local index of that name.

    Raises: UsageError if there is none.
    """
    index = settings.index(checked(name))
    if not index.is_file():
        raise UsageError(f"there is no index {name!r}; make it with `research index build FOLDER --name {name}`")
    return LocalWeb(index, f"local:{name}")


def checked(name: str) -> str:
    """An index's name, which becomes a file's.

    Raises: UsageError if it could lead elsewhere.
    """
    if not name or not all(char.isalnum() or char in "-_" for char in name):
        raise UsageError(f"{name!r} is no index's name: use letters, digits, - and _")
    return name


async def build(index: Path, sources: Path, progress: Callable[[int, int], None] | None = None) -> object:
    """Make or bring up to date the index of a folder or a JSONL; see `web.index.building`."""
    from .web.index.building import build as build_index
    from .web.reader import Reader

    async with Reader(workers=os.cpu_count() or 1) as reader:
        return await build_index(index, sources, reader, progress=progress)


def _sample_digest() -> str:
    """Changes with every file of the sample web."""
    files = sorted(path for path in SAMPLE_WEB.rglob("*") if path.is_file())
    return digest("".join(f"{path.name} {digest(path.read_bytes())}\n" for path in files))
