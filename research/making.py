"""Makes what a piece of work gives, once among all processes, and keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .artifacts import Artifact
from .errors import WebError
from .journal import Journal
from .ledger import Receipt
from .steps import Calls, Step, Take
from .store import PAGE, Store
from .trying import tried

Made = tuple[Artifact, dict[str, Any], bool]  # with its receipt, and whether it was made rather than found


class Work(NamedTuple):
    """A piece of work. `take` takes up its parts; `fresh` tells that its stage is made anew, `anew` that it is."""

    step: Step
    key: str
    inputs: Mapping[str, Artifact]
    store: Store
    journal: Journal
    take: Take
    fresh: bool = False
    anew: bool = False

    async def made(self) -> Made:
        """What it gives, or what another process has made of it meanwhile.

        Raises: what the work raises; such failures are never stored.
        """
        kind = self.step.stage.kind
        async with self.store.claim(self.key):
            if not self.anew and (found := self.store.find(self.key)) is not None:
                return Artifact(found.data, kind.gives, (self.key,)), found.receipt, False
            receipt = Receipt()
            values = {name: artifact.value for name, artifact in self.inputs.items()}
            needs = needs_of(self.inputs)
            calls = Calls(self.step, needs, self.take, self.store, self.journal, receipt, self.fresh)
            try:
                value = await tried(self.step, values, receipt, calls, self.journal)
            except WebError:
                calls.forget_failures()
                raise
            artifact = Artifact.of(value, kind.gives, (self.key,))
            plain = receipt.plain()
            if receipt.passing:
                calls.forget_failures()
            if not calls.lacking and not receipt.passing:
                self.store.put(self.key, artifact.data, plain, PAGE if kind.refetchable else None)
            return artifact, plain, True


def needs_of(inputs: Mapping[str, Artifact]) -> list[str]:
    """The keys of the work that the inputs came from."""
    return sorted({need for artifact in inputs.values() for need in artifact.needs})
