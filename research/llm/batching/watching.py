"""Sees a batch through: sent once, looked at until it has ended, its replies read onto the record.

Whatever passes (too many requests, a provider that is down, a broken connection) is waited out for up to an hour,
while the batch goes on at the provider. Before a batch is sent a second time, it is looked for there. What it may
have run and can't be told of is believed only after minutes, and then counts as paid.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from research.errors import OverloadedError, ProviderError, UnknownModelError
from research.llm.batching.doubt import Doubt
from research.llm.batching.kept import PRESUMED, SENDING, SENT, Kept, Sent
from research.llm.batching.service import (
    CANCELLED,
    EXPIRED,
    MISSING,
    NOT_RUN,
    Found,
    Progress,
    Reply,
    Service,
    UnusableIdError,
)
from research.output import span

T = TypeVar("T")

FIRST, GROWTH, LONGEST = 0.2, 1.3, 60.0  # seconds between looks at a batch: each pause so much longer than the last
PATIENCE = 3_600.0  # seconds that a provider may fail while its batch is waited for
STRANGERS = 1  # batches of others that are taken for one of ours, until it is given up
AGAIN = 1.0  # seconds until results are read again, at first
EVERY = 60.0  # seconds between words about a batch with which nothing happens
CHUNK = 500  # replies that are written at once
TOO_MANY = 429
UNKNOWN = "unknown to the provider"
ENDINGS = {"expired": EXPIRED, "cancelled": CANCELLED}


class Read(NamedTuple):
    """What was read of a batch's results: lines of ours and of others, and the places of lines that are none."""

    ours: int
    others: int
    bad: tuple[int, ...]


@dataclass
class Watch:
    """`services` are by models' names."""

    services: Mapping[str, Service]
    kept: Kept
    tell: Callable[[str], None] = lambda _: None
    sleep: Callable[[float], Awaitable[object]] = field(default=asyncio.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    narrow: dict[str, int] = field(default_factory=dict)  # models whose queue was full → requests of one batch since

    async def recover(self) -> None:
        """Find out what became of batches that were being sent when the process ended.

        Raises: ProviderError.
        """
        for sent in self.kept.open():
            if sent.state == SENDING and sent.model in self.services:
                found = await self._persist(lambda sent=sent: self._find(sent))  # type: ignore[misc]
                if found:
                    self.kept.created(sent.name, found.id, sure=found.sure)
                else:
                    self.kept.drop(sent.name)

    async def create(self, batch: str, lines: list[bytes]) -> None:
        """Send it. What fails is tried again, once it is sure that it had not come to be. One that was made, but can't
        be asked for, has ended.

        Raises: ProviderError; then the record has it only if it may have come to be.
        """
        [sent] = self._open(batch)
        service, again, doubt = self.services[sent.model], False, Doubt(self.clock)
        made: UnusableIdError | None = None

        async def once() -> Found | None:
            nonlocal again, made
            found = await self._find(sent) if again else None
            again = True
            if found or (made and doubt.settled()):
                return found
            try:
                if made:
                    raise made
                return Found(await service.create(batch, lines), sure=True)
            except UnusableIdError as error:
                made = error
                raise

        try:
            found = await self._persist(once)
            if found:
                self.kept.created(batch, found.id, sure=found.sure)
            else:
                self.kept.end(batch)
        except ProviderError as error:
            if not error.passing:
                self.kept.drop(batch)
            raise

    async def to_its_end(self, batch: str) -> None:
        """Wait until it has ended, with all replies on record.

        Raises: ProviderError, where that can't be seen; the batch goes on.
        """
        tried: set[str] = set()
        for times in range(STRANGERS + 1):
            if not (under_way := self._open(batch)):
                return
            sent = await self._surely(under_way[0])
            progress = await self._ended(sent)
            if progress.refused is not None and not progress.done:
                status = _status(progress)
                if status == TOO_MANY:
                    self.narrow[sent.model] = max(1, sent.size // 2)
                self.kept.end(batch, reply=Reply(status, progress.refused))
                return
            read = await self._results(sent, progress)
            stranger = _strangers(sent, read)
            if not stranger or times == STRANGERS:
                self.kept.end(batch, MISSING if stranger else self._gone(sent, progress))
                return
            self.tell(f"  batch {sent.id} of {sent.model} is not ours, as its results show")
            tried.add(sent.id)
            await self.sleep(AGAIN)
            found = await self._persist(lambda sent=sent: self._find(sent, tried))  # type: ignore[misc]
            if found is None:
                self.kept.end(batch, NOT_RUN)
                return
            self.kept.created(batch, found.id, sure=found.sure)

    async def _surely(self, sent: Sent) -> Sent:
        """With its id. Raises: ProviderError, where it never came to be."""
        if sent.id:
            return sent
        found = await self._persist(lambda: self._find(sent))
        if not found:
            self.kept.drop(sent.name)
            raise OverloadedError(f"{sent.model}: the batch could not be created. Run it again later.")
        self.kept.created(sent.name, found.id, sure=found.sure)
        return sent._replace(id=found.id, state=SENT if found.sure else PRESUMED)

    async def _ended(self, sent: Sent) -> Progress:
        """How it ended; until then it is told how it goes on."""
        service, pause, told, at = self.services[sent.model], FIRST, "", 0.0
        doubt = Doubt(self.clock)
        while True:
            progress = await self._persist(lambda: _looked(service, sent.id))
            words, now = _told(sent, progress), self.clock()
            if (progress.ended and not progress.late) or words != told or now - at >= EVERY:
                self.tell(f"  {words}, {span(time.time() - sent.begun)}")
                told, at = words, now
            if progress.ended and (not progress.late or doubt.settled()):
                return progress
            if not progress.late:
                doubt = Doubt(self.clock)
            await self.sleep(pause)
            pause = min(pause * GROWTH, LONGEST)

    async def cancel(self) -> int:
        """Cancel all that are under way, and wait for what they leave; how many there were. What is only presumed to
        be ours goes on. Raises: ProviderError."""
        under_way = [one for one in self.kept.open() if one.model in self.services]
        for one in under_way:
            if one.state == PRESUMED:
                self.tell(
                    f"  batch {one.id} of {one.model} is not cancelled: when ours was sent no reply came, and this one "
                    f"is of its time and size, but may be somebody else's. If it is yours, cancel {one.id} at the "
                    "provider; the same command takes up what comes of it"
                )
        sent = [one for one in under_way if one.state != PRESUMED]
        for one in sent:
            await self._cancelled(one)
        for one in sent:
            await self.to_its_end(one.name)
        return len(sent)

    async def _cancelled(self, sent: Sent) -> None:
        """Providers refuse to cancel what has ended."""
        service, doubt = self.services[sent.model], Doubt(self.clock)
        while (progress := await self._persist(lambda: _looked(service, sent.id))).status == UNKNOWN:
            if doubt.settled():
                return
            await self.sleep(LONGEST / 2)
        if not progress.ended:
            await self._persist(lambda: service.cancel(sent.id))

    async def _results(self, sent: Sent, progress: Progress) -> Read:
        """All results on record, or what is there of them after they were read again for a while.

        A line that is none twice, among others that are read, stays so.
        """
        doubt, pause, before = Doubt(self.clock), AGAIN, Read(0, 0, ())
        names = set(self.kept.names(sent.name))
        while True:
            read = await self._persist(lambda: self._read(sent, names, progress))
            left, _ = self.kept.tally(sent.name)
            whole = not left or self._gone(sent, progress) != MISSING or _strangers(sent, read)
            spoiled = read.ours > 0 and read.bad == before.bad and len(read.bad) >= left
            if whole or spoiled or progress.late or doubt.settled():
                break
            self.tell(f"  {left:,} results of batch {sent.id} can't be read yet; they are read again in {pause:.0f} s")
            await self.sleep(pause)
            pause, before = min(pause * 2, LONGEST), read
        if not whole:
            self.tell(f"  {left:,} results of batch {sent.id} can't be read. They count as paid, and are asked again")
        return read

    async def _read(self, sent: Sent, names: Collection[str], progress: Progress) -> Read:
        """Reads the results once. Those that the provider does not know are none."""
        chunk: list[tuple[str, Reply]] = []
        ours, others, bad, place = 0, 0, [], 0
        try:
            async for name, reply in self.services[sent.model].results(progress):
                place += 1
                if reply.gone == MISSING:
                    bad.append(place)
                elif name not in names:
                    others += 1
                else:
                    ours += 1
                    chunk.append((name, reply))
                if len(chunk) >= CHUNK:
                    self.kept.keep(sent.name, chunk)
                    chunk = []
        except UnknownModelError as error:
            self.tell(f"  the results of batch {sent.id} are not there: {error}")
        self.kept.keep(sent.name, chunk)
        return Read(ours, others, tuple(bad))

    def _gone(self, sent: Sent, progress: Progress) -> str:
        """What became of the requests without a reply. Only by the provider's own counts were they not run."""
        _, paid = self.kept.tally(sent.name)
        if paid < progress.done:
            return MISSING
        if progress.status in ENDINGS:
            return ENDINGS[progress.status]
        counted = progress.done + progress.failed >= max(progress.total, sent.size)
        return NOT_RUN if counted else MISSING

    async def _find(self, sent: Sent, tried: Collection[str] = ()) -> Found | None:
        names = set(self.kept.names(sent.name))
        known = self.kept.ids() | {*tried}
        return await self.services[sent.model].find(sent.name, names, sent.begun, known)

    def _open(self, batch: str) -> list[Sent]:
        """It, unless it has ended."""
        return [sent for sent in self.kept.open() if sent.name == batch]

    async def _persist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What `ask` gives, once the provider answers. Raises: ProviderError that does not pass, or not in time."""
        pause, until = 0.5, self.clock() + PATIENCE
        while True:
            try:
                return await ask()
            except ProviderError as error:
                if not error.passing or self.clock() >= until:
                    raise
                wait = min(error.retry_after or pause * random.uniform(0.75, 1.25), LONGEST * 5)
                if pause > 1:
                    self.tell(f"  {error} It is asked again in {wait:.0f} s; the batch goes on.")
            await self.sleep(wait)
            pause = min(pause * 2, LONGEST)


async def _looked(service: Service, id: str) -> Progress:
    """How far it is; a batch that the provider does not know has perhaps ended, without a reply."""
    try:
        return await service.look(id)
    except UnknownModelError:  # what a 404 mostly means
        return Progress(UNKNOWN, True, 0, 0, 0, late=True)


def _strangers(sent: Sent, read: Read) -> bool:
    return sent.state == PRESUMED and read.others > 0 and not read.ours


def _status(progress: Progress) -> int:
    """As what a refusal of the whole batch counts: too much in the queue passes, a file that is wrong does not."""
    return TOO_MANY if "token_limit" in str(progress.refused) else 400


def _told(sent: Sent, progress: Progress) -> str:
    counts = f"{progress.done:,} done, {progress.failed:,} failed of {progress.total or sent.size:,}"
    presumed = ", presumed to be ours," if sent.state == PRESUMED else ""
    return f"{sent.stages}: batch {sent.id}{presumed} of {sent.model}: {progress.status.replace('_', ' ')}, {counts}"
