"""`research compare`: questions through several pipelines, and the report of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from . import groups, options
from .groups import Backends, Conditions, Spending, Subset, ungrouped

Outs = Annotated[
    list[Path],
    typer.Option("-o", "--out", help="The report: .html, .md, .json or .csv; may be given several times."),
]


@ungrouped
def compare(
    *,
    questions: options.Questions,
    out: Outs,
    pipeline: Annotated[
        list[str], typer.Option("-p", "--pipeline", help="A pipeline's name or file; give at least two.")
    ],
    repeats: options.Repeats = 1,
    backends: Backends,
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
    spending: Spending,
    subset: Subset,
    skip_bad: options.SkipBad = False,
    force: options.Force = False,
    conditions: Conditions,
) -> None:
    """Run questions through several pipelines and report; stopped or killed, the same command goes on."""
    from ..batch import Choice
    from ..errors import UsageError
    from ..questions import Questions
    from .compare_run import compared
    from .ending import run

    if len(pipeline) < 2:
        raise UsageError("compare needs two pipelines at least: -p fixed -p tool-use")
    choice = Choice(*subset, force=force)
    wish = Wish(
        Questions(questions), runs_file(out), choice, skip_bad, backends, spending, conditions,
        outs=tuple(out), pipelines=tuple(pipeline), repeats=repeats, isolate=isolate, judge=judge, price_as=price_as,
    )  # fmt: skip
    run(compared(wish))


@dataclass(frozen=True, kw_only=True)
class Wish(groups.Wish):
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
