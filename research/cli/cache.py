"""`research cache`: what the store holds, and letting go of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pathlib import Path

group = typer.Typer(help="Look at the store of artifacts, and clear it.", no_args_is_help=True, rich_markup_mode=None)


@group.command()
def stats() -> None:
    """Tell what the store holds."""
    from .. import store

    folder = _folder()
    rows = store.stats(folder)
    print(f"{folder}")
    for name, (count, size) in rows.items():
        print(f"  {name:<13} {count:>8,}  {size / 1e6:>9,.1f} MB")


@group.command()
def prune(
    to: Annotated[float, typer.Option(help="Megabytes that may stay.", min=0)] = 1000,
    everything: Annotated[bool, typer.Option("--all", help="Model replies may go too, not pages only.")] = False,
) -> None:
    """Let go of pages, least recently used first, until the store is small enough."""
    from .. import store

    gone = store.prune(_folder(), int(to * 1e6), everything)
    print(f"{gone:,} values went.")


@group.command()
def clear(yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False) -> None:
    """Empty the store: all that was paid for is gone."""
    from .. import store

    folder = _folder()
    count = sum(count for name, (count, _) in store.stats(folder).items() if name != "traces")
    if not yes:
        typer.confirm(f"Drop all {count:,} values in {folder}?", abort=True, err=True)
    store.clear(folder)
    print(f"{count:,} values went.")


def _folder() -> Path:
    from ..errors import UsageError
    from ..settings import Settings

    folder = Settings.read().store
    if not (folder / "cache.db").is_file():
        raise UsageError(f"there is no store yet in {folder}; `research ask` makes one")
    return folder
