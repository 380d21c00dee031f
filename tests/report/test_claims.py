"""What a report claims: on data without a difference hardly ever, on data with one as often as theory says."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator

import pytest

from research.report import figures as module
from research.report.figures import Figures
from research.report.gathering import Trial
from research.report.statistics import bootstrap
from tests.report.trials import failed, paired, took, trial

REPETITIONS = 200


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of fewer resamples, so that hundreds of reports are made in seconds."""
    monkeypatch.setattr(module, "bootstrap", functools.partial(bootstrap, resamples=300))


def simulated(
    chance: random.Random, questions: int, right: tuple[float, float], slower: float = 1.0
) -> Iterator[Trial]:
    """Two repeats of each question, whose difficulty both pipelines share; costs and times are spread widely."""
    for number in range(questions):
        easier = chance.gauss(0, 0.2)
        for name, mean, factor in (("a", right[0], 1.0), ("b", right[1], slower)):
            for sample in (0, 1):
                usd, seconds = (math.exp(chance.gauss(0, 0.5)) for _ in range(2))
                is_right = float(chance.random() < min(1.0, max(0.0, mean + easier)))
                yield trial(f"q{number}", name, is_right, sample, took=took(0.01 * usd, seconds * factor))


def claims(found: Figures) -> list[str]:
    return [one.metric for one in found.differences if one.claimed]


@pytest.mark.heavy
@pytest.mark.usefixtures("quick")
def test_without_a_difference_a_report_claims_one_in_at_most_seven_of_a_hundred_cases() -> None:
    chance = random.Random(11)
    made = [Figures.of([*simulated(chance, 30, (0.7, 0.7))]) for _ in range(REPETITIONS)]
    assert sum(bool(claims(found)) for found in made) <= 0.07 * REPETITIONS


@pytest.mark.heavy
@pytest.mark.usefixtures("quick")
def test_a_difference_is_found_with_the_power_worked_out_by_hand() -> None:
    """60 questions; b is right and a wrong in 30 %, the other way round in 5 %; all cost and take the same.

    So of 60 questions D = Bin(60, 0.35) tell, and U = Bin(D, 0.30 / 0.35) speak for b. It is
    claimed where the two-sided p of U in D, thrice (for three comparisons), is under 5 %.
    """
    power = sum(
        binomial(60, d, 0.35) * binomial(d, u, 6 / 7)
        for d in range(61)
        for u in range(d + 1)
        if 3 * two_sided(d, u) < 0.05
    )
    assert 0.6 < power < 0.95
    chance, found = random.Random(5), 0
    for _ in range(REPETITIONS):
        draws = [chance.random() for _ in range(60)]
        pairs = [(0, 1) if draw < 0.30 else (1, 0) if draw < 0.35 else (1, 1) for draw in draws]
        found += "right" in claims(Figures.of(paired([a for a, _ in pairs], [b for _, b in pairs])))
    spread = math.sqrt(power * (1 - power) / REPETITIONS)
    assert abs(found / REPETITIONS - power) < 3 * spread


def binomial(n: int, k: int, p: float) -> float:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def two_sided(n: int, k: int) -> float:
    tail = sum(math.comb(n, i) for i in range(min(k, n - k) + 1)) / 2**n
    return min(1.0, 2 * tail)


@pytest.mark.usefixtures("quick")
def test_a_pipeline_that_takes_twice_as_long_is_called_slower() -> None:
    found = Figures.of([*simulated(random.Random(3), 40, (0.7, 0.7), slower=3.0)])
    assert claims(found) == ["seconds"]
    one = found.difference("seconds", "a", "b")
    assert one is not None
    assert one.interval.mean > 0


def test_pairs_are_means_over_repeats_by_hand() -> None:
    trials = [
        trial("q1", "a", 1.0, 0), trial("q1", "a", 0.0, 1), trial("q1", "b", 1.0, 0), trial("q1", "b", 1.0, 1),
        trial("q2", "a", 1.0, 0), trial("q2", "b", 0.0, 0), trial("q3", "a", 1.0, 0),
    ]  # fmt: skip
    one = Figures.of(trials).difference("right", "a", "b")
    assert one is not None
    assert (one.interval.n, one.interval.mean) == (2, pytest.approx((0.5 - 1.0) / 2))
    assert (one.higher, one.lower, one.equal) == (1, 1, 0)


def test_failures_are_counted_both_ways() -> None:
    """b is right in all 9 runs that ended, and failed in 3 more; a is right in all 12."""
    trials = [trial(f"q{n}", "a") for n in range(12)]
    trials += [trial(f"q{n}", "b") for n in range(9)] + [failed(f"q{n}", "b") for n in (9, 10, 11)]
    found = Figures.of(trials)
    arm = found.arms[1]
    assert arm.quality["right"].mean == 1.0
    assert arm.zeroed is not None
    assert arm.zeroed.mean == 0.75
    assert [one.question for one in found.failed] == ["q9", "q10", "q11"]
    one = found.difference("right", "a", "b")
    assert one is not None
    assert (one.interval.mean, one.interval.n) == (0.0, 9)
    assert one.zeroed is not None
    assert (one.zeroed.mean, one.zeroed.n) == (-0.25, 12)


def test_a_claim_that_failures_undo_says_so() -> None:
    """a is wrong in 12 of 40 where b is right; b failed in 30 more, which a has right."""
    from research.report.wording import verdict

    trials = paired([0.0] * 12 + [1.0] * 28, [1.0] * 40)
    trials += [trial(f"f{n}", "a") for n in range(30)] + [failed(f"f{n}", "b") for n in range(30)]
    one = Figures.of(trials).difference("right", "a", "b")
    assert one is not None
    assert one.claimed
    assert not one.holds_both_ways
    assert verdict(one) == "b is better than a (not so if failed runs count as wrong)"


def test_all_comparisons_count_as_one_family() -> None:
    trials = paired([0.0] * 7 + [1.0] * 33, [1.0] * 40)
    one = Figures.of(trials).difference("right", "a", "b")
    assert one is not None
    assert one.chance == pytest.approx(2 / 2**7)
    assert one.adjusted == pytest.approx(3 * 2 / 2**7), "with those of cost and time, which show nothing"
    assert one.claimed
    more = [trial(f"q{n}", "c", 1.0) for n in range(40)]
    again = Figures.of([*trials, *more]).difference("right", "a", "b")
    assert again is not None
    assert again.adjusted == pytest.approx(9 * 2 / 2**7)
    assert not again.claimed


def test_an_unknown_price_is_not_nothing() -> None:
    trials = [*paired([1.0] * 3, [1.0] * 3), trial("q9", "a", took=took(None)), trial("q9", "b")]
    found = Figures.of(trials)
    assert found.arms[0].unpriced == 1
    one = found.difference("usd", "a", "b")
    assert one is not None
    assert one.interval.n == 3


def test_what_is_free_is_not_compared_by_cost() -> None:
    found = Figures.of(paired([1.0] * 3, [1.0] * 3, took=took(0.0)))
    assert {one.metric for one in found.differences} == {"right", "seconds"}


def test_without_references_support_is_compared() -> None:
    trials = [trial(f"q{n}", name, None, scores={"recall": 0.5}) for n in range(3) for name in "ab"]
    found = Figures.of(trials)
    assert found.quality == "recall"
    assert found.difference("recall", "a", "b") is not None
