"""`research compare`: questions through several pipelines, and the report of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from . import batch

File = Annotated[
    Path, typer.Argument(help="A file of questions, best with reference answers, as `research batch` reads.")
]
Outs = Annotated[
    list[Path],
    typer.Option("-o", "--out", help="The report: .html, .md, .json or .csv; may be given several times."),
]
Cheap = Annotated[str | None, typer.Option(help="The model of the cheap tier.", metavar="PROVIDER:MODEL")]
Capable = Annotated[str | None, typer.Option(help="The model of the capable tier.", metavar="PROVIDER:MODEL")]
Search = Annotated[
    str | None, typer.Option(help="Engines to search, the next where one fails: brave,local:NAME.", metavar="NAMES")
]
Offline = Annotated[bool, typer.Option("--offline", help="Ask the bundled sample web.")]
WorldFile = Annotated[Path | None, typer.Option("--world", help="Ask a recorded web and nothing else.", metavar="FILE")]
Repeats = Annotated[int, typer.Option(help="How often each question is asked.", metavar="N", min=1, max=100)]
MaxUsd = Annotated[
    str | None, typer.Option(help="The most that all commands on this --out may spend.", metavar="DOLLARS")
]
MaxCalls = Annotated[str | None, typer.Option(help="The most model calls of theirs.", metavar="N")]
Deadline = Annotated[str | None, typer.Option(help="Seconds that a run may take.", metavar="SECONDS")]
Yes = Annotated[bool, typer.Option("--yes", help="Spend without --max-usd.")]
Limit = Annotated[int | None, typer.Option(help="Only the first N questions.", metavar="N", min=1)]
Sample = Annotated[int | None, typer.Option(help="Only N questions drawn at random.", metavar="N", min=1)]
Seed = Annotated[int, typer.Option(help="Which random questions.", metavar="S")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Go on without rows that can't be read.")]
Force = Annotated[bool, typer.Option("--force", help="Run again what another recipe has answered, and replace it.")]
Parallel = Annotated[int | None, typer.Option(help="The most runs at once.", metavar="N", min=1)]
AsOf = Annotated[str | None, typer.Option(help="The date that prompts are told.", metavar="DATE")]
WebDate = Annotated[str | None, typer.Option(help="The day whose web is asked.", metavar="DATE")]
PriceAs = Annotated[
    str | None,
    typer.Option(
        "--price-as", help="Recorded tokens at the prices of other models: cheap=P:M,capable=P:M.", metavar="TIER=MODEL"
    ),
]


def compare(
    questions: File,
    out: Outs,
    pipeline: Annotated[
        list[str], typer.Option("-p", "--pipeline", help="A pipeline's name or file; give at least two.")
    ],
    repeats: Repeats = 1,
    cheap: Cheap = None,
    capable: Capable = None,
    search: Search = None,
    offline: Offline = False,
    world: WorldFile = None,
    isolate: Annotated[
        bool,
        typer.Option(
            "--isolate", help="A store for each pipeline and repeat, so that time is measured, not worked out."
        ),
    ] = False,
    judge: Annotated[
        bool, typer.Option("--judge", help="Let the capable model compare the answers too, each pair in both orders.")
    ] = False,
    price_as: PriceAs = None,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    deadline: Deadline = None,
    yes: Yes = False,
    limit: Limit = None,
    sample: Sample = None,
    seed: Seed = 0,
    skip_bad: SkipBad = False,
    force: Force = False,
    parallel: Parallel = None,
    as_of: AsOf = None,
    web_date: WebDate = None,
) -> None:
    """Run questions through several pipelines and report; stopped or killed, the same command goes on."""
    from ..errors import UsageError
    from ..questions import Questions
    from ..rows import Choice
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

    for out in outs:
        if out.suffix.lower() not in FORMATS:
            raise UsageError(f"--out {out}: a report is one of {', '.join(FORMATS)}")
        if out.is_dir() or not out.absolute().parent.is_dir():
            raise UsageError(f"--out {out}: that is no file in a folder that exists")
    return outs[0].with_suffix(".runs.jsonl")
