"""What a run may spend: the caps that are set, the default ceiling, the share that is kept for the answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import BudgetError, UsageError
from .limits.budget import Budget, Caps
from .records import Answer, Ending

if TYPE_CHECKING:
    from .llm.messages import Model, Usage
    from .pipeline import Pipeline, Stage
    from .settings import Settings

    Price = Callable[[str, Usage], int | None]

DEFAULT = Caps(usd=500_000_000, seconds=120.0)  # of one question, where models cost money and nothing else is said
SHOWN = 8_000  # tokens that the answer's prompt is mostly filled with, at most
PROBE = 1_000  # tokens; enough that no price is rounded to nothing


def caps_of(settings: Settings, paid: bool) -> Caps:
    """The caps of one question. `paid` tells whether a model may cost money: then the default ceiling holds.

    Raises: UsageError for a setting that is no cap.
    """
    caps = Caps.parse(settings.max_usd or None, settings.max_calls or None, settings.deadline or None)
    if paid and not settings.max_usd:
        caps = caps._replace(usd=DEFAULT.usd)
    if paid and not settings.deadline:
        caps = caps._replace(seconds=DEFAULT.seconds)
    return caps


def budget_of(settings: Settings, models: Iterable[Model], free: Callable[[str], bool]) -> Budget:
    """The budget of one question, under the default ceiling if a model may cost money.

    Raises: UsageError for a setting that is no cap.
    """
    return Budget(caps_of(settings, paid=not all(free(model.name) for model in models)))


def plan(
    pipeline: Pipeline, models: Mapping[str, Model], price: Price, fees: Mapping[str, int | None], caps: Caps
) -> tuple[int, int]:
    """The share (nano-dollars, calls) that is kept for the answer, asked for before anything is sent.

    `fees` are those of the engines that may be asked. Raises: UsageError if dollars are capped
    and a price is not known.
    """
    from .llm.messages import Usage

    if caps.usd is not None:
        if unpriced := [name for name, fee in fees.items() if fee is None]:
            raise UsageError(
                f"what a search of {', '.join(unpriced)} costs is unknown, so a cap in dollars can't be kept. Set it "
                f"in the user's config, [engines.{unpriced[0]}] with usd_per_search, or spend without: --max-usd none"
            )
        bound = dict.fromkeys(models[tier].name for stage in pipeline.stages.values() for tier in stage.models)
        unknown = [name for name in bound if price(name, Usage(input=PROBE, output=PROBE)) is None]
        if unknown:
            raise UsageError(
                f"the price of {', '.join(unknown)} is unknown, so a cap in dollars can't be kept. Set it in the "
                f'user\'s config, [prices."{unknown[0]}"] with input and output, or spend without: --max-usd none'
            )
    usd = calls = 0
    for stage in pipeline.stages.values():
        if makes_answer(stage) and stage.sampling is not None and stage.prompt is not None:
            told = math.ceil(len(stage.prompt.text.encode()) / 3) + SHOWN
            said = stage.sampling.max_tokens + stage.sampling.reasoning_tokens
            usd += price(models[stage.model].name, Usage(input=told, output=said)) or 0
            calls += 1
    return usd, calls


def searches(pipeline: Pipeline) -> bool:
    stages = pipeline.stages.values()
    return any(one.kind.web == "search" for stage in stages for one in (stage, *stage.parts.values()))


def makes_answer(stage: Stage) -> bool:
    return stage.kind.gives is Answer


def cut_short(answer: Answer, lines: Iterable[Mapping[str, Any]]) -> Answer:
    """The answer as it is called where the budget left something out: a part of one at best.

    Raises: BudgetError where there is none, since more might have given one.
    """
    left = [line for line in lines if line["event"] == "dropped" and line.get("cause") == "budget"]
    if not left:
        return answer
    if answer.ending is Ending.NOT:
        raise BudgetError(left[0]["reason"])
    counts = Counter(line["stage"] for line in left)
    told = " and ".join(f"{count} of {stage}" for stage, count in counts.items())
    reason = f"the budget was used up before {told} could be done; run it again with more"
    if answer.ending is Ending.PARTLY and answer.reason:
        reason = f"{answer.reason}; {reason}"
    return answer.model_copy(update={"ending": Ending.PARTLY, "reason": reason})
