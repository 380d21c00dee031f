"""`research ask`: one question, one cited answer."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from . import options

if TYPE_CHECKING:
    from ..app import Asked
    from ..pipeline import Pipeline
    from ..records import Answer


class ToolsAs(StrEnum):
    """How a model in a loop calls its tools."""

    native = "native"
    schema = "schema"


class CiteBy(StrEnum):
    """How an answer's sentences tell their sources."""

    number = "number"
    name = "name"


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
    from ..api import asked
    from ..app import App, Dates, load_pipeline
    from ..ceilings import budget_of
    from ..settings import Settings
    from ..tiers import Tiers
    from ..webs import opened, recorded
    from .progress import Progress

    question = asked(_stdin() if wish.question == "-" else wish.question)
    settings = Settings.read(wish.flags)
    pipeline = load_pipeline(settings.pipeline)
    if wish.verify:
        from ..stages.verify import with_verification

        pipeline = with_verification(pipeline)
    fresh = stages_anew(wish.fresh, pipeline)
    check_out(wish)
    progress = Progress.on(sys.stderr)
    tiers = Tiers(settings, progress.notice)
    if wish.dry_run:
        from .forecast import tell

        tell(pipeline, question.text, tiers, wish.offline or wish.world is not None, wish.json)
        return 0
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
                    progress.begins(app, pipeline, web, dates)
                    result = await app.ask(
                        question, pipeline, web, dates, fresh=fresh, frozen=wish.frozen, budget=budget,
                        listeners=(progress.listen,), hear=progress.hear if progress.terminal else None,
                    )  # fmt: skip
    finally:
        await tiers.aclose()
        app.close()
        budget.close()
    deliver(wish, result)
    progress.summary(result)
    return exit_code(result, wish.strict)


def exit_code(result: Asked, strict: bool) -> int:
    answer = result.answer
    return 4 if strict and not holds_strictly(answer) else answer.ending.exit_code


def holds_strictly(answer: Answer) -> bool:
    """Whether a search found it, and every sentence cites quotes that bear it out, be it in part."""
    from ..records import Ending

    marks = {sentence.status for sentence in answer.sentences}
    return answer.ending is not Ending.WITHOUT_SEARCH and bool(answer.citations) and marks <= {"supported", "partly"}


def stages_anew(wished: tuple[str, ...], pipeline: Pipeline) -> frozenset[str]:
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


def check_out(wish: Wish) -> None:
    """Before anything is spent.

    Raises: UsageError if --out can't be written, or would replace a file unasked.
    """
    from ..errors import UsageError

    if wish.out is None:
        return
    if wish.out.exists() and not wish.force:
        raise UsageError(f"--out {wish.out}: there is such a file; choose another, or add --force to replace it")
    if wish.out.is_dir() or not wish.out.absolute().parent.is_dir():
        raise UsageError(f"--out {wish.out}: that is no file in a folder that exists")


def deliver(wish: Wish, result: Asked) -> None:
    """The answer to stdout, or to the file that was asked for."""
    suffix = wish.out.suffix if wish.out else ""
    text = shown(result, json=wish.json or suffix == ".json", markdown=suffix == ".md", cite=wish.cite)
    if wish.out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    import os

    draft = wish.out.with_name(f".{wish.out.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(wish.out)


def shown(result: Asked, json: bool = False, markdown: bool = False, cite: CiteBy = CiteBy.number) -> str:
    from .. import output, rendering

    by_name = cite is CiteBy.name
    if json:
        from ..app import as_json

        return output.as_json(as_json(result)) + "\n"
    if markdown:
        question = str(result.run.manifest()["question"])
        return rendering.markdown(question, result.answer, by_name)
    import shutil

    width = max(40, min(100, shutil.get_terminal_size((88, 24)).columns))
    return rendering.plain(result.answer, width, by_name)


def _stdin() -> str:
    """The question from standard input.

    Raises: UsageError if that is no text.
    """
    from ..errors import UsageError

    try:
        return sys.stdin.buffer.read(1 << 20).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("standard input is no UTF-8 text; send the question as plain text") from None
