"""A batch of rows stage by stage: the calls of a stage, of all rows, go to their provider as one batch at half price.

This is what a fixed pipeline can do. A loop of a model and its tools can't: each of its turns needs the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from research.errors import UsageError
from research.llm.batching.collector import Collector
from research.llm.batching.kept import Kept, Sent
from research.llm.batching.model import BatchedModel
from research.llm.batching.service import Service, Talk
from research.llm.providers import BUILTIN, PROVIDERS, check_key, endpoint

if TYPE_CHECKING:
    from research.limits.budget import Budget
    from research.llm.endpoint import Endpoint
    from research.pipeline import Pipeline
    from research.records import Hit, Page
    from research.tiers import Tiers
    from research.web.base import Web

ROWS = 2_000  # at once: each stage of so many is one batch
SPARE = 256  # open files besides the journals of the rows
FILE = "provider.db"  # in the folder of a batch
THEIRS = ("anthropic", "openai")  # of the table of providers, those whose batches are spoken; the user's own may be
PATHS = {"openai-chat": "/chat/completions", "openai-responses": "/responses"}
HOW = "the same command takes it up again, --cancel-provider-batch cancels it"


def stagewise(pipeline: Pipeline) -> Pipeline:
    """`pipeline` with no limit of time and width on its models, which are not asked one by one.

    Raises: UsageError where a stage is a loop.
    """
    loops = [stage.name for stage in pipeline.stages.values() if stage.parts or stage.tools]
    if loops:
        raise UsageError(
            f"--provider-batch: stage {loops[0]} of {pipeline.name} is a loop of a model and its tools. Each turn "
            "needs the one before, so each would be a batch of its own, of up to 24 hours. Use a pipeline of fixed "
            "stages, such as -p fixed, or leave --provider-batch out"
        )
    free = {"timeout": None, "parallel": None, "patience": None, "retries": 0}
    stages = {
        name: stage._replace(policy=stage.policy.model_copy(update=free)) if stage.kind.model else stage
        for name, stage in pipeline.stages.items()
    }
    return pipeline._replace(stages=stages)


def rows_at_once(wanted: int | None) -> int:
    """As many as are wanted, within the files that a process may have open. That limit is raised as far as may be."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    rows = wanted or ROWS
    if soft != resource.RLIM_INFINITY and soft < rows + SPARE:
        soft = rows + SPARE if hard == resource.RLIM_INFINITY else min(hard, rows + SPARE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        rows = max(1, min(rows, soft - SPARE))
    return rows


def under_way(folder: Path) -> list[Sent]:
    """The batches in the folder of a batch that have not ended."""
    if not (folder / FILE).exists():
        return []
    kept = Kept(folder / FILE)
    try:
        return kept.open()
    finally:
        kept.close()


def service(here: Endpoint) -> tuple[Service, Talk]:
    """The batches of an endpoint's provider, and the connections that are to be closed."""
    if here.wire == "anthropic":
        from research.llm.batching.anthropic import AnthropicBatches
        from research.llm.wires.anthropic import VERSION

        talk = Talk(here, {"anthropic-version": VERSION})
        return AnthropicBatches(talk), talk
    from research.llm.batching.openai import OpenAIBatches

    talk = Talk(here)
    return OpenAIBatches(talk, PATHS[here.wire]), talk


@dataclass
class Stagewise:
    """The models of a batch, whose calls are gathered; open it with `async with`. `tell` gets how it goes on,
    `check` raises what forbids further calls."""

    models: Mapping[str, BatchedModel]
    collector: Collector
    talks: list[Talk]
    tell: Callable[[str], None]
    _busy: list[int] = field(default_factory=lambda: [0])
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @classmethod
    def of(
        cls, names: Iterable[str], tiers: Tiers, folder: Path,
        tell: Callable[[str], None], check: Callable[[], None] = lambda: None,
    ) -> Stagewise:  # fmt: skip
        """`names` are tiers, or "provider:model".

        Raises: UsageError for a model whose provider takes no batches, or a missing key; StoreError.
        """
        chosen = {name: _endpoint(tiers.named(name), tiers) for name in names}
        services: dict[str, Service] = {}
        talks = []
        for here in chosen.values():
            if here.name not in services:
                services[here.name], talk = service(here)
                talks.append(talk)
        busy = [0]
        collector = Collector(services, Kept(folder / FILE, tell), lambda: busy[0], tell, check)
        models = {name: BatchedModel(here, collector) for name, here in chosen.items()}
        return cls(models, collector, talks, tell, busy)

    def watched(self, web: Web) -> Web:
        """`web`, whose pages are waited for before a stage counts as complete."""
        return _Watched(web, self._busy)

    async def __aenter__(self) -> Stagewise:
        """Takes up what is under way. Raises: ProviderError, where that can't be found out."""
        self._stack.callback(self.collector.kept.close)
        for talk in self.talks:
            self._stack.push_async_callback(talk.aclose)
        try:
            await self._stack.enter_async_context(self.collector)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sent in self.collector.kept.open():
            self.tell(f"Batch {sent.id or sent.name} of {sent.model} ({sent.stages}) goes on: {HOW}")
        await self._stack.aclose()

    def begins(self, budget: Budget) -> None:
        """What the budget holds for calls that were never sent is free again."""
        budget.tidy(self.collector.kept.unused())

    def has_ended(self, budget: Budget) -> None:
        """All rows have: what failed is asked anew by the next command."""
        self.collector.use_up()
        budget.tidy(self.collector.kept.unused())

    async def cancel(self) -> int:
        """Cancel all batches on record, and keep what they leave; how many there were. Raises: ProviderError."""
        try:
            await self.collector.watch.recover()
            return await self.collector.watch.cancel()
        finally:
            for talk in self.talks:
                await talk.aclose()
            self.collector.kept.close()


def _endpoint(model: str, tiers: Tiers) -> Endpoint:
    name = model.partition(":")[0]
    if model == BUILTIN or (name in PROVIDERS and name not in THEIRS):
        raise UsageError(
            f"--provider-batch: {model} is not to be had in batches here; {' and '.join(THEIRS)} are, and providers of "
            "your own that speak either's interface. Choose models with --cheap and --capable"
        )
    check_key(model, tiers.settings, tiers.environment)
    return endpoint(model, tiers.settings, tiers.environment)


@dataclass
class _Watched:
    """A web that counts what is being asked of it."""

    inner: Web
    busy: list[int]

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def source(self) -> str:
        return self.inner.source

    @property
    def date(self) -> str | None:
        return self.inner.date

    async def search(self, query: str, top: int) -> list[Hit]:
        """As `Web.search`."""
        return await self._counted(self.inner.search(query, top))  # type: ignore[no-any-return]

    async def fetch(self, url: str) -> Page:
        """As `Web.fetch`."""
        return await self._counted(self.inner.fetch(url))  # type: ignore[no-any-return]

    async def _counted(self, asked: Any) -> Any:
        self.busy[0] += 1
        try:
            return await asked
        finally:
            self.busy[0] -= 1
