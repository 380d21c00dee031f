"""Filling an index, and keeping it in step with what it is made from."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

from ...errors import WebError
from ...records import Page
from .schema import is_locked, told
from .sources import Document, Unreadable, count, scan
from .writing import BuildReport, Writer

WAIT = 60.0  # seconds for which another build's end is waited for
BATCH = 32  # documents between two steps of progress
AT_ONCE = 4  # files that are held and read at the same time

Progress = Callable[[int, int], None]  # how many documents are done, of how many
T = TypeVar("T")


class PageReader(Protocol):
    """What turns a file's bytes into a page's record."""

    async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page: ...


class _Build:
    """One build: the writer, and the one thread in which it works."""

    def __init__(self, writer: Writer, reader: PageReader, pool: ThreadPoolExecutor) -> None:
        self.writer = writer
        self._reader = reader
        self._pool = pool
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *arguments))

    async def open(self) -> None:
        deadline = time.monotonic() + WAIT
        while True:
            try:
                return await self.run(self.writer.open, 0.1)
            except sqlite3.OperationalError as error:
                await self.run(self.writer.close)
                if not is_locked(error) or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.1)

    async def take(self, batch: list[Document | Unreadable]) -> None:
        tasks = [asyncio.create_task(self._read(document)) for document in await self.run(self.writer.take, batch)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, document: Document) -> None:
        async with self._slots:
            loaded = await self.run(self.writer.load, document)
            if loaded is None:
                return
            body, digest = loaded
            try:
                page = await self._reader.read(
                    body, url=document.url, content_type=document.content_type, status=document.status
                )
            except WebError as error:  # may pass, so nothing is stored of it
                self.writer.report.unreadable.append(Unreadable(document.place, str(error)))
                return
            await self.run(self.writer.put, document, digest, page)


async def build(index: Path, sources: Path, reader: PageReader, *, progress: Progress | None = None) -> BuildReport:
    """Make the index file hold the documents of `sources`, and nothing else.

    What has not changed is not read again. All of it is one transaction: whoever searches
    meanwhile sees the old state, and a failed or cancelled build leaves it as it was.
    `progress` is told how many documents are done, of how many.

    Raises: UsageError where `sources` can't be used or holds nothing that can be searched,
    or the file belongs to another program; StoreError where the index can't be written.
    """
    documents = scan(sources)
    async with _building(index, reader) as work:
        done, total = 0, await work.run(count, sources) if progress else 0
        while batch := await work.run(lambda: list(islice(documents, BATCH))):
            await work.take(batch)
            done += len(batch)
            if progress is not None:
                progress(done, total)
        return await work.run(work.writer.finish, sources)


@asynccontextmanager
async def _building(index: Path, reader: PageReader) -> AsyncIterator[_Build]:
    writer = Writer(index)
    with told(index), ThreadPoolExecutor(1, "index") as pool:
        work = _Build(writer, reader, pool)
        try:
            await work.open()
            yield work
        finally:
            pool.submit(writer.close).result()
