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
    print(f"{folder}" if rows else f"{folder}: nothing is in it")
    if rows:
        rows["in all"] = (sum(count for count, _ in rows.values()), sum(size for _, size in rows.values()))
    for name, (count, size) in rows.items():
        print(f"  {name:<13} {count:>8,}  {_size(size):>12}")


def _size(size: int) -> str:
    """
    >>> _size(400), _size(20_400), _size(3_450_000)
    ('400 B', '20.4 kB', '3.5 MB')
    """
    return f"{size:,} B" if size < 1_000 else f"{size / 1e3:,.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


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
    if yes or _agreed(f"Drop all {count:,} values in {folder}?"):
        store.clear(folder)
        print(f"{count:,} values went.")
    else:
        print("Nothing was cleared.")


def _agreed(question: str) -> bool:
    """What the user says.

    Raises: typer.Exit where they say nothing.
    """
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input
        print("\nNothing was cleared.")
        raise typer.Exit(130) from None


def _folder() -> Path:
    from ..errors import UsageError
    from ..settings import Settings

    folder = Settings.read().store
    if not (folder / "cache.db").is_file():
        raise UsageError(f"there is no store yet in {folder}; `research ask` makes one")
    return folder
