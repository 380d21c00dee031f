"""Options that commands of many questions take together, as records, and what such a command is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from . import options

if TYPE_CHECKING:
    from ..batch import Choice
    from ..questions import Questions


class Backends(NamedTuple):
    """What answers: models, engines, and the web."""

    cheap: options.Cheap = None
    capable: options.Capable = None
    search: options.Search = None
    offline: options.Offline = False
    world: options.World = None

    @property
    def recorded(self) -> bool:
        """Whether the web costs nothing."""
        return self.offline or self.world is not None

    @property
    def settings(self) -> dict[str, str | None]:
        return {"cheap": self.cheap, "capable": self.capable, "search": self.search}


class Spending(NamedTuple):
    """What may be spent."""

    max_usd: Annotated[
        str | None, typer.Option(help="The most that all commands on this --out may spend.", metavar="DOLLARS")
    ] = None
    max_calls: Annotated[str | None, typer.Option(help="The most model calls of theirs.", metavar="N")] = None
    deadline: Annotated[str | None, typer.Option(help="Seconds that one question may take.", metavar="SECONDS")] = None
    yes: Annotated[bool, typer.Option("--yes", help="Spend without --max-usd.")] = False

    @property
    def settings(self) -> dict[str, str | None]:
        return {"max_usd": self.max_usd, "max_calls": self.max_calls, "deadline": self.deadline}


class Subset(NamedTuple):
    """Which questions."""

    limit: Annotated[int | None, typer.Option(help="Only the first N questions.", metavar="N", min=1)] = None
    sample: Annotated[int | None, typer.Option(help="Only N questions drawn at random.", metavar="N", min=1)] = None
    seed: Annotated[int, typer.Option(help="Which random questions.", metavar="S")] = 0


class Conditions(NamedTuple):
    """How many questions at once, and as of when."""

    parallel: Annotated[
        int | None, typer.Option(help="The most questions at once; found out unless set.", metavar="N", min=1)
    ] = None
    as_of: options.AsOf = None
    web_date: options.WebDate = None


GROUPS = (Backends, Spending, Subset, Conditions)


def ungrouped(command: Callable[..., None]) -> Callable[..., None]:
    """`command` as typer can read it: in place of each group its options. All parameters are named ones."""
    whole = signature(command, eval_str=True).parameters.values()
    groups = {parameter.name: parameter.annotation for parameter in whole if parameter.annotation in GROUPS}

    @wraps(command)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{option: given.pop(option) for option in group._fields})
        command(**given)

    called.__signature__ = Signature([*chain.from_iterable(map(_options, whole))])  # type: ignore[attr-defined]
    return called


def _options(parameter: Parameter) -> list[Parameter]:
    """Those of a group; any other parameter stays as it is."""
    if (group := parameter.annotation) not in GROUPS:
        return [parameter]
    defaults, hints = group._field_defaults, get_type_hints(group, include_extras=True)
    return [parameter.replace(name=name, default=defaults[name], annotation=hints[name]) for name in group._fields]


@dataclass(frozen=True)
class Wish:
    """What the command line asks for."""

    questions: Questions
    out: Path
    choice: Choice
    skip_bad: bool
    backends: Backends
    spending: Spending
    conditions: Conditions

    @property
    def flags(self) -> dict[str, str | None]:
        """Settings that it gives."""
        return self.backends.settings | self.spending.settings
