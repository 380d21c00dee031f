"""Paired comparisons in pure Python, seeded: bootstrap intervals, exact tests, corrections for many comparisons.

What is resampled is the question: repeats of one question are alike, and are averaged first.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

RESAMPLES = 4_000
LEVEL = 0.05
SEED = 20_250_301
FEWEST = 2  # values below which there is no interval


@dataclass(frozen=True)
class Interval:
    """A mean over `n` questions, with the ends of its 95 % interval; these are None where there are too few."""

    n: int
    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def excludes_zero(self) -> bool:
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def turned(self) -> Interval:
        """Of the values with the other sign."""
        low, high = (None if end is None else -end for end in (self.high, self.low))
        return Interval(self.n, -self.mean, low, high)


def bootstrap(values: Sequence[float], resamples: int = RESAMPLES, seed: int = SEED) -> Interval | None:
    """The mean of `values` with its percentile bootstrap interval (Efron, 1979); None without values."""
    if not values:
        return None
    count, mean = len(values), statistics.fmean(values)
    if count < FEWEST:
        return Interval(count, mean)
    if min(values) == max(values):
        return Interval(count, mean, mean, mean)
    draw = random.Random(seed).choices
    means = sorted(math.fsum(draw(values, k=count)) / count for _ in range(resamples))
    return Interval(count, mean, quantile(means, LEVEL / 2), quantile(means, 1 - LEVEL / 2))


def sign_test(differences: Iterable[float]) -> float:
    """The exact two-sided sign test: how likely signs as uneven as these are by chance. Zeros tell nothing.

    For differences of right and wrong it is McNemar's test in its exact form.

    >>> sign_test([1, 1, 1, 1, 1, 0]), sign_test([])
    (0.0625, 1.0)
    """
    signs = [value > 0 for value in differences if value]
    count = len(signs)
    fewer = min(sum(signs), count - sum(signs))
    tail: int = sum(math.comb(count, k) for k in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**count)))


def holm(chances: Sequence[float]) -> list[float]:
    """Each chance as it stands after so many comparisons (Holm, 1979): the family errs in 5 % of cases at most.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(chances)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=lambda place: chances[place])):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = highest
    return adjusted


def quantile(values: Iterable[float], share: float) -> float:
    """Linear between the nearest two values, as numpy and spreadsheets have it.

    >>> quantile([1.0, 2.0, 3.0, 10.0], 0.5)
    2.5
    """
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def within(groups: Iterable[Sequence[float]]) -> float | None:
    """The standard deviation between repeats of one question, pooled over questions; None without repeats."""
    squares, degrees = 0.0, 0
    for values in groups:
        if len(values) > 1:
            squares += statistics.variance(values) * (len(values) - 1)
            degrees += len(values) - 1
    return math.sqrt(squares / degrees) if degrees else None


def unsettled(groups: Iterable[Sequence[float]]) -> tuple[int, int]:
    """Of how many questions not all repeats came out the same, of how many with repeats."""
    repeated = [values for values in groups if len(values) > 1]
    return sum(len(set(values)) > 1 for values in repeated), len(repeated)
