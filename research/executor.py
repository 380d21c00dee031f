"""Runs a pipeline: what in which order, how wide, and whether it must be done at all.

In the terms of Mokhov, Mitchell and Peyton Jones, "Build systems à la carte" (2018), it is
a suspending scheduler with shallow constructive traces. `want` decides order: each result
is built once, and whoever needs it waits. `_build` decides width: one call, or one for
each item. `reuse` decides whether: the key of a piece of work is the digest of its recipe
and of the *contents* of its direct inputs, so that unchanged content cuts off early.

It knows nothing of search or of models: a `Step` carries the recipe and the work.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from .artifacts import Artifact, Flow, first_of, likely
from .errors import BudgetError, NotRecordedError, ResearchError, first_cause
from .flights import Flights
from .journal import Journal
from .kinds import INPUTS, attribute, element
from .making import Made, Work, needs_of
from .pipeline import Pipeline, Source, Stage
from .selection import Selection, Trials, best
from .steps import Step
from .store import Store, key_of

__all__ = ["Executor", "Made", "Step"]


@dataclass(eq=False, repr=False)
class Executor:
    """Runs one pipeline once. `flights` is shared by all runs of a process on one store."""

    pipeline: Pipeline
    steps: Mapping[str, Step]
    store: Store
    journal: Journal
    fresh: Collection[str] = ()  # names of stages to be made anew, whatever the store holds
    flights: Flights[Made] = field(default_factory=Flights)
    _flows: dict[str, Flow] = field(default_factory=dict)
    _anew: set[str] = field(default_factory=set)  # keys of fresh stages that this run has made
    _group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)

    async def run(self, given: Mapping[str, Any]) -> Artifact:
        """The pipeline's answer, from what every run is given (`question`, `as_of`, `web_date`).

        Raises: the first error that could not be left behind, with all else cancelled.
        """
        self._flows = {name: Flow.given(value, INPUTS[name]) for name, value in given.items()}
        try:
            async with self._group:
                answer = await self._whole(Source(self.pipeline.answer))
        except* ResearchError as group:
            raise first_cause(group) from None
        return answer

    def want(self, name: str) -> Flow:
        """The flow of a result. Whoever asks first starts its stage."""
        if name not in self._flows:
            stage = self.pipeline.giving(name)
            assert stage is not None, f"loading a pipeline lets no unknown name through: {name}"
            self._flows[name] = Flow(stage.kind.gives, many=stage.each is not None)
            self._group.create_task(self._build(stage, self._flows[name]), name=stage.name)
        return self._flows[name]

    async def _build(self, stage: Stage, flow: Flow) -> None:
        step = self.steps[stage.name]
        for source in stage.sources:
            self.want(source.name)
        early = self._group.create_task(self._prefetch(step, flow)) if stage.prefetch else None
        inputs = {name: await self._whole(source) for name, source in stage.takes.items()}
        if stage.each is None:
            flow.add(0, await self._one(step, inputs, flow))
        elif stage.want is None:
            await self._each(step, inputs, flow)
        else:
            await self._best(step, inputs, flow)
        flow.end()
        if early is not None:
            early.cancel()

    async def _one(self, step: Step, inputs: Mapping[str, Artifact], flow: Flow) -> Artifact:
        """One call, or what stands for its result if it fails."""
        kind = step.stage.kind
        try:
            return await self.reuse(step, inputs, flow, 0)
        except ResearchError as error:
            if kind.instead is None:
                raise
            self.journal.write("dropped", stage=step.stage.name, item=0, reason=str(error))
            value = kind.instead({name: artifact.value for name, artifact in inputs.items()}, error)
            return Artifact.of(value, kind.gives, [need for artifact in inputs.values() for need in artifact.needs])

    async def _whole(self, source: Source) -> Artifact:
        """A result as one artifact: a fanned-out one joined, once all of it is there."""
        flow = self.want(source.name)
        artifacts = await flow.in_rank_order()
        stage = self.pipeline.giving(source.name)
        if not flow.many or stage is None:
            return artifacts[0].at(source.path, attribute(flow.kind, source.path))
        if flow.joined is None:
            joined = stage.kind.join([artifact.value for artifact in artifacts], stage.params)
            needs = [*(key for artifact in artifacts for key in artifact.needs), *flow.waited]
            flow.joined = Artifact.of(joined, stage.type, needs)
        return flow.joined.at(source.path, attribute(stage.type, source.path))

    async def _items(self, source: Source) -> AsyncIterator[tuple[int, Artifact]]:
        """The artifacts that a stage fans out over, each as soon as it is there."""
        flow = self.want(source.name)
        if flow.many and element(flow.kind) is None:
            kind = attribute(flow.kind, source.path)
            async for rank, artifact in flow.arrivals():
                yield rank, artifact.at(source.path, kind)
            return
        whole = await self._whole(source)
        kind = element(whole.kind)
        for rank, value in enumerate(whole.value):
            yield rank, Artifact.of(value, kind, whole.needs)

    async def _each(self, step: Step, inputs: Mapping[str, Artifact], flow: Flow) -> None:
        """One call for each item, started as the items arrive."""
        slots = asyncio.Semaphore(step.stage.policy.parallel or 1_000_000)
        failures: list[ResearchError] = []
        assert step.stage.each is not None

        async def one(rank: int, item: Artifact) -> None:
            async with slots:
                try:
                    when = (await self._ahead(step.stage, inputs)).get(item.ref)
                    artifact, _ = await self._taken(step, {**inputs, step.stage.item: item}, rank, flow, when=when)
                except ResearchError as error:
                    if not error.of_item:
                        raise
                    failures.append(error)
                    self._drop(step.stage, rank, error)
                    return
            if (reason := _useless(step.stage, artifact)) is None:
                flow.add(rank, artifact)
            else:
                self.journal.write("dropped", stage=step.stage.name, item=rank, reason=reason)

        total = 0
        async with asyncio.TaskGroup() as group:
            async for rank, item in self._items(step.stage.each):
                total += 1
                group.create_task(one(rank, item))
        flow.waited += self.want(step.stage.each.name).waited
        if total and len(failures) == total:
            raise next((error for error in failures if isinstance(error, BudgetError)), failures[0])

    def _drop(self, stage: Stage, rank: int, error: ResearchError) -> None:
        cause = {"cause": "budget"} if isinstance(error, BudgetError) else {}
        self.journal.write("dropped", stage=stage.name, item=rank, reason=str(error), **cause)

    async def _best(self, step: Step, inputs: Mapping[str, Artifact], flow: Flow) -> None:
        """The best `want` items that are of use; which ones is an artifact too, and kept."""
        stage = step.stage
        assert stage.each is not None
        assert stage.want is not None
        arrived = {rank: item async for rank, item in self._items(stage.each)}
        items = [arrived[rank] for rank in sorted(arrived)]
        parts = {
            "selection": "1", **step.recipe, "want": stage.want, "items": [item.ref for item in items],
            "inputs": {name: artifact.ref for name, artifact in inputs.items()},
        }  # fmt: skip
        key = key_of(parts)
        found = None if stage.name in self.fresh else self.store.find(key)
        earlier = None if found is None else Selection.parse(found.data, found.receipt)

        listed = {*(key for item in items for key in item.needs), *self.want(stage.each.name).waited}
        trials, ahead = Trials(sorted(listed), earlier), await self._ahead(stage, inputs)
        over: dict[int, BudgetError] = {}  # items that the budget left out: the next run may have more

        async def attempt(rank: int) -> Artifact:
            given = {**inputs, stage.item: items[rank]}
            when = {**ahead.get(items[rank].ref, {}), **trials.begin(rank)}
            try:
                artifact, receipt = await self._taken(step, given, rank, flow, when=when)
            except BudgetError as error:
                over[rank] = error
                raise
            if not trials.knows(rank) and (reason := _useless(stage, artifact)) is not None:
                trials.useless[rank] = {"key": artifact.needs[0], "needs": needs_of(given), **when, "receipt": receipt}
                raise _OfNoUse(reason)
            flow.add(rank, artifact)
            return artifact

        def dropped(rank: int, reason: str) -> None:
            self._drop(stage, rank, over.get(rank, _OfNoUse(reason)))

        selection = trials.of(await best(len(items), stage.want, attempt, dropped, stage.policy.patience, earlier))
        flow.waited += [*self.want(stage.each.name).waited, *(work["key"] for work in trials.useless.values())]
        told = {"chosen": sorted(selection.chosen), "of": len(items), **selection.receipt()}
        self.journal.write("selected", stage=stage.name, **told)
        if over and not selection.chosen:
            raise next(iter(over.values()))
        same = earlier is not None and selection.chosen == earlier.chosen
        if selection.chosen and not same and not over:
            self.store.put(key, selection.data(), selection.receipt())

    async def _prefetch(self, step: Step, flow: Flow) -> None:
        """Work ahead on likely items, while what decides about them is still being made."""
        stage = step.stage
        assert stage.prefetch is not None
        assert stage.each is not None
        await first_of(self.want(stage.each.name).made, self.want(stage.each.name).ended)
        if self.want(stage.each.name).ended.is_set():
            return
        whole = await self._whole(stage.prefetch.source)
        inputs = {name: await self._whole(source) for name, source in stage.takes.items()}

        async def one(item: Artifact) -> None:
            try:
                await self.reuse(step, {**inputs, stage.item: item}, flow, None)
            except ResearchError as error:
                if not error.of_item:
                    raise

        async with asyncio.TaskGroup() as group:
            for item in likely(whole, stage.prefetch.top):
                group.create_task(one(item))

    async def _ahead(self, stage: Stage, inputs: Mapping[str, Artifact]) -> dict[str, dict[str, list[str]]]:
        """The items that are worked on ahead, by ref, with the keys of what must be there for that. What was ahead
        of a cold run is told by a warm one too, so that both tell the same time as if cold."""
        if stage.prefetch is None or not self.want(stage.prefetch.source.name).ended.is_set():
            return {}
        whole = await self._whole(stage.prefetch.source)
        keys = sorted({*whole.needs, *needs_of(inputs)})
        return {item.ref: {"ahead": keys} for item in likely(whole, stage.prefetch.top)}

    async def reuse(self, step: Step, inputs: Mapping[str, Artifact], flow: Flow, item: int | None) -> Artifact:
        """What the step makes of `inputs`: from the store if it is there, else made and kept.

        `item` is the rank in a fan-out, None for work done ahead.
        Raises: what the work raises; such failures are never stored.
        """
        return (await self._taken(step, inputs, item, flow))[0]

    async def _taken(
        self, step: Step, inputs: Mapping[str, Artifact], item: int | None, flow: Flow, within: str = "",
        when: Mapping[str, Any] | None = None,
    ) -> tuple[Artifact, dict[str, Any]]:  # fmt: skip
        """As `reuse`, with the receipt; `within` is the key of the work that this is a part of, `when` what its line
        tells of when it could begin."""
        stage = step.stage
        parts = {**step.recipe, **{f"input {name}": artifact.ref for name, artifact in sorted(inputs.items())}}
        key = key_of(parts)
        line = {"stage": stage.name, "item": item, "key": key, "parts": parts, "needs": needs_of(inputs)}
        line |= {**(when or {}), **({"within": within} if within else {})}
        anew = stage.name in self.fresh and key not in self._anew
        if not anew and key not in self.flights and (found := self.store.find(key)) is not None:
            self.journal.write("reused", **line, ref=found.ref, receipt=found.receipt)
            return Artifact(found.data, stage.kind.gives, (key,)), found.receipt
        if step.recorded_only:
            what = ", ".join(str(artifact.value) for artifact in inputs.values() if isinstance(artifact.value, str))
            raise NotRecordedError(f"{stage.name}: not recorded, and only what is recorded may be used: {what}")
        flow.made.set()
        self._anew.add(key)
        self.journal.write("making", stage=stage.name, item=item)
        take = functools.partial(self._taken, flow=flow, within=key)
        work = Work(step, key, inputs, self.store, self.journal, take, fresh=stage.name in self.fresh, anew=anew)
        (artifact, receipt, made), first = await self.flights.join(key, work.made)
        self.journal.write("made" if made and first else "reused", **line, ref=artifact.ref, receipt=receipt)
        return artifact, receipt


class _OfNoUse(ResearchError):
    """A definite result that its stage has no use for."""

    of_item = True


def _useless(stage: Stage, artifact: Artifact) -> str | None:
    return None if stage.kind.dropped is None else stage.kind.dropped(artifact.value)
