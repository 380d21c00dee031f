"""Gathers calls until all who make them wait, sends them as batches, and hands back what comes of them.

A call of a stage waits here until every other row has come as far, or to its end; so each stage of all rows is one
batch for each model. That all have come as far shows in that nothing has stirred for a while: no call was made, no
reply handed over, no page is being fetched. Were it told too early, the calls would be spread over two batches.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from research.errors import ResearchError
from research.llm.batching.kept import Kept
from research.llm.batching.service import Reply, Service
from research.llm.batching.watching import Watch
from research.llm.wires import Encoded

LOOK = 0.05  # seconds between looks at whether something stirs
AT_ONCE = 16  # replies that are handed over in one go
BUSY = 64  # searches and fetches at once, beyond which no reply is handed over


Part = list[tuple[str, str, bytes]]  # of what waits: what one batch is made of, each as (name, stage, line)


class Wanted(NamedTuple):
    """A call: its name on record, the model and the stage that it is of, and what is sent."""

    name: str
    model: str
    stage: str
    encoded: Encoded


@dataclass
class Collector:
    """`services` are by the models' names; `busy` counts what else the rows have under way. `tell` gets progress.
    `check` raises what forbids further calls.

    `quiet`: seconds without a stir until batches are sent. Use it in `async with`.
    """

    services: Mapping[str, Service]
    kept: Kept
    busy: Callable[[], int] = lambda: 0
    tell: Callable[[str], None] = lambda _: None
    check: Callable[[], None] = lambda: None
    quiet: float = 1.0
    watch: Watch = field(init=False)
    _taken: set[str] = field(default_factory=set)  # names of calls that are made, or were answered
    _watched: dict[str, asyncio.Event] = field(default_factory=dict)  # batches, and that they have ended
    _waiting: dict[str, Wanted] = field(default_factory=dict)
    _futures: dict[str, asyncio.Future[tuple[Reply, bool]]] = field(default_factory=dict)
    _ready: deque[str] = field(default_factory=deque)  # names whose replies are on record
    _used: set[str] = field(default_factory=set)
    _calm: float = 0.0  # seconds since something stirred, without those in which nothing could
    _ours: set[str] = field(default_factory=set)  # batches that this process has sent
    _broken: BaseException | None = None
    _turns: dict[str, asyncio.Lock] = field(default_factory=dict)
    _work: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watch = Watch(self.services, self.kept, self.tell)

    async def __aenter__(self) -> Collector:
        """Takes up the batches on record.

        Raises: ProviderError, where it can't be found out what became of one that was being sent.
        """
        await self.watch.recover()
        for sent in self.kept.open():
            if sent.model in self.services:
                self._follow(sent.name)
        self._begin(self._gather())
        self._begin(self._hand_over())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def name(self, words: str) -> str:
        """For a call that sends these words, told by their digest: the first name that is free."""
        numbers = itertools.count(self.kept.used(words) + 1)
        name = next(name for number in numbers if (name := f"{words}-{number}") not in self._taken)
        self._taken.add(name)
        return name

    def free(self, name: str) -> None:
        """Nobody waits for this call any more; whoever sends the same words gets what comes of it."""
        self._taken.discard(name)

    def sent(self, name: str) -> bool:
        """Whether the provider has it, or may have it."""
        return self.kept.find(name) is not None

    async def reply(self, wanted: Wanted) -> tuple[Reply, bool]:
        """What came of a call, and whether it was this process that sent it.

        Raises: ProviderError and StoreError, where nothing is known of that.
        """
        if self._broken is not None:
            raise copy.copy(self._broken)
        future = asyncio.get_running_loop().create_future()
        self._futures[wanted.name] = future
        found = self.kept.find(wanted.name)
        if found is None:
            self._waiting[wanted.name] = wanted
        elif found[1] is not None:
            self._ready.append(wanted.name)
        else:
            self._follow(found[0])
        self._stir()
        try:
            reply: tuple[Reply, bool] = await future
            return reply
        finally:
            self._futures.pop(wanted.name, None)
            self._waiting.pop(wanted.name, None)

    def use_up(self) -> None:
        """All rows have ended: the replies that they got are not to be got again."""
        self.kept.use_up(self._used)
        self._used.clear()

    def _stir(self) -> None:
        self._calm = 0.0

    def _follow(self, batch: str) -> None:
        """Have it watched, if it is not yet."""
        if batch not in self._watched:
            self._watched[batch] = asyncio.Event()
            self._begin(self._watch(batch))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._work.append(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        """Where the work itself fails (the record can't be kept, or a bug), all who wait are told."""
        self._work.remove(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail([*self._futures], error)
            self._broken = error

    async def _gather(self) -> None:
        looked = time.monotonic()
        while True:
            await asyncio.sleep(LOOK)
            now = time.monotonic()
            self._calm += min(now - looked, 2 * LOOK)  # where this process was held up, so was whatever would stir
            looked = now
            if self._ready or self.busy():
                self._stir()
            elif self._waiting and self._calm >= self.quiet:
                self._flush()

    def _flush(self) -> None:
        """Send all that waits, a batch for each model, or more where one would hold too much."""
        wanted, self._waiting = list(self._waiting.values()), {}
        try:
            self.check()
        except ResearchError as error:
            self._fail([one.name for one in wanted], error)
            return
        for model in dict.fromkeys(one.model for one in wanted):
            service, calls = self.services[model], [one for one in wanted if one.model == model]
            cut = parts(service, calls, self.watch.narrow.get(model, service.most))
            if model in self.watch.narrow:
                self._begin(self._one_by_one(model, cut))
            else:
                for part in cut:
                    self._begin(self._send(model, part))

    async def _one_by_one(self, model: str, cut: list[Part]) -> None:
        """The provider's queue was full: each batch waits until there is no other."""
        async with self._turns.setdefault(model, asyncio.Lock()):
            for part in cut:
                for sent in self.kept.open():
                    if sent.model == model and sent.name in self._watched:
                        await self._watched[sent.name].wait()
                await self._send(model, part)

    async def _send(self, model: str, part: Part) -> None:
        """Sends a batch of (name, stage, line), and waits for it."""
        batch, names = f"research-{uuid4().hex[:20]}", [name for name, _, _ in part]
        self._ours.add(batch)
        self._watched[batch] = asyncio.Event()
        try:
            stages = Counter(stage for _, stage, _ in part)
            self.kept.begin(batch, model, names, ", ".join(stages))
            await self.watch.create(batch, [line for _, _, line in part])
        except ResearchError as error:
            self._watched.pop(batch).set()
            self._fail(names, error)
            return
        finally:
            part.clear()  # a stage of all rows takes much room
        await self._watch(batch)

    async def _watch(self, batch: str) -> None:
        names = self.kept.names(batch)
        try:
            await self.watch.to_its_end(batch)
        except ResearchError as error:
            self._fail(names, error)
            return
        finally:
            self._watched.pop(batch).set()
        self._ready.extend(name for name in names if name in self._futures)

    def _fail(self, names: Iterable[str], error: BaseException) -> None:
        for name in names:
            future = self._futures.get(name)
            if future is not None and not future.done():
                future.set_exception(copy.copy(error))  # each caller adds its own notes

    async def _hand_over(self) -> None:
        """Replies go out a few at a time, and not faster than the web keeps up with what follows from them."""
        while True:
            await asyncio.sleep(LOOK / 2)
            for _ in range(min(AT_ONCE, len(self._ready)) if self.busy() < BUSY else 0):
                name = self._ready.popleft()
                future, found = self._futures.get(name), self.kept.find(name)
                if future is not None and not future.done() and found is not None and found[1] is not None:
                    self._used.add(name)
                    future.set_result((found[1], found[0] in self._ours))
                elif future is not None and not future.done() and found is not None:
                    self._follow(found[0])  # its reply was found broken
                self._stir()


def parts(service: Service, wanted: Iterable[Wanted], most: int) -> list[Part]:
    """The calls, cut where a batch would hold more than `most` or grow too large."""
    cut: list[Part] = []
    size = 0
    for one in wanted:
        line = service.line(one.name, one.encoded)
        size += len(line) + 1
        if not cut or len(cut[-1]) == most or size > service.largest:
            cut.append([])
            size = len(line) + 1
        cut[-1].append((one.name, one.stage, line))
    return cut
