"""`research pipelines`: what pipelines there are, and whether a file is sound."""

from __future__ import annotations

from typing import Annotated

import typer

group = typer.Typer(help="List, print, check and draw pipelines.", no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(help="A pipeline's name or file.", metavar="PIPELINE")]


@group.command("list")
def list_() -> None:
    """List the pipelines that come with the program."""
    from ..app import load_pipeline
    from ..settings import PIPELINES
    from .columns import printed

    files = sorted(PIPELINES.glob("*.toml"))
    printed((f"{file.stem:<12} {load_pipeline(file.stem).description}" for file in files), 13)


@group.command()
def show(name: Name) -> None:
    """Print a pipeline file."""
    from ..app import load_pipeline

    print(load_pipeline(name).text, end="")


@group.command()
def check(name: Name) -> None:
    """Check a pipeline file, and tell every mistake in it."""
    from ..app import load_pipeline

    pipeline = load_pipeline(name)
    print(f"{pipeline.name}: {len(pipeline.stages)} stages, no mistakes")


@group.command()
def graph(name: Name) -> None:
    """Draw a pipeline as a Mermaid flowchart."""
    from ..app import load_pipeline
    from ..drawing import mermaid

    print(mermaid(load_pipeline(name)))
