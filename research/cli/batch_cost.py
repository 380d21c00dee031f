"""What a batch may cost: told before it is run, agreed to, and projected from a sample."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..batch import LocalRows, Selection
from ..errors import UsageError
from ..ledger import dollars
from ..results import DONE, Results

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..pipeline import Pipeline
    from ..questions import Row
    from ..tiers import Tiers
    from .batch import Wish
    from .groups import Backends

# Student's t for a two-sided interval of 95 %, by degrees of freedom: 1 to 30, then that of the normal distribution.
T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, 1.960,
)  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """Of so many rows: nano-dollars as expected and at worst; `unknown` stages have no known price."""

    rows: int
    usd: float
    worst: float
    unknown: int

    def __str__(self) -> str:
        worst = "unbounded" if self.worst == math.inf else dollars(math.ceil(self.worst), self.unknown)
        return f"{self.rows:,} rows: expected {dollars(math.ceil(self.usd), self.unknown)}, at worst {worst}"


def tell(wish: Wish, pipeline: Pipeline, tiers: Tiers) -> None:
    """What the rows that are left may cost. Nothing is sent, and no key is needed."""
    from .columns import printed, room
    from .forecast import table

    selection = _selection(wish)
    lengths = [len(row.question.text) for row in selection.left()]
    if not lengths:
        print("No row is left to be run.")
        return
    rows, sums = _forecast(wish.backends, pipeline, tiers, "x" * round(statistics.fmean(lengths)))
    print("For a question of mean length:\n")
    printed([*table(rows, sums, room()), "", str(cost(wish.backends, pipeline, tiers, selection.left()))])


def _selection(wish: Wish) -> Selection:
    if not wish.out.exists():
        return Selection(wish.questions, wish.choice, {})
    results = Results(wish.out)
    results.close()
    return Selection(wish.questions, wish.choice, results.past)


def cost(backends: Backends, pipeline: Pipeline, tiers: Tiers, rows: Iterable[Row]) -> Cost:
    """The worst case is that of the longest question, as often as there are rows."""
    count = length = 0
    longest = ""
    for row in rows:
        count += 1
        length += len(row.question.text)
        longest = max(longest, row.question.text, key=lambda text: len(text.encode()))
    mean = _forecast(backends, pipeline, tiers, "x" * round(length / max(1, count)))[1]
    worst = _forecast(backends, pipeline, tiers, longest)[1]
    return Cost(count, count * mean["usd"], count * worst["worst_usd"] if count else 0, worst["unknown"])


def _forecast(backends: Backends, pipeline: Pipeline, tiers: Tiers, question: str) -> tuple[list, dict]:  # type: ignore[type-arg]
    from ..forecast import Terms, forecast, total
    from .forecast import fees

    names = dict.fromkeys(model for stage in pipeline.stages.values() for model in stage.models)
    models = {name: tiers.named(name) for name in names}
    engines = fees(tiers, backends.recorded)
    rows = forecast(pipeline, question, Terms(models, tiers.prices.price, tiers.thinking, engines))
    return rows, total(rows)


def agreed(wish: Wish, pipeline: Pipeline, tiers: Tiers, rows: LocalRows) -> None:
    """Raises: UsageError if it may cost money, and neither --max-usd nor --yes says how much may be spent."""
    capped = tiers.settings.max_usd not in ("", "none")
    if capped or wish.spending.yes or not rows.left or is_free(wish.backends, pipeline, tiers):
        return
    told = cost(wish.backends, pipeline, tiers, rows.selection.left())
    if told.worst or told.unknown:
        raise UsageError(f"{told}. Add --max-usd DOLLARS as a cap, or --yes to spend without one")


def is_free(backends: Backends, pipeline: Pipeline, tiers: Tiers) -> bool:
    """Whether all models and engines cost nothing."""
    from .forecast import fees

    names = dict.fromkeys(model for stage in pipeline.stages.values() for model in stage.models)
    free = all(tiers.prices.free(tiers.named(name)) for name in names)
    return free and not any(fee != 0 for fee in fees(tiers, backends.recorded).values())


def tell_projection(wish: Wish, rows: LocalRows, recipe: str) -> None:
    """From the rows of a sample to all: the expected cost with an interval of 95 %."""
    sampled = {row.id for row in rows.selection.rows()}
    costs, unknown = [], 0
    for record in rows.results.records():
        if record["id"] in sampled and record["state"] == DONE and record["recipe"] == recipe:
            costs.append(float(record["as_if_cold"]["usd"]))
            unknown += record["as_if_cold"]["unknown_prices"]
    others = sum(1 for row in wish.questions.rows() if not rows.selection.is_done(row) and row.id not in sampled)
    if not costs:
        print("No row of the sample came to an ending, so nothing can be projected.")
        return
    mean, either = interval(costs)
    told = [dollars(max(0, round(nano * 1e9)), unknown) for nano in (others * mean, *(others * end for end in either))]
    from .columns import printed

    printed([
        f"From {len(costs)} rows at {dollars(round(mean * 1e9), unknown)} each, as if cold: {others:,} further rows "
        f"are expected to cost {told[0]} (95 % interval {told[1]} to {told[2]}). What the store holds costs nothing."
    ])  # fmt: skip


def interval(values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The mean, and the ends of its interval of 95 % by Student's t.

    >>> mean, (low, high) = interval([1.0, 2.0, 3.0])
    >>> mean, round(low, 3), round(high, 3)
    (2.0, -0.484, 4.484)
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, (mean, mean)
    wide = T95[min(len(values) - 1, len(T95)) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return mean, (mean - wide, mean + wide)
