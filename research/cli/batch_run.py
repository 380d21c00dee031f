"""What `research batch` does, from the question file to the exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..batch import Account, Batch, Gauge, LocalRows, OtherRecipeError, Recipe, Selection, explained, recipe_of
from ..errors import StoreError, UsageError
from ..limits.budget import Budget, Caps
from ..output import clean
from ..results import Results, write_sheet
from .batch_provider import most, prepared
from .batch_view import View
from .ending import for_many

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..app import App, Dates
    from ..batch.stagewise import Stagewise
    from ..llm.messages import Model
    from ..pipeline import Pipeline
    from ..questions import Checked, Row
    from ..settings import Settings
    from ..tiers import Tiers
    from ..web.base import Web
    from . import groups
    from .batch import Wish


async def answered(wish: Wish) -> int:
    """Runs what is left to run, and gives the exit code."""
    from ..app import load_pipeline
    from ..settings import Settings
    from ..tiers import Tiers

    view = View.on(sys.stderr)
    found = checked(wish, view)
    settings = Settings.read(wish.flags)
    pipeline = load_pipeline(settings.pipeline)
    tiers = Tiers(settings, (unsaid := list[str]()).append)  # a mistake is told alone
    pipeline = prepared(wish, settings, tiers.fitted(pipeline), tiers, view)
    check_out(wish)
    if wish.dry_run and wish.choice.sample is None:
        from .batch_cost import tell

        tell(wish, pipeline, tiers)
        return 0
    results = Results(wish.out)
    try:
        for told in results.notices:
            view.line(told)
        async with AsyncExitStack() as stack:
            job = await Job.opened(wish, settings, pipeline, tiers, results, view, stack, found.rows)
            for told in unsaid:
                view.line(told)
            return await job.run(len(found.problems))
    finally:
        results.close()


def checked(wish: groups.Wish, view: View) -> Checked:
    """Reads the question file, and tells what it holds.

    Raises: UsageError for a file with bad rows, unless they are to be left out.
    """
    file = wish.questions
    found = file.check()
    if found.problems and not wish.skip_bad:
        raise UsageError(
            f"{len(found.problems):,} of {len(found.problems) + found.rows:,} rows can't be run:\n"
            f"{found.told(file.path)}\nMend them, or add --skip-bad to go on without them"
        )
    if found.problems:
        view.line(found.told(file.path))
    if not found.rows:
        raise UsageError(f"{file.path}: no row of it can be run")
    named = [name for name in found.columns if name]
    told = f", of column {' or '.join(named)}" if named else ""
    answers = f", {found.answers:,} with reference answers" if found.answers else ""
    view.line(f"{file.path}: {found.rows:,} questions{told}{answers}")
    return found


def stored(what: str, settings: Settings, models: Mapping[str, Model], tiers: Tiers, view: View) -> App:
    """Raises: StoreError if there can be no store, which `what` needs."""
    from ..app import App

    app = App(settings, models, view.line, tiers.prices.price, tiers.prices.search_fee)
    if app.store.folder is None:
        raise StoreError(
            f"{what} needs its store: without it nothing could be taken up again. Set "
            "RESEARCH_HOME to a folder that can be written"
        )
    return app


def web_of(wish: groups.Wish, settings: Settings, app: App, view: View) -> AbstractAsyncContextManager[Web]:
    from ..webs import opened

    offline, world, workers = wish.backends.offline, wish.backends.world, min(4, os.cpu_count() or 1)
    return opened(settings, app.store, view.line, offline=offline, world=world, workers=workers)


def check_out(wish: Wish) -> None:
    """Raises: UsageError if --out can't be written."""
    if wish.out.is_dir() or not wish.out.absolute().parent.is_dir():
        raise UsageError(f"--out {wish.out}: that is no file in a folder that exists")
    for path in (wish.out, wish.table):
        if path is not None and path.exists() and wish.questions.path.samefile(path):
            raise UsageError(f"{path}: that is the file of the questions; choose another --out")
    if wish.out.suffix == ".csv":
        raise UsageError(
            f"--out {wish.out}: results are JSON lines; name them .jsonl, and add --csv for a table beside"
        )


async def put_in_order(wish: Wish) -> int:
    """Puts the results into the order of the questions."""
    if not wish.out.is_file():
        raise UsageError(f"--sort: there is no {wish.out}")
    results = Results(wish.out)
    try:
        for told in results.notices:
            print(clean(told), file=sys.stderr)
        results.settle(in_order=True)
        if wish.table is not None:
            write_sheet(results, wish.table)
        print(f"{wish.out}: {len(results.past):,} rows in the order of their questions", file=sys.stderr)
    finally:
        results.close()
    return 0


@dataclass
class Job:
    """A batch with all that it needs, opened."""

    wish: Wish
    app: App
    pipeline: Pipeline
    web: Web
    dates: Dates
    tiers: Tiers
    recipe: Recipe
    rows: LocalRows
    view: View
    batch: Batch
    budget: Budget
    work: Stagewise | None = None  # with --provider-batch

    @classmethod
    async def opened(
        cls, wish: Wish, settings: Settings, pipeline: Pipeline, tiers: Tiers, results: Results, view: View,
        stack: AsyncExitStack, count: int,
    ) -> Job:  # fmt: skip
        """Raises: UsageError, StoreError."""
        gauge = Gauge()
        account, work = Account.of(settings.home, wish.out), None
        bound: Mapping[str, Model] = tiers.models_of(pipeline)
        if wish.provider_batch:
            from ..batch.stagewise import Stagewise

            bound = (work := Stagewise.of(bound, tiers, account.folder, view.line, gauge.check)).models
            stack.callback(work.collector.kept.close)
        models = {name: gauge.model(model) for name, model in bound.items()}
        stack.push_async_callback(tiers.aclose)
        app = stored("a batch", settings, models, tiers, view)
        stack.callback(app.close)
        web = await stack.enter_async_context(web_of(wish, settings, app, view))
        web = web if work is None else work.watched(web)
        if results.is_new:
            account.forget()
        dates = account.dates(results, web, wish.conditions.as_of, wish.conditions.web_date)
        await stack.enter_async_context(app.serving(pipeline))
        recipe = recipe_of(app, pipeline, web, dates)
        rows = LocalRows(
            Selection(wish.questions, wish.choice, results.past, recipe.digest, count), results, ordered=wish.ordered
        )
        made = {"pipeline": pipeline.name, "recipe": recipe.digest, **dates._asdict()}
        caps = Caps.parse(settings.max_usd or None, settings.max_calls or None, settings.deadline or None)
        budget = Budget(caps, account.budget)
        stack.callback(budget.close)

        def ask(row: Row, listen: Callable[[dict[str, Any]], None]) -> Any:
            return app.ask(row.question, pipeline, web, dates, budget=budget, listeners=(listen,))

        batch = Batch(rows, ask, made, gauge, most(wish), caps.seconds, view.tell, steady=wish.provider_batch)
        return cls(wish, app, pipeline, web, dates, tiers, recipe, rows, view, batch, budget, work)

    async def run(self, bad: int) -> int:
        """Raises: UsageError for answers by another recipe, and where nobody has agreed to the cost."""
        rows, view = self.rows, self.view
        try:
            rows.survey()
        except OtherRecipeError as error:
            if told := explained(self.app, self.recipe, rows.results, error.others):
                error.add_note(told)
            raise
        from .batch_cost import agreed

        agreed(self.wish, self.pipeline, self.tiers, rows)
        self.begins()
        telling = asyncio.ensure_future(view.goes_on())
        try:
            await self.run_rows()
        finally:
            telling.cancel()
            view.ends()
            rows.flush()
            view.summary(bad)
        self.settle()
        return self.exit_code

    async def run_rows(self) -> None:
        for_many()
        if self.work is None:
            await self.batch.run()
            return
        async with self.work as work:
            work.begins(self.budget)
            await self.batch.run()
            work.has_ended(self.budget)

    def begins(self) -> None:
        from .progress import place

        rows, view = self.rows, self.view
        models = ", ".join(dict.fromkeys(model.name for model in self.app.models.values())) or "no model"
        view.line(f"{self.pipeline.name} over {place(self.web)}, as of {self.dates.as_of}, with {models}")
        if rows.earlier:
            view.line(f"{rows.earlier:,} rows are done; {rows.left:,} are to be run")
        if rows.strangers:
            view.line(f"{rows.results.path} holds {rows.strangers:,} records of other rows, which stay as they are")
        view.begins(self.batch, rows)

    def settle(self) -> None:
        """What follows the last row."""
        wish, rows = self.wish, self.rows
        rows.results.settle(in_order=wish.ordered)
        if wish.table is not None:
            write_sheet(rows.results, wish.table)
        if wish.dry_run:
            from .batch_cost import tell_projection

            tell_projection(wish, rows, self.recipe.digest)
        elif wish.json:
            from ..output import as_json

            print(as_json(self.totals))
        self.view.line(f"Results: {wish.out}" + (f" and {wish.table}" if wish.table else ""))

    @property
    def totals(self) -> dict[str, Any]:
        counts, tally, stop = self.rows.counts, self.batch.tally, self.batch.stop
        return {
            "total": counts.total,
            "done": counts.done,
            "failed": counts.failed,
            "not_started": counts.not_started,
            "endings": {name: count for name, count in counts.endings.items() if count},
            "errors": {name: count for name, count in counts.errors.items() if count},
            "this_command": {"endings": dict(tally.endings), "errors": dict(tally.errors)},
            "paid_usd": tally.usd / 1e9,
            "as_if_cold_usd": tally.cold_usd / 1e9,
            "unknown_prices": tally.unknown,
            "reused": round(tally.reuse, 4),
            "stopped": stop.reason if stop else None,
            "recipe": self.recipe.digest,
        }

    @property
    def exit_code(self) -> int:
        if self.batch.stop is not None:
            return self.batch.stop.exit_code
        return 7 if self.rows.counts.failed else 0
