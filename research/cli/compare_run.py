"""What `research compare` and `research advise` do, from the question file to the trials."""

from __future__ import annotations

import asyncio
import math
import shlex
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..batch import Account, Batch, Gauge, recipe_of
from ..compare import Schedule, Side, Turns, distinct
from ..errors import UsageError
from ..results import Results
from ..store import key_of
from .batch_run import checked, stored, web_of
from .batch_view import View
from .ending import for_many

if TYPE_CHECKING:
    from ..app import App, Asked
    from ..journal import Listener
    from ..pipeline import Pipeline
    from ..records import Question
    from ..report import Gathered
    from ..settings import Settings
    from ..tiers import Tiers
    from ..web.base import Web
    from .compare import Wish

AT_ONCE = 4  # runs, so that none waits for the others' work and is called slow


async def compared(wish: Wish) -> int:
    """Runs what is left to run, writes the reports, and gives the exit code."""
    from ..app import load_pipeline
    from ..report import pricing

    view = View.on(sys.stderr)
    priced = pricing.parse(wish.price_as) if wish.price_as else {}
    pipelines = distinct(load_pipeline(name) for name in wish.pipelines)
    async with Comparing(wish, pipelines, view) as comparing:
        judge = None
        if wish.judge:
            from .judge_run import judge_of, judged

            judge = judge_of(comparing)
        code = await comparing.run()
        if judge is not None and code in (0, 7):
            await judged(comparing, judge)
        gathered = comparing.gathered()
        from .report import deliver

        deliver(wish.outs, gathered, comparing.tiers.prices.price, priced, view.line)
    return code


@dataclass
class Arms:
    """Opens stores, each with a web that keeps in it what it must: "" is the one that all share."""

    wish: Wish
    settings: Settings
    tiers: Tiers
    models: dict[str, Any]
    view: View
    stack: AsyncExitStack
    _opened: dict[str, tuple[App, Web]] = field(default_factory=dict)

    async def one(self, name: str = "") -> tuple[App, Web]:
        """Raises: StoreError if there can be no store."""
        if name not in self._opened:
            settings = self.settings
            if name:
                folder = key_of([str(self.wish.out.resolve()), name])[:24]
                settings = settings._replace(home=settings.home / "isolated" / folder)
            app = stored("a comparison", settings, self.models, self.tiers, self.view)
            self.stack.callback(app.close)
            if name:
                app.runs = self._opened[""][0].runs
            web = web_of(self.wish, self.settings, app, self.view)
            self._opened[name] = app, await self.stack.enter_async_context(web)
        return self._opened[name]


class Comparing:
    """A comparison with all that it needs, open while its block runs."""

    def __init__(self, wish: Wish, pipelines: Sequence[Pipeline], view: View) -> None:
        self.wish = wish
        self.pipelines = pipelines
        self.view = view

    async def __aenter__(self) -> Comparing:
        """Raises: UsageError, StoreError."""
        self._stack = AsyncExitStack()
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.aclose()

    async def _open(self) -> None:
        from ..limits.budget import Budget, Caps
        from ..settings import Settings
        from ..tiers import Tiers

        wish, view = self.wish, self.view
        found = checked(wish, view)
        self.bad = len(found.problems)
        self.settings = Settings.read(wish.flags)
        self.tiers = Tiers(self.settings, (unsaid := list[str]()).append)  # a mistake is told alone
        self._stack.push_async_callback(self.tiers.aclose)
        self.results = Results(wish.out)
        self._stack.callback(self.results.close)
        for told in self.results.notices:
            view.line(told)
        gauge = Gauge()
        names = dict.fromkeys(
            model for pipeline in self.pipelines for s in pipeline.stages.values() for model in s.models
        )
        self.models = {name: gauge.model(model) for name, model in self.tiers.models(names).items()}
        self.arms = Arms(wish, self.settings, self.tiers, self.models, view, self._stack)
        self.app, self.web = await self.arms.one()
        account = Account.of(self.settings.home, wish.out)
        if self.results.is_new:
            account.forget()
        self.dates = account.dates(self.results, self.web, wish.conditions.as_of, wish.conditions.web_date)
        self.caps = Caps.parse(
            self.settings.max_usd or None, self.settings.max_calls or None, self.settings.deadline or None
        )
        self.budget = Budget(self.caps, account.budget)
        self._stack.callback(self.budget.close)
        await self._stack.enter_async_context(self.app.serving(*self.pipelines))
        self.sides = [self.side(pipeline) for pipeline in self.pipelines]
        schedule = Schedule(wish.questions, wish.choice, self.results.past, sides=self.sides, repeats=wish.repeats)
        recipes = {side.name: side.recipe.digest for side in self.sides}
        self.turns = Turns(schedule, self.results, recipes=recipes, notes=self.notes())
        width = wish.conditions.parallel or (1 if wish.isolate else AT_ONCE)
        made = {"pipeline": "", "recipe": "", **self.dates._asdict()}
        self.batch = Batch(self.turns, self.ask, made, gauge, width, self.caps.seconds, view.tell)
        for told in unsaid:
            view.line(told)

    def side(self, pipeline: Pipeline) -> Side:
        dates = self.dates

        async def ask(question: Question, sample: int, listeners: tuple[Listener, ...]) -> Asked:
            app, web = await self.arms.one(f"{pipeline.name} {sample}" if self.wish.isolate else "")
            return await app.ask(question, pipeline, web, dates, sample=sample, budget=self.budget, listeners=listeners)

        return Side(pipeline, recipe_of(self.app, pipeline, self.web, dates), ask)

    def ask(self, row: Any, listen: Listener) -> Any:
        [side] = [side for side in self.sides if side.name == row.side]
        return side.ask(row.question, row.sample, (listen,))

    def notes(self) -> dict[str, Any]:
        """What a report tells besides, so that it can be repeated."""
        wish = self.wish
        free = all(self.tiers.prices.free(model.name) for model in self.models.values())
        return {
            "command": shlex.join(["research", *sys.argv[1:]]),
            "questions": wish.questions.path.name,
            "parallel": wish.conditions.parallel or (1 if wish.isolate else AT_ONCE),
            "isolated": wish.isolate,
            "prices": "all models are free" if free else self.tiers.prices.list_name,
        }

    async def run(self) -> int:
        """Run what is left.

        Raises: UsageError where nobody has agreed to the cost, or for answers by another recipe.
        """
        from .progress import place

        turns, view = self.turns, self.view
        turns.survey()
        self.agreed()
        models = ", ".join(dict.fromkeys(model.name for model in self.models.values())) or "no model"
        names = ", ".join(side.name for side in self.sides)
        view.line(f"{names} over {place(self.web)}, as of {self.dates.as_of}, with {models}")
        if turns.earlier:
            view.line(f"{turns.earlier:,} runs are done; {turns.left:,} are left")
        view.begins(self.batch, turns)
        telling = asyncio.ensure_future(view.goes_on())
        for_many()
        try:
            await self.batch.run()
        finally:
            telling.cancel()
            view.ends()
            turns.flush()
            view.summary(self.bad)
        if self.batch.stop is not None:
            return self.batch.stop.exit_code
        return 7 if turns.counts.failed else 0

    def agreed(self) -> None:
        """Raises: UsageError if it may cost money, and neither --max-usd nor --yes says how much may be spent."""
        from .batch_cost import Cost, cost, is_free

        if self.settings.max_usd not in ("", "none") or self.wish.spending.yes or not self.turns.left:
            return
        backends, tiers, rows = self.wish.backends, self.tiers, [*self.turns.selection.left()]
        told = [
            cost(backends, pipeline, tiers, [row for row in rows if getattr(row, "side", "") == pipeline.name])
            for pipeline in self.pipelines
            if not is_free(backends, pipeline, tiers)
        ]
        total = Cost(
            len(rows), math.fsum(one.usd for one in told), math.fsum(one.worst for one in told),
            sum(one.unknown for one in told),
        )  # fmt: skip
        if total.worst or total.unknown:
            raise UsageError(f"{total}. Add --max-usd DOLLARS as a cap, or --yes to spend without one")

    def gathered(self) -> Gathered:
        """The trials of this comparison, of all commands on its file."""
        from ..report import gather

        self.results.settle(in_order=True)
        wanted = {row.id for row in self.turns.selection.rows()}
        return gather([str(self.wish.out)], self.app.runs, wanted)
