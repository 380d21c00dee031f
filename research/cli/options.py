"""Options that several commands have, said in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Pipeline = Annotated[str | None, typer.Option("-p", "--pipeline", help="A pipeline's name or file; fixed unless set.")]
Cheap = Annotated[str | None, typer.Option(help="The model of the cheap tier.", metavar="PROVIDER:MODEL")]
Capable = Annotated[str | None, typer.Option(help="The model of the capable tier.", metavar="PROVIDER:MODEL")]
Search = Annotated[
    str | None, typer.Option(help="Engines to search, the next where one fails: brave,local:NAME.", metavar="NAMES")
]
Offline = Annotated[bool, typer.Option("--offline", help="Ask the bundled sample web.")]
World = Annotated[Path | None, typer.Option("--world", help="Ask a recorded web and nothing else.", metavar="FILE")]
AsOf = Annotated[str | None, typer.Option(help="The date that prompts are told.", metavar="DATE")]
WebDate = Annotated[str | None, typer.Option(help="The day whose web is asked.", metavar="DATE")]

# Of commands that run many questions; see `groups`
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Go on without rows that can't be read.")]
Force = Annotated[bool, typer.Option("--force", help="Run again what another recipe has answered, and replace it.")]

# Of commands that compare
Questions = Annotated[
    Path, typer.Argument(help="A file of questions, best with reference answers, as `research batch` reads.")
]
Repeats = Annotated[int, typer.Option(help="How often each question is asked.", metavar="N", min=1, max=100)]
PriceAs = Annotated[
    str | None,
    typer.Option(
        "--price-as", help="Recorded tokens at the prices of other models: cheap=P:M,capable=P:M.", metavar="TIER=MODEL"
    ),
]
