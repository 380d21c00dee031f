"""`research batch`: many questions, resumable, capped, at the providers' pace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from . import groups, options
from .groups import Backends, Conditions, Spending, Subset, ungrouped


@ungrouped
def batch(
    *,
    questions: Annotated[Path, typer.Argument(help="A file of questions: txt, csv, tsv, json, jsonl or yaml.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The results, one JSON record a row; begun, or taken up again.")
    ],
    pipeline: options.Pipeline = None,
    backends: Backends,
    spending: Spending,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what it may cost; with --sample run only those rows, and project.")
    ] = False,
    subset: Subset,
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
    conditions: Conditions,
) -> None:
    """Answer a file of questions; stopped or killed, the same command goes on."""
    from ..batch import Choice
    from ..questions import Questions
    from .batch_provider import cancelled
    from .batch_run import answered, put_in_order
    from .ending import run

    file = Questions(questions, column, "" if ids == "none" else ids, encoding, format)
    choice = Choice(*subset, retry_failed, force)
    wish = Wish(
        file, out, choice, skip_bad, backends, spending, conditions,
        pipeline=pipeline, dry_run=dry_run, ordered=ordered, csv=csv, json=json, provider_batch=provider_batch,
    )  # fmt: skip
    run(put_in_order(wish) if sort else cancelled(wish) if cancel_provider_batch else answered(wish))


@dataclass(frozen=True, kw_only=True)
class Wish(groups.Wish):
    """What the command line asks for."""

    pipeline: str | None
    dry_run: bool
    ordered: bool
    csv: bool
    json: bool
    provider_batch: bool

    @property
    def flags(self) -> dict[str, str | None]:
        return super().flags | {"pipeline": self.pipeline}

    @property
    def table(self) -> Path | None:
        return self.out.with_suffix(".csv") if self.csv else None
