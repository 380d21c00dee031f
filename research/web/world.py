"""World files: what a run was told by the web, kept as one file that answers again, and nothing else does.

One JSON a line: first {"world": 1, "name": …, "date": …}, then for each search
{"query": …, "top": …, "hits": [Hit, …]} and for each page {"asked": URL, "page": Page}, in the order
in which they came. Failures that may pass are not kept.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import NotRecordedError, StoreError, UsageError
from ..records import Hit, Page
from .base import Web, is_live
from .urls import canonical


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Header(_Line):
    world: int
    name: str
    date: str


class _Search(_Line):
    query: str
    top: int
    hits: list[Hit]


class _Fetched(_Line):
    asked: str
    page: Page


Kind = TypeVar("Kind", bound=_Line)


class Recorder:
    """A web that writes down what another one answers. Close it when the run has ended.

    Its `source` is its own, so that nothing is taken from the store that would then be missing
    in the file. `date` (YYYY-MM-DD) is the day whose web is recorded.

    Raises: UsageError where the file exists; StoreError where it can't be written.
    """

    def __init__(self, web: Web, file: Path, date: str) -> None:
        self._web = web
        self._file = file
        self._kept: set[tuple[str, str]] = set()
        self.name = web.name
        self.unasked: Collection[str] = getattr(web, "unasked", ())  # as it has it
        self.date: str | None = date
        self.source = f"{'live ' if is_live(web.source) else ''}recording {secrets.token_hex(8)}"
        try:
            self._lines: TextIO = open(file, "x", encoding="utf-8", newline="\n")  # noqa: SIM115 (until close)
        except FileExistsError:
            raise UsageError(f"{file} exists; choose another name for the world, or remove it") from None
        except OSError as error:
            raise StoreError(f"{file} can't be written: {error.strerror}; choose another place") from error
        self._write(_Header(world=1, name=web.name, date=date))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._lines.close()

    async def search(self, query: str, top: int) -> list[Hit]:
        hits = await self._web.search(query, top)
        if self._new("search", f"{top} {_query(query)}"):
            self._write(_Search(query=query, top=top, hits=hits))
        return hits

    async def fetch(self, url: str) -> Page:
        page = await self._web.fetch(url)
        if self._new("page", _address(url)):
            self._write(_Fetched(asked=url, page=page))
        return page

    def _new(self, kind: str, what: str) -> bool:
        new = (kind, what) not in self._kept
        self._kept.add((kind, what))
        return new

    def _write(self, line: _Line) -> None:
        try:
            self._lines.write(line.model_dump_json(exclude_defaults=True) + "\n")
            self._lines.flush()
        except OSError as error:
            raise StoreError(f"{self._file} can't be written: {error.strerror}; what it holds is sound") from error


class World:
    """The web that a world file holds; pages stay on disk until they are asked for.

    `source` is the digest of its content, whatever the order of its lines. `date` is the
    day whose web it is.

    Raises: UsageError where there is no such file, or it is no world.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._searches: dict[str, _Search] = {}
        self._pages: dict[str, tuple[int, int]] = {}  # canonical URL → where its line is, and how long
        header, self.source = self._read()
        self.name = header.name
        self.date: str | None = header.date

    async def search(self, query: str, top: int) -> list[Hit]:
        """At most `top` of the recorded hits.

        Raises: NotRecordedError where this query was not asked, or for fewer hits than now.
        """
        found = self._searches.get(_query(query))
        if found is None:
            raise NotRecordedError(f"the world {self._file} has no search for {query!r}; record it anew to add it")
        if found.top < top and len(found.hits) >= found.top:
            raise NotRecordedError(
                f"the world {self._file} has {found.top} hits for {query!r}, and {top} are asked for; record it anew"
            )
        return found.hits[:top]

    async def fetch(self, url: str) -> Page:
        """The recorded page.

        Raises: NotRecordedError where there is none for this URL.
        """
        place = self._pages.get(_address(url))
        if place is None:
            raise NotRecordedError(f"the world {self._file} has no page for {url}; record it anew to add it")
        return self._page(*place)

    def _page(self, offset: int, length: int) -> Page:
        try:
            with open(self._file, "rb") as lines:
                lines.seek(offset)
                return _parsed(_Fetched, lines.read(length), self._wrong).page
        except OSError as error:
            raise UsageError(f"{self._file} can't be read any more: {error.strerror}; check the path") from error

    def _read(self) -> tuple[_Header, str]:
        digests: list[bytes] = []
        header: _Header | None = None
        offset = 0
        try:
            with open(self._file, "rb") as lines:
                for number, line in enumerate(lines, 1):
                    if header is None:
                        header = _parsed(_Header, line, self._wrong)
                    else:
                        self._take(line, number, offset)
                    digests.append(hashlib.sha256(line.strip()).digest())
                    offset += len(line)
        except OSError as error:
            raise UsageError(f"{self._file} can't be read: {error.strerror}; check the path") from error
        if header is None or header.world != 1:
            raise self._wrong("its first line does not say that it is a world of version 1")
        return header, f"world {hashlib.sha256(b''.join(sorted(digests))).hexdigest()}"

    def _take(self, line: bytes, number: int, offset: int) -> None:
        def wrong(what: str) -> UsageError:
            return self._wrong(f"line {number}: {what}")

        if line.startswith(b'{"query"'):
            search = _parsed(_Search, line, wrong)
            known = self._searches.get(_query(search.query))
            if known is None or known.top < search.top:
                self._searches[_query(search.query)] = search
        else:
            fetched = _parsed(_Fetched, line, wrong)
            self._pages.setdefault(_address(fetched.asked), (offset, len(line)))

    def _wrong(self, what: str) -> UsageError:
        return UsageError(f"{self._file} is no world file: {what}. Make one with --record")


def _parsed(kind: type[Kind], line: bytes, wrong: Callable[[str], UsageError]) -> Kind:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        first: Any = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise wrong(f"{place + ': ' if place else ''}{first['msg']}") from error


def _query(query: str) -> str:
    return " ".join(query.split())


def _address(url: str) -> str:
    try:
        return canonical(url)
    except ValueError:
        return url
