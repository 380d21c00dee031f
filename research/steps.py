"""A stage bound to its work, and the further work that this work may call on.

Most steps make their result at once. One that finds its own way (a loop of a model and
its tools) is made of parts: turns, searches, pages. Each part is taken up as a stage's
work is, reused or made, kept and journalled, so that a loop which was stopped goes on
where it stopped. A part waits for no other work, so that nobody waits in a circle.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .artifacts import Artifact
from .errors import BudgetError, NotRecordedError, ResearchError, WebError
from .journal import Journal
from .ledger import Receipt
from .pipeline import Stage
from .store import Store, key_of


class Step(NamedTuple):
    """`recipe` is all that shapes a step's output besides its inputs; `parts` is what its work may call on."""

    stage: Stage
    recipe: Mapping[str, str]
    make: Callable[[Mapping[str, Any], Receipt, Calls], Awaitable[Any]]
    recorded_only: bool = False  # what is not in the store is an error, and is not made
    parts: Mapping[str, Step] = {}
    seconds_left: Callable[[], float | None] = lambda: None  # that the run has for it


class Done(NamedTuple):
    """What a part gave. `key` names the work, `receipt` tells what it took."""

    value: Any
    key: str
    receipt: Mapping[str, Any]


Take = Callable[[Step, Mapping[str, Artifact], int], Awaitable[tuple[Artifact, dict[str, Any]]]]


@dataclass(eq=False, repr=False)
class Calls:
    """The parts of one step's work, as they are called. `needs` are the keys of what the step was given.

    `lacking` tells that something was missing only because nothing new may be recorded;
    `busy` is for how many seconds at least one part was at work.
    """

    step: Step
    needs: Sequence[str]
    take: Take
    store: Store
    journal: Journal
    receipt: Receipt
    anew: bool = False
    lacking: bool = False
    busy: float = 0.0
    _failed: list[str] = field(default_factory=list)
    _count: int = 0
    _running: int = 0
    _since: float = 0.0

    async def __call__(self, name: str, inputs: Mapping[str, Any], after: Sequence[Done] = ()) -> Done:
        """The part `name` for these inputs; `after` is the work that led to it.

        A failure of the web is kept as well, for just this place, until the step has ended: a loop that is
        taken up again must find itself where it was.
        Raises: what the part's work raises.
        """
        part = self.step.parts[name]
        types = {**part.stage.kind.takes, **part.stage.kind.optional}
        needs = [done.key for done in after] or self.needs
        given = {one: Artifact.of(value, types.get(one, Any), needs) for one, value in inputs.items()}
        place = key_of({
            "failure": "1", "work": name, "after": [done.key for done in after], **part.recipe,
            "inputs": {one: artifact.ref for one, artifact in given.items()},
        })  # fmt: skip
        if part.stage.kind.web and not self.anew and (failed := self.store.find(place)) is not None and failed.data:
            self._failed.append(place)
            raise WebError(failed.data.decode())
        try:
            return await self._taken(name, given, needs)
        except ResearchError as error:
            if isinstance(error, NotRecordedError):
                self.lacking = True
            elif part.stage.kind.web and error.of_item and not isinstance(error, BudgetError):
                self._failed.append(place)
                self.store.put(place, str(error).encode("utf-8", "replace"), {})
            raise

    def forget_failures(self) -> None:
        """The step has ended, and may end otherwise another time: then its failures of the web are met anew."""
        for place in self._failed:
            self.store.put(place, b"", {})

    def tell(self, **what: Any) -> None:
        """A line of the journal about how the work goes on."""
        self.journal.write("step", stage=self.step.stage.name, **what)

    async def _taken(self, name: str, given: Mapping[str, Artifact], needs: Sequence[str]) -> Done:
        self._count += 1
        self._since = time.monotonic() if not self._running else self._since
        self._running += 1
        try:
            artifact, receipt = await self.take(self.step.parts[name], given, self._count)
        finally:
            self._running -= 1
            if not self._running:
                self.busy += time.monotonic() - self._since
        [key] = artifact.needs
        told = {"work": name, "key": key, "needs": sorted(needs), "receipt": receipt}
        self.receipt.nested.setdefault(key, told)  # taken up again, it came after what it came after the first time
        return Done(artifact.value, key, receipt)
