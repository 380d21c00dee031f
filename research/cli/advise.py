"""`research advise`: which stages can go cheap, and what each stage buys."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .compare import Wish, runs_file
from .groups import Backends, Conditions, Spending, Subset, ungrouped

if TYPE_CHECKING:
    from ..pipeline import Pipeline
    from .compare_run import Comparing


@ungrouped
def advise(
    *,
    questions: options.Questions,
    pipeline: Annotated[
        str, typer.Option("-p", "--pipeline", help="The pipeline whose stages are advised on.")
    ] = "fixed",
    stages: Annotated[
        bool, typer.Option("--stages", help="What each stage buys: fixed against top-n, snippets and closed-book.")
    ] = False,
    out: Annotated[
        list[Path] | None, typer.Option("-o", "--out", help="Write a report too: .html, .md, .json or .csv.")
    ] = None,
    repeats: options.Repeats = 1,
    backends: Backends,
    spending: Spending,
    subset: Subset,
    skip_bad: options.SkipBad = False,
    force: options.Force = False,
    conditions: Conditions,
    json: Annotated[bool, typer.Option("--json", help="Print the advice as JSON.")] = False,
) -> None:
    """Swap one stage's tier at a time, all before it from the store, and tell which stages can go cheap."""
    from ..batch import Choice
    from ..questions import Questions
    from .ending import run

    file = runs_file(out) if out else _kept(questions, pipeline, stages)
    choice = Choice(*subset, force=force or not out)  # nobody has named a file that could be overwritten
    wish = Wish(
        Questions(questions), file, choice, skip_bad, backends, spending, conditions,
        outs=tuple(out or ()), pipelines=(pipeline,), repeats=repeats,
    )  # fmt: skip
    run(_bought(wish, json) if stages else _advised(wish, json))


def _kept(questions: Path, pipeline: str, stages: bool) -> Path:
    """Where the runs are noted if no report is asked for."""
    from ..settings import Settings
    from ..store import key_of

    folder = Settings.read().home / "advice"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{key_of([str(questions.resolve()), pipeline, stages])[:24]}.runs.jsonl"


async def _advised(wish: Wish, json: bool) -> int:
    from ..advise import advice, swaps, told
    from ..app import load_pipeline
    from ..errors import UsageError

    [name] = wish.pipelines
    pipeline = load_pipeline(name)
    found = swaps(pipeline)
    async with _comparing(wish, [pipeline, *(swap.pipeline for swap in found)]) as comparing:
        tiers = comparing.tiers
        if tiers.named("cheap") == tiers.named("capable"):
            raise UsageError(
                f"both tiers are {tiers.named('cheap')}: give --cheap and --capable two models to choose from"
            )
        code = await comparing.run()
        made = advice(comparing.gathered().trials, pipeline, found)
        if json:
            _print_json(
                [
                    {"stage": one.stage, "tier": one.was, "needs_capable": one.needs_capable, "told": one.told}
                    for one in made
                ]
            )
        else:
            _print(told(made))
        _report(comparing)
    return code


async def _bought(wish: Wish, json: bool) -> int:
    from ..advise import LADDER_PIPELINES, bought
    from ..app import load_pipeline

    async with _comparing(wish, [load_pipeline(name) for name in LADDER_PIPELINES]) as comparing:
        code = await comparing.run()
        lines = [*bought(comparing.gathered().trials)]
        if json:
            _print_json(lines)
        else:
            _print(lines)
        _report(comparing)
    return code


def _comparing(wish: Wish, pipelines: list[Pipeline]) -> Comparing:
    import sys

    from .batch_view import View
    from .compare_run import Comparing

    return Comparing(wish, pipelines, View.on(sys.stderr))


def _report(comparing: Comparing) -> None:
    """The report, if one was asked for."""
    from .report import deliver

    if outs := comparing.wish.outs:
        deliver(outs, comparing.gathered(), comparing.tiers.prices.price, {}, comparing.view.line)


def _print(lines: Iterable[str]) -> None:
    from ..output import clean

    for line in lines:
        print(clean(line))


def _print_json(data: list[Any]) -> None:
    from ..output import as_json

    print(as_json(data))
