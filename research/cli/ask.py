"""`research ask`: one question, one cited answer."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from . import options
from .delivery import CiteBy, check_out, deliver

if TYPE_CHECKING:
    from ..app import Asked
    from ..pipeline import Pipeline
    from ..records import Answer
    from ..settings import Settings
    from .progress import Progress


class ToolsAs(StrEnum):
    """How a model in a loop calls its tools."""

    native = "native"
    schema = "schema"


def ask(
    question: Annotated[str, typer.Argument(help="The question; - reads it from standard input.")],
    pipeline: options.Pipeline = None,
    cheap: options.Cheap = None,
    capable: options.Capable = None,
    tools: Annotated[
        ToolsAs | None, typer.Option(help="Call tools natively, or by structured actions (small models).")
    ] = None,
    search: options.Search = None,
    region: Annotated[str | None, typer.Option(help="The country of results: us.", metavar="CODE")] = None,
    language: Annotated[str | None, typer.Option(help="The language of results: en.", metavar="CODE")] = None,
    recency: Annotated[
        str | None, typer.Option(help="How old results may be: day, week, month, year.", metavar="SPAN")
    ] = None,
    allow_addresses: Annotated[
        str | None, typer.Option(help="Ranges to read from although not public: 10.0.0.0/8.", metavar="RANGES")
    ] = None,
    offline: options.Offline = False,
    world: options.World = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="Keep what the web answers as a world file.", metavar="FILE")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write the answer to a file: .md, .json or text.", metavar="FILE")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --out replace a file.")] = False,
    fresh: Annotated[
        list[str] | None, typer.Option("--fresh", help="Reuse nothing, or not of this stage.", metavar="[STAGE]")
    ] = None,
    frozen: Annotated[bool, typer.Option("--frozen", help="Use recorded search replies and pages only.")] = False,
    as_of: options.AsOf = None,
    web_date: options.WebDate = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 4 unless a search found it and each sentence has support.")
    ] = False,
    cite: Annotated[CiteBy, typer.Option(help="Cite by number, or by the source's name in the text.")] = CiteBy.number,
    verify: Annotated[
        bool, typer.Option("--verify", help="Let the cheap model check each sentence against its quotes.")
    ] = False,
    max_usd: Annotated[
        str | None, typer.Option(help='The most it may spend; "none" lifts the default.', metavar="DOLLARS")
    ] = None,
    max_calls: Annotated[str | None, typer.Option(help="The most model calls it may make.", metavar="N")] = None,
    deadline: Annotated[str | None, typer.Option(help="The time it may take.", metavar="SECONDS")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what it may cost, and spend nothing.")] = False,
) -> None:
    """Answer a question from the web, with citations."""
    from .ending import run

    flags = {"cheap": cheap, "capable": capable, "pipeline": pipeline, "search": search}
    flags |= {"max_usd": max_usd, "max_calls": max_calls, "deadline": deadline}
    flags |= {"region": region, "language": language, "recency": recency, "allow_addresses": allow_addresses}
    wish = Wish(
        question, flags, offline, json, out, force, tuple(fresh or ()), frozen, as_of, web_date, strict, cite,
        verify, dry_run, world, record, tools,
    )  # fmt: skip
    run(answered(wish))


class Wish(NamedTuple):
    """What the command line asks for."""

    question: str
    flags: dict[str, str | None]  # settings that it gives
    offline: bool
    json: bool
    out: Path | None
    force: bool
    fresh: tuple[str, ...]
    frozen: bool
    as_of: str | None
    web_date: str | None
    strict: bool
    cite: CiteBy
    verify: bool
    dry_run: bool
    world: Path | None
    record: Path | None
    tools: ToolsAs | None


async def answered(wish: Wish) -> int:
    """Runs the question, prints the answer, and gives the exit code."""
    from ..homes import housed
    from ..settings import Settings
    from .progress import Progress

    progress, unsaid = Progress.on(sys.stderr), list[str]()
    with housed(Settings.read(wish.flags), unsaid.append) as settings:
        result = await ran(wish, settings, progress, unsaid)
    if result is None:
        return 0
    try:
        deliver(result, wish.out, wish.json, wish.cite)
    finally:
        progress.summary(result)
    if wish.out is not None:
        progress.line(f"Answer: {wish.out}")
    return exit_code(result, wish.strict)


async def ran(wish: Wish, settings: "Settings", progress: "Progress", unsaid: list[str]) -> "Asked | None":
    """Runs the question; a dry run tells what it may cost.

    What is `unsaid` is told once there is no mistake in the wish: a mistake is told alone.
    """
    from ..api import asked
    from ..app import App, Dates, load_pipeline
    from ..ceilings import budget_of
    from ..tiers import Tiers
    from ..webs import opened, recorded

    question = asked(_stdin() if wish.question == "-" else wish.question)
    pipeline = load_pipeline(settings.pipeline)
    if wish.verify:
        from ..stages.verify import with_verification

        pipeline = with_verification(pipeline)
    fresh = stages_anew(wish.fresh, pipeline)
    check_out(wish.out, wish.json, wish.force)
    tiers = Tiers(settings, unsaid.append)
    if wish.dry_run:
        from .forecast import tell

        tell(pipeline, question.text, tiers, wish.offline or wish.world is not None, wish.json)
        return None
    pipeline = tiers.fitted(pipeline, wish.tools)
    models = tiers.models_of(pipeline)
    budget = budget_of(settings, models.values(), tiers.prices.free)
    app = App(settings, models, progress.notice, tiers.prices.price, tiers.prices.search_fee)
    asked_web = opened(settings, app.store, progress.notice, offline=wish.offline, world=wish.world)
    try:
        with progress:
            async with asked_web as chosen:
                dates = Dates.resolve(wish.as_of, wish.web_date, today=chosen.date)
                with recorded(chosen, wish.record, dates.web_date) as web:
                    for text in unsaid:
                        progress.notice(text)
                    progress.begins(app, pipeline, web, dates)
                    return await app.ask(
                        question, pipeline, web, dates, fresh=fresh, frozen=wish.frozen, budget=budget,
                        listeners=(progress.listen,), hear=progress.hear if progress.terminal else None,
                    )  # fmt: skip
    finally:
        await tiers.aclose()
        app.close()
        budget.close()


def exit_code(result: "Asked", strict: bool) -> int:
    answer = result.answer
    return 4 if strict and not holds_strictly(answer) else answer.ending.exit_code


def holds_strictly(answer: "Answer") -> bool:
    """Whether a search found it, and every sentence cites quotes that bear it out, be it in part."""
    from ..records import Ending

    marks = {sentence.status for sentence in answer.sentences}
    return answer.ending is not Ending.WITHOUT_SEARCH and bool(answer.citations) and marks <= {"supported", "partly"}


def stages_anew(wished: tuple[str, ...], pipeline: "Pipeline") -> frozenset[str]:
    """The stages that `--fresh` names.

    Raises: UsageError for one that the pipeline does not have.
    """
    from ..errors import UsageError
    from .ending import EVERYTHING

    if EVERYTHING in wished:
        return frozenset(pipeline.stages)
    for name in wished:
        if name not in pipeline.stages:
            raise UsageError(f"--fresh: {pipeline.name} has no stage {name!r}; it has {', '.join(pipeline.stages)}")
    return frozenset(wished)


def _stdin() -> str:
    """The question from standard input.

    Raises: UsageError if that is no text.
    """
    from ..errors import UsageError

    try:
        return sys.stdin.buffer.read(1 << 20).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("standard input is no UTF-8 text; send the question as plain text") from None
