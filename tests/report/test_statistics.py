"""The statistics, against scipy's and against calculations by hand."""

from __future__ import annotations

import math
import random

import pytest

from research.report.statistics import Interval, bootstrap, holm, quantile, sign_test, unsettled, within

stats = pytest.importorskip("scipy.stats")

VALUES = [0.1, -0.4, 2.5, 1.2, 0.0, 0.3, -1.1, 0.9, 0.8, 4.2, 0.2, -0.3, 1.7, 0.6, 0.5]


@pytest.mark.parametrize("values", [VALUES, [0.0] * 30 + [1.0] * 12 + [-1.0] * 5, [math.exp(n / 7) for n in range(40)]])
def test_the_interval_is_scipys_percentile_bootstrap(values: list[float]) -> None:
    import numpy

    made = bootstrap(values, resamples=20_000)
    theirs = stats.bootstrap(
        (values,),
        numpy.mean,
        n_resamples=20_000,
        method="percentile",
        confidence_level=0.95,
        rng=numpy.random.default_rng(7),
    ).confidence_interval
    assert made is not None
    error = numpy.std(values) / math.sqrt(len(values))
    assert made.mean == pytest.approx(numpy.mean(values))
    assert made.low == pytest.approx(theirs.low, abs=0.1 * error)
    assert made.high == pytest.approx(theirs.high, abs=0.1 * error)


def test_the_interval_is_the_same_each_time_and_has_its_limits() -> None:
    assert bootstrap(VALUES) == bootstrap(VALUES)
    assert bootstrap([]) is None
    assert bootstrap([3.0]) == Interval(1, 3.0)
    assert bootstrap([2.0, 2.0, 2.0]) == Interval(3, 2.0, 2.0, 2.0)
    assert not Interval(1, 3.0).excludes_zero
    assert Interval(5, 1.0, 0.1, 2.0).excludes_zero
    assert not Interval(5, 1.0, 0.0, 2.0).excludes_zero


@pytest.mark.parametrize(("up", "down"), [(0, 0), (5, 0), (8, 2), (10, 10), (40, 22), (3, 7), (300, 250)])
def test_the_sign_test_is_scipys_binomial_test(up: int, down: int) -> None:
    expected = stats.binomtest(up, up + down, 0.5).pvalue if up + down else 1.0
    differences = [1.0] * up + [-0.5] * down + [0.0] * 9
    random.Random(1).shuffle(differences)
    assert sign_test(differences) == pytest.approx(expected)


def test_the_sign_test_of_right_and_wrong_is_mcnemars() -> None:
    """Fagerland, Lydersen and Laake (2013): 1 and 7 discordant pairs, exact two-sided p = 0.0703."""
    assert sign_test([1] * 1 + [-1] * 7 + [0] * 13) == pytest.approx(0.0703125)


def test_holm_by_hand() -> None:
    """0.005 × 4, 0.011 × 3, 0.02 × 2, 0.04 × 1, each at least the one before."""
    assert holm([0.02, 0.04, 0.005, 0.011]) == pytest.approx([0.04, 0.04, 0.02, 0.033])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_quantiles_are_numpys() -> None:
    import numpy

    for share in (0.0, 0.05, 0.5, 0.77, 0.95, 1.0):
        assert quantile(VALUES, share) == pytest.approx(numpy.quantile(VALUES, share))


def test_the_spread_between_repeats_by_hand() -> None:
    """Squares about the means: 2 + 0.5, over 2 + 1 degrees of freedom."""
    assert within([[1.0, 2.0, 3.0], [4.0, 5.0], [9.0]]) == pytest.approx(math.sqrt(2.5 / 3))
    assert within([[1.0], [2.0]]) is None
    assert unsettled([[1.0, 1.0], [1.0, 0.0], [1.0]]) == (1, 2)
