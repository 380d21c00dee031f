"""Wires models, a web, the store, stages and the executor together, and runs questions through them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import __version__
from .ceilings import cut_short, makes_answer, plan, searches
from .errors import ResearchError, StoreError, UsageError
from .executor import Executor, Made
from .flights import Flights
from .journal import Journal, Listener
from .ledger import Receipt, as_if_cold, paid
from .limits.budget import Budget, Caps, Purse
from .loading import load
from .pipeline import Pipeline, Stage
from .records import Answer, Question
from .runs import Run, Runs
from .settings import PIPELINES, Settings
from .stages import KINDS
from .stages.job import Job
from .stages.recipes import recipe
from .steps import Calls, Step
from .store import Store, key_of
from .values import near
from .web.base import engines, is_live

if TYPE_CHECKING:
    from .llm.messages import Model, Usage
    from .mcp.servers import Servers
    from .stages.job import Hear
    from .web.base import Web


class Dates(NamedTuple):
    """What prompts are told is today, and the day whose web is asked for (YYYY-MM-DD, UTC)."""

    as_of: str
    web_date: str

    @classmethod
    def resolve(cls, as_of: str | None = None, web_date: str | None = None, today: str | None = None) -> Dates:
        """Once for a run, a batch or a comparison.

        Raises: UsageError for what is no date.
        """
        today = today or datetime.now(UTC).date().isoformat()
        return cls(_date("--as-of", as_of or today), _date("--web-date", web_date or today))


def _date(flag: str, text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"{flag} {text!r} is no date; write it as 2025-03-01") from None


class Asked(NamedTuple):
    """A finished run: its folder, its answer, and its journal."""

    run: Run
    answer: Answer
    lines: list[dict[str, Any]]


@dataclass(eq=False, repr=False)
class App:
    """What runs share: the store, the models behind the tiers, and work in flight.

    `models` maps "cheap", "capable" and "provider:model" to models. `notice` is called
    with a sentence whenever the user should know something. The live web is that of the
    day on which the App was made: a batch goes on over midnight.
    """

    settings: Settings
    models: Mapping[str, Model]
    notice: Callable[[str], None] = lambda _: None
    price: Callable[[str, Usage], int | None] = lambda model, _: 0 if model.startswith("builtin:") else None
    fee: Callable[[str], int | None] = lambda _engine: 0
    today: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    store: Store = field(init=False)
    runs: Runs = field(init=False)
    flights: Flights[Made] = field(default_factory=Flights)
    servers: Servers | None = None  # of tools, once a pipeline names any

    def __post_init__(self) -> None:
        self.runs = Runs(self.settings.runs)
        try:
            self.store = Store(self.settings.store, self.notice)
        except StoreError as error:
            self.notice(f"{error}. This run goes on without a store: nothing is reused, and nothing is kept of it.")
            self.store = Store(None)

    async def ask(
        self,
        question: Question,
        pipeline: Pipeline,
        web: Web,
        dates: Dates,
        *,
        fresh: Collection[str] = (),
        frozen: bool = False,
        sample: int = 0,
        budget: Budget | None = None,
        listeners: tuple[Listener, ...] = (),
        hear: Hear | None = None,
    ) -> Asked:
        """Run one question through one pipeline.

        `fresh` names stages to be made anew. With `frozen` the web is not asked: what is
        not recorded is missing. `budget` may be shared by several runs; its deadline is each
        one's own. `hear` is told the answer as it is written. Raises: ResearchError; the journal tells how far it came.
        """
        async with self.serving(pipeline):
            purse = self.purse(pipeline, web, budget)
            recorded_only = frozen or (is_live(web.source) and dates.web_date < self.today)
            told = (web, sample, recorded_only, purse, hear)
            steps = {name: self.step(stage, *told) for name, stage in pipeline.stages.items()}
            manifest = self.manifest(question, pipeline, web, dates, steps, sample)
            run = self.runs.start(manifest)
            journal = Journal(run.folder / "journal.jsonl", listeners)
            journal.write("began", **{key: manifest[key] for key in ("pipeline", "question", "when")}, run=run.id)
            executor = Executor(pipeline, steps, self.store, journal, fresh, self.flights)
            given = {"question": question, "as_of": dates.as_of, "web_date": dates.web_date}
            ending: dict[str, Any] = {"error": "stopped"}
            try:
                async with purse.deadline():
                    answer: Answer = cut_short((await executor.run(given)).value, journal.lines)
                ending = {"ending": answer.ending, "reason": answer.reason}
            except ResearchError as error:
                ending = {"error": str(error), "kind": type(error).__name__}
                error.add_note(f"run {run.id}")
                raise
            finally:
                totals = {"paid": paid(journal.lines).usd, "as_if_cold": as_if_cold(journal.lines).usd}
                journal.write("ended", **ending, **totals)
                journal.close()
                purse.close()
            self.keep(run, question, answer)
            return Asked(run, answer, journal.lines)

    def serving(self, *pipelines: Pipeline) -> AbstractAsyncContextManager[None]:
        """The servers whose tools they name run while the block does. Raises: UsageError, WebError where one can't."""
        names = dict.fromkeys(name for pipeline in pipelines for name in pipeline.servers)
        if names and self.servers is None:
            from .mcp.servers import Servers

            self.servers = Servers(self.settings.mcp, self.notice)
        return nullcontext() if self.servers is None else self.servers.needed(names)

    def keep(self, run: Run, question: Question, answer: Answer) -> None:
        """An answer that was made is shown even where it can't be kept."""
        from .rendering import markdown

        try:
            run.keep_answer(answer, markdown(question.text, answer))
        except OSError as error:
            self.notice(f"the answer can't be kept in {run.folder}: {error}")

    def purse(self, pipeline: Pipeline, web: Web, budget: Budget | None) -> Purse:
        budget = budget or Budget(Caps())
        names = [name.partition("@")[0] for name in engines(web)] if searches(pipeline) else []
        fees = {name: self.fee(name) for name in names}
        return Purse(budget, functools.partial(plan, pipeline, self.models, self.price, fees, budget.caps))

    def step(
        self, stage: Stage, web: Web, sample: int, recorded_only: bool, purse: Purse | None = None,
        hear: Hear | None = None,
    ) -> Step:  # fmt: skip
        """A stage bound to its model or its web, with all that its keys must tell."""
        kind = stage.kind
        model = self.model(stage) if kind.model else None
        servers = {name: self.servers[name] for name in stage.servers} if self.servers else {}
        parts = {name: self.step(part, web, sample, recorded_only, purse) for name, part in stage.parts.items()}

        async def make(inputs: Mapping[str, Any], receipt: Receipt, calls: Calls) -> Any:
            job = Job(
                purpose=kind.name,
                settings=stage.params,
                receipt=receipt,
                secret=self.store.secret(),
                sampling=stage.sampling,
                prompt=stage.prompt,
                tier=stage.model,
                bound_model=model,
                price=self.price,
                fee=self.fee,
                bound_web=web if kind.web else None,
                tools=stage.tools,
                servers=servers,
                further=stage.prompts,
                parts=calls if parts else None,
                purse=purse,
                answering=makes_answer(stage),
                hear=hear if makes_answer(stage) else None,
            )
            return await kind.run(job, **inputs)

        left = purse and functools.partial(purse.seconds_left, answering=makes_answer(stage))
        told = recipe(stage, "" if model is None else model.name, web, sample, servers, parts)
        return Step(stage, told, make, recorded_only and bool(kind.web), parts, left or (lambda: None))

    def model(self, stage: Stage) -> Model:
        """The model that a stage is bound to.

        Raises: UsageError if nothing stands behind that name.
        """
        try:
            return self.models[stage.model]
        except KeyError:
            known = ", ".join(self.models)
            raise UsageError(f"stage {stage.name}: nothing is bound to {stage.model!r}; there are {known}") from None

    def manifest(
        self, question: Question, pipeline: Pipeline, web: Web, dates: Dates, steps: Mapping[str, Step], sample: int
    ) -> dict[str, Any]:
        recipes = {name: dict(step.recipe) for name, step in steps.items()}
        return {
            "question": question.text,
            "pipeline": pipeline.name,
            "pipeline_digest": pipeline.digest,
            "recipe": key_of(recipes),
            "recipes": recipes,
            "models": {name: model.name for name, model in self.models.items()},
            "web": web.name,
            "source": web.source,
            "as_of": dates.as_of,
            "web_date": dates.web_date,
            "sample": sample,
            "when": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "version": __version__,
            "file": pipeline.text,
            "prompts": {file.name: file.text for stage in pipeline.stages.values() for file in stage.files},
        }

    def close(self) -> None:
        self.store.close()


def pipeline_file(name: str) -> Path:
    """A pipeline's file: a path as given, or a shipped one's name.

    Raises: UsageError if there is neither.
    """
    if name.endswith(".toml") or "/" in name:
        return Path(name)
    shipped = sorted(path.stem for path in PIPELINES.glob("*.toml"))
    if name not in shipped:
        remedy = f"shipped are {', '.join(shipped)}, or give a file's path{near(name, shipped)}"
        raise UsageError(f"there is no pipeline {name!r}; {remedy}")
    return PIPELINES / f"{name}.toml"


def load_pipeline(name: str) -> Pipeline:
    """Raises: UsageError, PipelineError."""
    return load(pipeline_file(name), KINDS)


def as_json(asked: Asked) -> dict[str, Any]:
    """A finished run as the command line's --json prints it."""
    from .evidence.checks import citation_precision, citation_recall
    from .tally import tally

    return {
        "run": asked.run.id,
        **json.loads(asked.answer.model_dump_json()),
        "citation_recall": citation_recall(asked.answer),
        "citation_precision": citation_precision(asked.answer),
        "paid": vars(paid(asked.lines)),
        "as_if_cold": vars(as_if_cold(asked.lines)),
        "outcomes": tally(asked.lines, asked.answer)._asdict(),
    }
