"""What the tools do: one session over one store, one web and one limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..api import asked
from ..app import App, Dates, load_pipeline
from ..artifacts import Artifact, Flow
from ..ceilings import caps_of
from ..errors import BudgetError, ResearchError, UsageError
from ..executor import Executor
from ..journal import Journal
from ..ledger import dollars, paid
from ..limits.budget import NANO, Budget, Hold
from ..records import Answer, Hit, Outcome, Page
from ..settings import Settings
from ..stages.investigate.sources import Sources
from ..tiers import Tiers
from .wording import say, wrong

if TYPE_CHECKING:
    from ..web.base import Web

SHOWN = 20_000  # characters of a page in one result
SNIPPET = 400  # characters
LOOP = "tool-use"  # the pipeline whose searches and pages these are

Work = Callable[..., Awaitable["Told"]]


class Told(NamedTuple):
    """The result of a call: text for a model, and where it is an answer, what a program wants of it."""

    text: str
    failed: bool = False
    data: Mapping[str, Any] | None = None


@dataclass
class Serving:
    """One session. What it spends together stays within the user's limit, of which `account` keeps count."""

    settings: Settings
    tiers: Tiers
    app: App
    web: Web
    any_address: bool = False
    sources: Sources = field(default_factory=Sources)
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        models = self.app.models.values()
        self.caps = caps_of(self.settings, paid=not all(self.tiers.prices.free(model.name) for model in models))
        self.account = Budget(self.caps._replace(calls=None, seconds=None))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Told:
        """What a tool gives; whatever goes wrong is a result that says so."""
        from ..evidence.untrusted import neutralised

        try:
            if problem := wrong(name, arguments):
                raise UsageError(problem)
            works: Mapping[str, Work] = {"ask": self.ask, "search": self.search, "fetch": self.fetch}
            return await works[name](**arguments)
        except ResearchError as error:
            return Told(neutralised(str(error)), failed=True)

    async def ask(self, question: str, pipeline: str = "", max_usd: float | None = None) -> Told:
        """Raises: ResearchError."""
        from ..evidence.untrusted import neutralised
        from ..rendering import plain

        text = asked(question)
        chosen = self.tiers.fitted(load_pipeline(pipeline or self.settings.pipeline))
        async with self._one:
            budget, hold = self._budget(max_usd)
            try:
                done = await self.app.ask(text, chosen, self.web, self.dates, budget=budget)
            finally:
                hold.settle(budget.most_spent())  # calls of a question that is cancelled are settled only later
                budget.close()
        answer, total = done.answer, paid(done.lines)
        for url in cited(answer):
            self.sources.add(url)
        words = self._fenced(plain(answer, 100).strip(), "answer")
        shown = say("ask", "answer", answer=words, paid=dollars(total.usd, total.unknown), run=done.run.id)
        sources = {citation.number: citation.fact.url for citation in answer.citations}
        data = {"run": done.run.id, "ending": str(answer.ending), "paid_usd": total.usd / NANO}
        listed = [{"number": number, "url": neutralised(url)} for number, url in sorted(sources.items())]
        return Told(shown, data={**data, "sources": listed})

    def _budget(self, max_usd: float | None) -> tuple[Budget, Hold]:
        """A question's own budget, and what is reserved for it of the session's.

        Raises: BudgetError where nothing is left.
        """
        caps = self.caps
        limits = [] if max_usd is None else [round(max_usd * NANO)]
        if caps.usd is not None:
            left = caps.usd - self.account.spent()[0]
            if left <= 0 < caps.usd:
                raise BudgetError(
                    f"budget reached: all of the {dollars(caps.usd)} of this session is spent. The user can start "
                    "`research mcp` again, or with a higher --max-usd"
                )
            limits.append(left)
        usd = min(limits, default=None)
        hold, _ = self.account.reserve(usd or 0, calls=0)
        return Budget(caps._replace(usd=usd)), hold

    async def search(self, query: str) -> Told:
        """Raises: ResearchError."""
        from ..evidence.untrusted import neutralised
        from ..output import clean

        query = " ".join(clean(query).split())
        shown = neutralised(query)
        hits: list[Hit] = await self._part("search", {"query": query})
        found = self.sources.found(query, hits)
        if not found:
            return Told(say("search", "nothing", query=shown))
        results = "\n".join(self._listed(source.hit) for source in found if source.hit is not None)
        return Told(say("search", "found", query=shown, results=results))

    def _listed(self, hit: Hit) -> str:
        dated = f" ({hit.date})" if hit.date else ""
        return self._fenced(f"{hit.title}{dated}\n{hit.url}\n{hit.snippet[:SNIPPET]}", "result")

    async def fetch(self, url: str, offset: int = 0) -> Told:
        """Raises: ResearchError."""
        source = self.sources.add(url) if self.any_address else self.sources.known(url)
        if source is None:
            return Told(say("fetch", "stranger"), failed=True)
        page: Page = await self._part("fetch", {"url": source.url})
        if page.outcome is not Outcome.OK:
            return Told(say("fetch", "unread", reason=page.outcome), failed=True)
        length = len(page.text)
        if offset >= length:
            return Told(say("fetch", "beyond", length=length, start=offset), failed=True)
        end = min(length, offset + SHOWN)
        head = " · ".join(filter(None, [page.title, page.site, page.date]))
        text = self._fenced(f"{head}\n{page.url}\n\n{page.text[offset:end]}", "page")
        return Told(say("fetch", "page", start=offset, end=end, length=length, text=text))

    async def _part(self, name: str, inputs: Mapping[str, str]) -> Any:
        """A search or a page, from the store or made, under the key that it has in every pipeline."""
        loop = load_pipeline(LOOP)
        stage = loop.stages["investigate"].parts[name]
        alone = loop._replace(stages={name: stage})
        purse = self.app.purse(alone, self.web, self.account)
        step = self.app.step(stage, self.web, 0, False, purse)
        executor = Executor(alone, {name: step}, self.app.store, Journal(), (), self.app.flights)
        given = {**inputs, "web_date": self.dates.web_date}
        artifacts = {one: Artifact.of(value, str) for one, value in given.items()}
        try:
            return (await executor.reuse(step, artifacts, Flow(stage.kind.gives), 0)).value
        finally:
            purse.close()

    @property
    def dates(self) -> Dates:
        return Dates.resolve(today=self.web.date)

    def _fenced(self, text: str, label: str) -> str:
        from ..evidence.untrusted import fence

        return fence(text, self.app.store.secret(), label)


def cited(answer: Answer) -> list[str]:
    """The addresses that an answer names."""
    facts = [value.fact for one in answer.disagreements for value in one.values]
    facts += [citation.fact for citation in answer.citations]
    return [*(fact.url for fact in facts), *(page.url for page in (*answer.uncited, *answer.copies))]
