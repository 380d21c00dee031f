"""`research report`: the report of runs that are there. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .compare import Outs, runs_file

if TYPE_CHECKING:
    from ..report import Gathered
    from ..report.pricing import Price


def report(
    runs: Annotated[
        list[str], typer.Argument(help="Files of runs (compare's .runs.jsonl, batch's results), or run ids.")
    ],
    out: Outs,
    price_as: options.PriceAs = None,
) -> None:
    """Write the report of runs that are there; nothing is run, and nothing is paid."""
    import os
    import sys

    from ..output import clean
    from ..report import gather, pricing
    from ..runs import Runs
    from ..settings import Settings

    runs_file(out)
    settings = Settings.read()
    priced = pricing.parse(price_as) if price_as else {}
    gathered = gather(runs, Runs(settings.runs))
    from ..llm.prices import Prices

    deliver(out, gathered, Prices(settings, os.environ).price, priced, lambda text: print(clean(text), file=sys.stderr))


def deliver(
    outs: Sequence[Path], gathered: Gathered, price: Price, priced: Mapping[str, str], tell: Callable[[str], None]
) -> None:
    """Write each report, and tell its summary.

    Raises: StoreError if one can't be written.
    """
    from ..report.rendering import made, written
    from ..report.wording import summary

    report = made(gathered, price, priced)
    for out in outs:
        written(report, out)
    for sentence in summary(report):
        tell(sentence)
    tell(f"Report: {', '.join(map(str, outs))}")
