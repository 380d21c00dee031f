"""`research diff`: two runs of a question, held against each other."""

from __future__ import annotations

from typing import Annotated

import typer

RunId = Annotated[str, typer.Argument(help="A run's id, as `research runs` lists them.", metavar="RUN")]


def diff(
    first: RunId,
    second: RunId,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Tell what differs between two runs: stages, queries, sources, facts, sentences, cost."""
    from dataclasses import asdict

    from ..diff import diff as compared
    from ..diff import told
    from ..output import as_json, clean
    from ..runs import Runs
    from ..settings import Settings
    from ..store import Store

    settings = Settings.read()
    runs, store = Runs(settings.runs), Store(settings.store)
    try:
        found = compared(runs.open(first), runs.open(second), store)
    finally:
        store.close()
    if json:
        print(as_json(asdict(found)))
        return
    for line in told(found):
        print(clean(line))
