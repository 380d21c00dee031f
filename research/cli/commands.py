"""The commands and their groups. Each is imported when it is called, so that help and answers start fast."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

PLAIN = {"rich_markup_mode": None, "add_completion": False, "pretty_exceptions_enable": False}

# name: where it is, and the first line of its help
COMMANDS = {
    "ask": ("ask", "Answer a question from the web, with citations."),
    "batch": ("batch", "Answer a file of questions, and take up again where it stopped."),
    "compare": ("compare", "Run questions through several pipelines, and compare cost, time and quality."),
    "report": ("report", "Make the report of a comparison from the runs that are there."),
    "advise": ("advise", "Tell which stages can go cheap."),
    "diff": ("diff", "Hold two runs against each other."),
    "show": ("runs", "Print a run's answer, what it rests on, or any artifact."),
    "why": ("runs", "Tell why each stage was reused or made."),
    "runs": ("runs", "List the runs, newest first."),
    "models": ("models", "Tell what each tier means, and what it costs."),
    "doctor": ("doctor", "Tell every setting with its origin, and what answers."),
    "pipelines": ("pipelines", "List, print, check and draw pipelines."),
    "cache": ("cache", "Look at the store of artifacts, and clear it."),
    "index": ("index", "Index documents of your own."),
    "mcp": ("mcp", "Offer ask, search and fetch to MCP clients, over stdio."),
}
GROUPS = {"pipelines", "cache", "index"}


def _where_needed(whole: Any) -> Any:
    """A parameter's `process_value` that leaves typer's conversion out where there is nothing to convert.

    Typer makes a pydantic validator of each parameter, given or not: half of what `ask --help` took.
    """

    def process_value(self: Any, ctx: Any, value: Any) -> Any:
        if value is None and not self.required:
            return () if self.multiple or self.nargs == -1 else None
        if type(value) is str:  # which may stand for a path, or for one of several
            converts = self.type_descriptor.annotation is not str or self.callback is not None
        else:
            converts = value is None or value is not self.default
        return whole(self, ctx, value) if converts else value

    return process_value


for parameter in TyperOption, TyperArgument:
    if hasattr(parameter, "get_runtime_param"):  # an older typer converts otherwise, and has other values for none
        parameter.process_value = _where_needed(parameter.process_value)  # type: ignore[method-assign]


class Commands(TyperGroup):
    """The group of all commands, which imports a command when it is asked for it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Raises: UsageError for a command that there is not."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from ..errors import UsageError
            from ..values import near

            hint = near(args[0], COMMANDS) or "; `research --help` lists them"
            raise UsageError(f"there is no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".{COMMANDS[cmd_name][0]}", __package__)
        if cmd_name in GROUPS:
            command: Any = typer.main.get_group(module.group)
        else:
            alone = typer.Typer(**PLAIN)  # type: ignore[arg-type]
            alone.command(cmd_name)(getattr(module, cmd_name))
            command = typer.main.get_command(alone)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in COMMANDS.items()])


app = typer.Typer(
    name="research",
    cls=Commands,
    help="Answer questions from the web, with citations that can be checked, at a cost that is known.",
    no_args_is_help=True,
    **PLAIN,  # type: ignore[arg-type]
)


@app.callback(invoke_without_command=True)
def research(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        from .. import __version__

        print(__version__)
        raise typer.Exit
