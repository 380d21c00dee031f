"""The commands and their groups. Each imports what it needs when it runs, so that help is instant."""

from __future__ import annotations

import typer

from . import advise, ask, batch, cache, compare, diff, doctor, index, models, pipelines, report, runs

app = typer.Typer(
    name="research",
    help="Answer questions from the web, with citations that can be checked, at a cost that is known.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("ask")(ask.ask)
app.command("batch")(batch.batch)
app.command("compare")(compare.compare)
app.command("report")(report.report)
app.command("advise")(advise.advise)
app.command("diff")(diff.diff)
app.command("show")(runs.show)
app.command("why")(runs.why)
app.command("runs")(runs.runs)
app.command("models")(models.models)
app.command("doctor")(doctor.doctor)
app.add_typer(pipelines.group, name="pipelines")
app.add_typer(cache.group, name="cache")
app.add_typer(index.group, name="index")


@app.callback(invoke_without_command=True)
def research(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        from .. import __version__

        print(__version__)
        raise typer.Exit
