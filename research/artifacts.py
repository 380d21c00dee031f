"""Values on their way through a run: bytes with their digest, decoded when looked at; and flows of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from .kinds import element, follow
from .store import digest

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def encode(value: Any, kind: Any) -> bytes:
    """`value` as the JSON that is stored for type `kind`; the same bytes for the same value."""
    if kind is Any:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8", "replace")
    return _adapter(kind).dump_json(value)


class Artifact:
    """An immutable value. `ref` is its digest, `needs` the keys of the work that it came from."""

    def __init__(self, data: bytes, kind: Any, needs: Sequence[str] = ()) -> None:
        self.data = data
        self.kind = kind
        self.needs = tuple(needs)

    @classmethod
    def of(cls, value: Any, kind: Any, needs: Sequence[str] = ()) -> Artifact:
        artifact = cls(encode(value, kind), kind, needs)
        artifact.value = value  # what was just encoded need not be decoded
        return artifact

    @cached_property
    def ref(self) -> str:
        return digest(self.data)

    @cached_property
    def value(self) -> Any:
        return json.loads(self.data) if self.kind is Any else _adapter(self.kind).validate_json(self.data)

    def at(self, path: Sequence[str], kind: Any) -> Artifact:
        """The part of it at the end of `path`, of type `kind`."""
        return self if not path else Artifact.of(follow(self.value, path), kind, self.needs)


def likely(whole: Artifact, top: int) -> list[Artifact]:
    """The first `top` items of a list, as a stage that fans out over it is given them."""
    values = [whole.value] if isinstance(whole.value, str) else list(whole.value)[:top]
    return [Artifact.of(value, element(whole.kind) or whole.kind, whole.needs) for value in values]


@dataclass(eq=False, repr=False)
class Flow:
    """A result on its way: one artifact, or many that arrive in any order and have a rank.

    `made` is set as soon as some of it has to be made rather than reused. `waited` are the keys of work that gave
    nothing to it, and that its end waits for all the same.
    """

    kind: Any  # of one artifact
    many: bool = False
    made: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    waited: list[str] = field(default_factory=list)
    joined: Artifact | None = None  # of many, once somebody has taken it whole
    _arrived: dict[int, Artifact] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def given(cls, value: Any, kind: Any) -> Flow:
        """What is there from the start."""
        flow = cls(kind)
        flow.add(0, Artifact.of(value, kind))
        flow.end()
        return flow

    def add(self, rank: int, artifact: Artifact) -> None:
        self._arrived[rank] = artifact
        self._wake()

    def end(self) -> None:
        self.ended.set()
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def arrivals(self) -> AsyncIterator[tuple[int, Artifact]]:
        """Each artifact with its rank, as soon as it is there."""
        seen = 0
        while True:
            news = self._news
            ready = list(self._arrived.items())[seen:]
            seen += len(ready)
            for pair in ready:
                yield pair
            if self.ended.is_set() and seen == len(self._arrived):
                return
            if not ready:
                await news.wait()

    async def in_rank_order(self) -> list[Artifact]:
        """All artifacts, once the last has arrived."""
        await self.ended.wait()
        return [self._arrived[rank] for rank in sorted(self._arrived)]


async def first_of(*events: asyncio.Event) -> None:
    """Waits for the first of `events`."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
