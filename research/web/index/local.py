"""A local index as a web: searched by BM25, its stored pages fetched without a network."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn, TypeVar

from ...errors import StoreError, UsageError
from ...records import Hit, Outcome, Page
from ..urls import canonical
from . import schema

TITLE_WEIGHT = 5.0  # how much more a word counts in the title
LONGEST_TITLE = 300  # characters, as shown

# FTS5 sorts by `rank` itself, several times as fast as by `bm25(…)` and the URL.
_BEST = f"""
SELECT rowid, rank FROM words WHERE words MATCH ? AND rank MATCH 'bm25({TITLE_WEIGHT}, 1.0)' ORDER BY rank LIMIT ?
"""
_URL = "SELECT url FROM documents WHERE id = ?"
_SHOWN = "SELECT url, title, snippet, record, content FROM documents JOIN pages USING (id) WHERE id = ?"
_FETCH = "SELECT title, snippet, record, content FROM documents JOIN pages USING (id) WHERE url = ?"

T = TypeVar("T")


class LocalWeb:
    """The web that an index file holds, as it is when this is opened: later builds change nothing here.

    `name` is what the user calls it; `date` is the day whose web it is, where it is a snapshot.

    Raises: UsageError where there is no such index; StoreError where it is damaged.
    """

    def __init__(self, index: Path, name: str, date: str | None = None) -> None:
        self.name = name
        self.date = date
        self._path = index
        self._turn = threading.Lock()
        if not index.is_file():
            raise UsageError(f"There is no index {name} ({index}): build it with `research index build FOLDER`.")
        with schema.told(index):
            self._connection = schema.connect(index, wait=5.0)
            with ExitStack() as otherwise:
                otherwise.callback(self._connection.close)
                self._source = self._begin()
                otherwise.pop_all()

    def _begin(self) -> str:
        """Holds on to the index as it is now; its source."""
        self._connection.execute("PRAGMA query_only = ON")
        self._connection.execute("BEGIN")
        version, source = (schema.about(self._connection, what) for what in ("version", "source"))
        if source is None:
            raise UsageError(f"The index {self.name} ({self._path}) is empty, or still being built: {schema.AGAIN}.")
        if version != str(schema.VERSION):
            raise UsageError(f"The index {self.name} was made by another version: {schema.AGAIN}.")
        return source

    @property
    def source(self) -> str:
        """The digest of the index's addresses and contents: the same on any machine for the same content."""
        return self._source

    def close(self) -> None:
        with self._turn:
            self._connection.close()

    def __enter__(self) -> LocalWeb:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def search(self, query: str, top: int) -> list[Hit]:
        """At most `top` hits for any of the query's words, best first, each with its best passage as snippet.

        Raises: StoreError.
        """
        from .terms import expression  # not for whoever only asks for the source

        wanted = expression(query)
        if not wanted or top < 1:
            return []
        return await asyncio.to_thread(self._within, lambda: self._search(query, wanted, top))

    async def fetch(self, url: str) -> Page:
        """The stored page; one that is not in the index is `gone`.

        Raises: StoreError.
        """
        return await asyncio.to_thread(self._within, lambda: self._fetch(url))

    def _within(self, work: Callable[[], T]) -> T:
        with self._turn, schema.told(self._path):
            return work()

    def _search(self, query: str, wanted: str, top: int) -> list[Hit]:
        rows = [self._row(_SHOWN, number) for number in self._best(wanted, top)]
        return [self._hit(query, rank, *row) for rank, row in enumerate(rows, 1)]

    def _best(self, wanted: str, top: int) -> list[int]:
        """The best documents' numbers; equal scores stand in order of URL, whatever order they were indexed in."""
        limit = top + 10
        while True:
            found = self._connection.execute(_BEST, (wanted, limit)).fetchall()
            if len(found) < limit or found[-1][1] > found[top - 1][1]:
                break
            limit *= 4  # the ties at the end of the list go on
        last = found[min(top, len(found)) - 1][1] if found else 0.0
        tied = [(score, *self._row(_URL, number), number) for number, score in found if score <= last]
        return [number for _, _, number in sorted(tied)[:top]]

    def _row(self, statement: str, number: int) -> tuple[str, ...]:
        """What the index must hold of a document whose words it holds.

        Raises: StoreError.
        """
        row: tuple[str, ...] | None = self._connection.execute(statement, (number,)).fetchone()
        return row or self._damaged()

    def _damaged(self) -> NoReturn:
        raise StoreError(f"The index {self._path} is damaged: delete it and {schema.AGAIN}.")

    def _hit(self, query: str, rank: int, url: str, title: str, told: str, record: str, content: str) -> Hit:
        from .snippets import plain, snippet

        page = self._page(title, told, record, content)
        text = page.text if page.outcome is Outcome.OK else told
        shown = plain(title)[:LONGEST_TITLE]
        return Hit(url=url, title=shown, snippet=snippet(text, query), rank=rank, date=page.date)

    def _fetch(self, url: str) -> Page:
        row = None
        with suppress(ValueError):  # what has no canonical form is not in it
            row = self._connection.execute(_FETCH, (canonical(url),)).fetchone()
        if row is None:
            return Page(url=url, outcome=Outcome.GONE, detail=f"not in the index {self.name}")
        return self._page(*row)

    def _page(self, title: str, told: str, record: str, content: str) -> Page:
        if schema.content_digest(title, told, record) != content:
            self._damaged()
        return Page.model_validate_json(record)
