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

    index = Settings.read().index_of(webs.checked(name))
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


@group.command("list")
def list_() -> None:
    """List the indexes."""
    import sys

    from ..settings import Settings
    from .columns import printed

    files = sorted(Settings.read().index_of("x").parent.glob("*.db"))
    wide = max((len(file.stem) for file in files), default=0)
    printed((f"{file.stem:<{wide}}  {_held(file)}" for file in files), wide + 2)
    if not files:
        print("There are no indexes yet; `research index build FOLDER` makes one.", file=sys.stderr)


def _held(file: Path) -> str:
    """What an index holds: documents, megabytes."""
    from ..errors import ResearchError
    from ..output import clean, counted
    from ..web.index import documents

    try:
        held = counted(documents(file), "document")
    except ResearchError as error:
        return clean(str(error))
    return f"{held}, {file.stat().st_size / 1e6:,.1f} MB"


@group.command()
def remove(name: Annotated[str, typer.Argument(help="An index's name, as `research index list` lists them.")]) -> None:
    """Remove an index; the documents themselves stay."""
    from ..settings import Settings
    from ..webs import removed

    print(f"{removed(Settings.read(), name)} is gone; the documents themselves stay.")
