"""`research batch`: many questions, resumable, capped, at the providers' pace."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from ..batch import Choice
    from ..questions import Questions


def batch(
    questions: Annotated[Path, typer.Argument(help="A file of questions: txt, csv, tsv, json, jsonl or yaml.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The results, one JSON record a row; begun, or taken up again.")
    ],
    pipeline: options.Pipeline = None,
    cheap: options.Cheap = None,
    capable: options.Capable = None,
    search: options.Search = None,
    offline: options.Offline = False,
    world: options.World = None,
    max_usd: options.MaxUsd = None,
    max_calls: options.MaxCalls = None,
    deadline: options.Deadline = None,
    yes: options.Yes = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what it may cost; with --sample run only those rows, and project.")
    ] = False,
    limit: options.Limit = None,
    sample: options.Sample = None,
    seed: options.Seed = 0,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Only rows that failed before.")] = False,
    skip_bad: options.SkipBad = False,
    force: options.Force = False,
    ordered: Annotated[bool, typer.Option("--ordered", help="Write results in the order of the questions.")] = False,
    provider_batch: Annotated[
        bool, typer.Option("--provider-batch", help="Send each stage as one batch of the provider's, at half price.")
    ] = False,
    cancel_provider_batch: Annotated[
        bool, typer.Option("--cancel-provider-batch", help="Cancel what a provider works on for --out; run nothing.")
    ] = False,
    sort: Annotated[
        bool, typer.Option("--sort", help="Put --out into the order of the questions; run nothing.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write a table beside --out at the end.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the totals as JSON.")] = False,
    column: Annotated[str | None, typer.Option(help="The column of the questions.", metavar="NAME")] = None,
    ids: Annotated[
        str | None, typer.Option("--id", help="The column of the ids; none makes them.", metavar="NAME")
    ] = None,
    format: Annotated[str | None, typer.Option(help="The file's format, if its name does not tell.")] = None,
    encoding: Annotated[str | None, typer.Option(help="The file's encoding; UTF-8 unless set.")] = None,
    parallel: options.Parallel = None,
    as_of: options.AsOf = None,
    web_date: options.WebDate = None,
) -> None:
    """Answer a file of questions; stopped or killed, the same command goes on."""
    from ..batch import Choice
    from ..questions import Questions
    from .batch_provider import cancelled
    from .batch_run import answered, put_in_order
    from .ending import run

    flags = {"cheap": cheap, "capable": capable, "pipeline": pipeline, "search": search}
    flags |= {"max_usd": max_usd, "max_calls": max_calls, "deadline": deadline}
    file = Questions(questions, column, "" if ids == "none" else ids, encoding, format)
    choice = Choice(limit, sample, seed, retry_failed, force)
    wish = Wish(
        file, out, flags, choice, offline, world, yes, dry_run, skip_bad, ordered, csv, json, parallel, as_of, web_date,
        provider_batch=provider_batch,
    )  # fmt: skip
    run(put_in_order(wish) if sort else cancelled(wish) if cancel_provider_batch else answered(wish))


@dataclass(frozen=True)
class Wish:
    """What the command line asks for."""

    questions: Questions
    out: Path
    flags: dict[str, str | None]  # settings that it gives
    choice: Choice
    offline: bool
    world: Path | None
    yes: bool
    dry_run: bool
    skip_bad: bool
    ordered: bool
    csv: bool
    json: bool
    parallel: int | None
    as_of: str | None
    web_date: str | None
    provider_batch: bool = field(default=False, kw_only=True)

    @property
    def table(self) -> Path | None:
        return self.out.with_suffix(".csv") if self.csv else None
