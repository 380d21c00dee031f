"""`research index`: documents of one's own, to search with `--search local:NAME`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

group = typer.Typer(help="Index documents of your own.", no_args_is_help=True, rich_markup_mode=None)


@group.command()
def build(
    folder: Annotated[Path, typer.Argument(help="A folder of HTML, Markdown, text and PDF, or a JSONL file.")],
    name: Annotated[str, typer.Option("--name", help="What to call it.", metavar="NAME")] = "docs",
) -> None:
    """Make an index of a folder, or bring it up to date."""
    from ..errors import UsageError
    from .ending import run

    if not folder.exists():
        raise UsageError(f"there is no {folder}; name a folder or a JSONL file")
    run(_build(folder, name))


async def _build(folder: Path, name: str) -> int:
    import sys

    from .. import webs
    from ..output import clean
    from ..settings import Settings

    index = Settings.read().index(webs.checked(name))
    report = await webs.build(index, folder)
    for unreadable in report.unreadable:
        print(f"  {clean(unreadable.place)}: {clean(unreadable.reason)}", file=sys.stderr)
    counts = {
        "added": report.added,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "removed": report.removed,
    }
    counts["unreadable"] = len(report.unreadable)
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    print(f"{told}. Ask it with: research ask --search local:{name} QUESTION")
    return 0
