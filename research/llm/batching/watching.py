"""Sees a batch through: sent once, looked at until it has ended, its replies read onto the record.

Whatever passes (too many requests, a provider that is down, a broken connection) is waited out for up to an hour,
while the batch goes on at the provider. Before a batch is sent a second time, it is looked for there.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from research.errors import OverloadedError, ProviderError, UnknownModelError
from research.llm.batching.kept import SENDING, Kept, Sent
from research.llm.batching.service import CANCELLED, EXPIRED, MISSING, Progress, Reply, Service
from research.output import span

T = TypeVar("T")

FIRST, GROWTH, LONGEST = 0.2, 1.3, 60.0  # seconds between looks at a batch: each pause so much longer than the last
PATIENCE = 3_600.0  # seconds that a provider may fail while its batch is waited for
EVERY = 60.0  # seconds between words about a batch with which nothing happens
CHUNK = 500  # replies that are written at once
TOO_MANY = 429


@dataclass
class Watch:
    """`services` are by models' names."""

    services: Mapping[str, Service]
    kept: Kept
    tell: Callable[[str], None] = lambda _: None
    sleep: Callable[[float], Awaitable[object]] = field(default=asyncio.sleep, repr=False)
    narrow: dict[str, int] = field(default_factory=dict)  # models whose queue was full → requests of one batch since

    async def recover(self) -> None:
        """Find out what became of batches that were being sent when the process ended.

        Raises: ProviderError.
        """
        for sent in self.kept.open():
            if sent.state == SENDING and sent.model in self.services:
                id = await self._persist(lambda sent=sent: self._find(sent))  # type: ignore[misc]
                self.kept.created(sent.name, id) if id else self.kept.drop(sent.name)

    async def create(self, batch: str, lines: list[bytes]) -> None:
        """Send it. What fails is tried again, once it is sure that it had not come to be.

        Raises: ProviderError; then the record has it only if it may have come to be.
        """
        sent, again = self._sent(batch), False
        service = self.services[sent.model]

        async def once() -> str:
            nonlocal again
            found = await self._find(sent) if again else None
            again = True
            return found or await service.create(batch, lines)

        try:
            self.kept.created(batch, await self._persist(once))
        except ProviderError as error:
            if not error.passing:
                self.kept.drop(batch)
            raise

    async def to_its_end(self, batch: str) -> None:
        """Wait until it has ended, with all replies on record.

        Raises: ProviderError, where that can't be seen; the batch goes on.
        """
        sent = await self._surely(self._sent(batch))
        service, progress = self.services[sent.model], await self._ended(sent)
        if progress.refused is not None:
            status = _status(progress)
            if status == TOO_MANY:
                self.narrow[sent.model] = max(1, sent.size // 2)
            self.kept.end(batch, reply=Reply(status, progress.refused))
            return
        ours = await self._persist(lambda: self._read(service, batch, progress))
        if progress.done and not ours and (id := await self._persist(lambda: self._find(sent))):
            self.kept.created(batch, id)  # what was taken for this one was a stranger's
            await self.to_its_end(batch)
            return
        self.kept.end(batch, {"expired": EXPIRED, "cancelled": CANCELLED}.get(progress.status, MISSING))

    async def _surely(self, sent: Sent) -> Sent:
        """With its id. Raises: ProviderError, where it never came to be."""
        if sent.id:
            return sent
        id = await self._persist(lambda: self._find(sent))
        if not id:
            self.kept.drop(sent.name)
            raise OverloadedError(f"{sent.model}: the batch could not be created. Run it again later.")
        self.kept.created(sent.name, id)
        return sent._replace(id=id)

    async def _ended(self, sent: Sent) -> Progress:
        """How it ended; until then it is told how it goes on."""
        service, pause, told, at = self.services[sent.model], FIRST, "", 0.0
        while True:
            progress = await self._persist(lambda: _looked(service, sent.id))
            words, now = _told(sent, progress), time.monotonic()
            if progress.ended or words != told or now - at >= EVERY:
                self.tell(f"  {words}, {span(time.time() - sent.begun)}")
                told, at = words, now
            if progress.ended:
                return progress
            await self.sleep(pause)
            pause = min(pause * GROWTH, LONGEST)

    async def cancel(self) -> int:
        """Cancel all that are under way, and wait for what they leave; how many there were. Raises: ProviderError."""
        sent = [one for one in self.kept.open() if one.model in self.services]
        for one in sent:
            await self._persist(lambda one=one: self._cancelled(one))  # type: ignore[misc]
        for one in sent:
            await self.to_its_end(one.name)
        return len(sent)

    async def _cancelled(self, sent: Sent) -> None:
        """Providers refuse to cancel what has ended."""
        service = self.services[sent.model]
        if not (await _looked(service, sent.id)).ended:
            await service.cancel(sent.id)

    async def _read(self, service: Service, batch: str, progress: Progress) -> int:
        """How many results were of this batch. Those that were deleted at the provider are none."""
        chunk, ours = [], 0
        try:
            async for named in service.results(progress):
                chunk.append(named)
                if len(chunk) >= CHUNK:
                    ours += self.kept.keep(batch, chunk)
                    chunk = []
        except UnknownModelError as error:
            self.tell(f"  the results of {batch} are gone: {error}")
        return ours + self.kept.keep(batch, chunk)

    async def _find(self, sent: Sent) -> str | None:
        names = set(self.kept.names(sent.name))
        return await self.services[sent.model].find(sent.name, names, sent.begun, self.kept.ids())

    def _sent(self, batch: str) -> Sent:
        return next(sent for sent in self.kept.open() if sent.name == batch)

    async def _persist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What `ask` gives, once the provider answers. Raises: ProviderError that does not pass, or not in time."""
        pause, until = 0.5, time.monotonic() + PATIENCE
        while True:
            try:
                return await ask()
            except ProviderError as error:
                if not error.passing or time.monotonic() > until:
                    raise
                wait = min(error.retry_after or pause * random.uniform(0.75, 1.25), LONGEST * 5)
                if pause > 1:
                    self.tell(f"  {error} It is asked again in {wait:.0f} s; the batch goes on.")
            await self.sleep(wait)
            pause = min(pause * 2, LONGEST)


async def _looked(service: Service, id: str) -> Progress:
    """How far it is; a batch that the provider no longer knows has ended, without a reply."""
    try:
        return await service.look(id)
    except UnknownModelError:  # what a 404 mostly means
        return Progress("unknown to the provider", True, 0, 0, 0)


def _status(progress: Progress) -> int:
    """As what a refusal of the whole batch counts: too much in the queue passes, a file that is wrong does not."""
    return TOO_MANY if "token_limit" in str(progress.refused) else 400


def _told(sent: Sent, progress: Progress) -> str:
    counts = f"{progress.done:,} done, {progress.failed:,} failed of {progress.total or sent.size:,}"
    return f"{sent.stages}: batch {sent.id} of {sent.model}: {progress.status.replace('_', ' ')}, {counts}"
