"""The judge of a comparison: each pair of answers to a question, noted beside the runs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import BudgetError, ResearchError
from ..judging import Judge, Pair
from ..ledger import NANO
from ..report.quality import bare
from ..results import DONE
from ..store import key_of

if TYPE_CHECKING:
    from ..report import Trial
    from .compare_run import Comparing

AT_ONCE = 4


def judge_of(comparing: Comparing) -> Judge:
    """The capable model as a judge, who spends of the comparison's budget.

    Raises: UsageError for a model that can't judge.
    """
    from ..limits.budget import Purse

    model = comparing.tiers.models(["capable"])["capable"]
    purse = Purse(comparing.budget, lambda: (0, 0))
    return Judge(model, comparing.app.store, comparing.tiers.prices.price, purse)


async def judged(comparing: Comparing, judge: Judge) -> None:
    """Judges what has not been judged: the first sample of each question, all pairs of pipelines.

    Raises: BudgetError at the cap. What the judge could not say is told.
    """
    recipe = key_of(judge.recipe)[:32]
    slots = asyncio.Semaphore(comparing.wish.conditions.parallel or AT_ONCE)
    try:
        async with asyncio.TaskGroup() as group:
            for first, second in pairs(comparing):
                group.create_task(_one(comparing, judge, recipe, first, second, slots))
    except* BudgetError as errors:
        raise errors.exceptions[0] from None
    finally:
        if judge.purse is not None:
            judge.purse.close()


def pairs(comparing: Comparing) -> Iterator[tuple[Trial, Trial]]:
    """Of each question the answers of each two pipelines, in the order of the pipelines."""
    order = [side.name for side in comparing.sides]
    questions: dict[str, list[Trial]] = {}
    for trial in comparing.gathered().trials:
        if trial.sample == 0 and trial.answer is not None:
            questions.setdefault(trial.question, []).append(trial)
    for trials in questions.values():
        yield from itertools.combinations(sorted(trials, key=lambda trial: order.index(trial.pipeline)), 2)


async def _one(
    comparing: Comparing, judge: Judge, recipe: str, first: Trial, second: Trial, slots: asyncio.Semaphore
) -> None:
    async with slots:
        try:
            record = await verdict_of(judge, first, second, comparing.dates.as_of)
        except BudgetError:
            raise
        except ResearchError as error:
            comparing.view.line(f"  the judge: {first.question}, {first.pipeline} and {second.pipeline}: {error}")
            return
    comparing.results.append({**record, "recipe": recipe})


async def verdict_of(judge: Judge, first: Trial, second: Trial, as_of: str) -> dict[str, Any]:
    """The record of one verdict."""
    pair = Pair(first.text, first.references, _text(first), _text(second), as_of)
    verdict = await judge.compare(pair)
    return {
        "id": f"judge · {first.question} · {first.pipeline} · {second.pipeline}",
        "row": 10**9,
        "of": first.question,
        "question": first.text,
        "state": DONE,
        "paid": {"usd": verdict.paid / NANO},
        "judge": {
            "model": judge.model.name,
            "first": first.pipeline,
            "second": second.pipeline,
            "forward": verdict.forward,
            "backward": verdict.backward,
            "swayed": verdict.swayed,
            "preference": verdict.preference,
            "reasons": list(verdict.reasons),
            "usd": verdict.usd,
        },
    }


def _text(trial: Trial) -> str:
    return "" if trial.answer is None else bare(trial.answer)
