"""`research compare`: questions through several pipelines, and the report of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from . import batch, options

Outs = Annotated[
    list[Path],
    typer.Option("-o", "--out", help="The report: .html, .md, .json or .csv; may be given several times."),
]


def compare(
    questions: options.Questions,
    out: Outs,
    pipeline: Annotated[
        list[str], typer.Option("-p", "--pipeline", help="A pipeline's name or file; give at least two.")
    ],
    repeats: options.Repeats = 1,
    cheap: options.Cheap = None,
    capable: options.Capable = None,
    search: options.Search = None,
    offline: options.Offline = False,
    world: options.World = None,
    isolate: Annotated[
        bool,
        typer.Option(
            "--isolate", help="A store for each pipeline and repeat, so that time is measured, not worked out."
        ),
    ] = False,
    judge: Annotated[
        bool, typer.Option("--judge", help="Let the capable model compare the answers too, each pair in both orders.")
    ] = False,
    price_as: options.PriceAs = None,
    max_usd: options.MaxUsd = None,
    max_calls: options.MaxCalls = None,
    deadline: options.Deadline = None,
    yes: options.Yes = False,
    limit: options.Limit = None,
    sample: options.Sample = None,
    seed: options.Seed = 0,
    skip_bad: options.SkipBad = False,
    force: options.Force = False,
    parallel: options.Parallel = None,
    as_of: options.AsOf = None,
    web_date: options.WebDate = None,
) -> None:
    """Run questions through several pipelines and report; stopped or killed, the same command goes on."""
    from ..batch import Choice
    from ..errors import UsageError
    from ..questions import Questions
    from .compare_run import compared
    from .ending import run

    if len(pipeline) < 2:
        raise UsageError("compare needs two pipelines at least: -p fixed -p tool-use")
    flags = {"cheap": cheap, "capable": capable, "search": search}
    flags |= {"max_usd": max_usd, "max_calls": max_calls, "deadline": deadline}
    choice = Choice(limit, sample, seed, False, force)
    wish = Wish(
        Questions(questions), runs_file(out), flags, choice, offline, world, yes, False, skip_bad, False, False, False,
        parallel, as_of, web_date, tuple(out), tuple(pipeline), repeats, isolate, judge, price_as,
    )  # fmt: skip
    run(compared(wish))


@dataclass(frozen=True)
class Wish(batch.Wish):
    """What the command line asks for. `out` is the file of the runs, `outs` are the reports."""

    outs: tuple[Path, ...]
    pipelines: tuple[str, ...]
    repeats: int
    isolate: bool = False
    judge: bool = False
    price_as: str | None = None


FORMATS = (".html", ".md", ".json", ".csv")


def runs_file(outs: list[Path]) -> Path:
    """Where the runs of a comparison are noted: beside its first report.

    Raises: UsageError for a report of no known format.
    """
    from ..errors import UsageError
    from ..homes import refusal

    for out in outs:
        if out.suffix.lower() not in FORMATS:
            raise UsageError(f"--out {out}: a report is one of {', '.join(FORMATS)}")
        if out.is_dir() or not out.absolute().parent.is_dir():
            raise UsageError(f"--out {out}: that is no file in a folder that exists")
        if why := refusal(out.absolute().parent):
            raise UsageError(f"--out {out}: no file can be made there: {why}; choose another folder")
    return outs[0].with_suffix(".runs.jsonl")
