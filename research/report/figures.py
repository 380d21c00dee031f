"""From trials to figures: one row for each pipeline, one for each comparison of two."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..ledger import NANO
from .gathering import Tokens, Trial
from .statistics import LEVEL, Interval, bootstrap, holm, quantile, sign_test, unsettled, within

RIGHT, SUPPORT = "right", "recall"
# Scores, each from 0 to 1: they are told as shares, and their differences in points.
QUALITIES = ("right", "exact", "contains", "f1", "recall", "precision", "stale")


@dataclass(frozen=True)
class Spread:
    """Of values over runs."""

    n: int
    mean: float
    p50: float
    p95: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        known = [value for value in values if value is not None]
        if not known:
            return None
        return cls(len(known), statistics.fmean(known), quantile(known, 0.5), quantile(known, 0.95))


@dataclass(frozen=True)
class Cost:
    """Mean dollars of a question as if cold, by stage and tier; `tokens` likewise."""

    stage: str
    tier: str
    usd: float
    tokens: float
    unknown: int = 0  # pieces of work whose price is not known


@dataclass
class Arm:
    """One pipeline. All but `paid` and `measured` is as if cold; dollars but for `paid`, which is nano-dollars."""

    pipeline: str
    trials: list[Trial]
    endings: Mapping[str, int]
    quality: Mapping[str, Interval]  # over questions, of runs that ended
    zeroed: Interval | None  # the quality by which pipelines are compared, with failed runs as 0
    usd: Spread | None
    cost: Interval | None  # dollars over questions
    unpriced: int  # runs with a call whose price is unknown
    seconds: Spread | None
    waited: float  # mean seconds of all calls of a run, spent waiting for rate slots and further tries
    calls: Mapping[str, float]
    tiers: Mapping[str, Tokens]  # of all runs
    costs: list[Cost]
    paid: int
    paid_unknown: int
    measured: Spread | None
    wrong: int
    stale_and_wrong: int
    between: Mapping[str, float]  # standard deviation between repeats of a question
    unsettled: tuple[int, int]

    @property
    def failed(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.failed]

    @property
    def cached(self) -> float | None:
        """The share of input tokens that providers read from their caches."""
        read = sum(tier.cache_read for tier in self.tiers.values())
        whole = read + sum(tier.input + tier.cache_write for tier in self.tiers.values())
        return read / whole if whole else None


@dataclass(frozen=True)
class Difference:
    """`second` less `first`, paired by question, over questions that both have figures for.

    `chance` is that of the exact sign test, `adjusted` after all comparisons of the report (Holm). A difference is
    claimed if that is under 5 % and its interval leaves zero out. `zeroed`: the same with failed runs as 0.
    """

    metric: str
    first: str
    second: str
    interval: Interval
    higher: int
    lower: int
    equal: int
    chance: float
    adjusted: float = 1.0
    zeroed: Interval | None = None

    @property
    def claimed(self) -> bool:
        return self.adjusted < LEVEL and self.interval.excludes_zero

    @property
    def turned(self) -> Difference:
        """The same, as `first` less `second`."""
        return replace(
            self, first=self.second, second=self.first, interval=self.interval.turned, higher=self.lower,
            lower=self.higher, zeroed=self.zeroed and self.zeroed.turned,
        )  # fmt: skip

    @property
    def holds_both_ways(self) -> bool:
        """Whether failed runs as 0 give the same sign, and an interval without zero too."""
        other = self.zeroed
        return other is None or (other.excludes_zero and (other.mean > 0) == (self.interval.mean > 0))


@dataclass
class Figures:
    """All of a report's figures. `quality` names the metric that pipelines are compared by."""

    arms: list[Arm]
    differences: list[Difference]
    kinds: Mapping[str, Mapping[str, list[Interval | None]]]  # class → metric → one for each arm
    questions: dict[str, list[Trial]]
    quality: str
    repeats: int
    judged: list[Difference] = field(default_factory=list)

    @classmethod
    def of(cls, trials: Sequence[Trial], judged: Sequence[Difference] = ()) -> Figures:
        """`judged` are comparisons by a judge, which count among the others where it is told how many there were."""
        names = list(dict.fromkeys(trial.pipeline for trial in trials))
        quality = RIGHT if any(RIGHT in trial.scores for trial in trials) else SUPPORT
        arms = [arm([trial for trial in trials if trial.pipeline == name], quality) for name in names]
        priced = any(one.unpriced or (one.usd is not None and one.usd.mean) for one in arms)
        metrics = (quality, "usd", "seconds") if priced else (quality, "seconds")  # what is free can't differ
        found = [
            made
            for first, second in itertools.combinations(arms, 2)
            for metric in metrics
            if (made := difference(metric, first, second, quality)) is not None
        ]
        adjusted = holm([one.chance for one in (*found, *judged)])
        found, judged = (
            [replace(one, adjusted=chance) for one, chance in zip(some, chances, strict=True)]
            for some, chances in ((found, adjusted[: len(found)]), (judged, adjusted[len(found) :]))
        )
        questions: dict[str, list[Trial]] = {}
        for trial in trials:
            questions.setdefault(trial.question, []).append(trial)
        repeats = max(Counter((trial.question, trial.pipeline) for trial in trials).values(), default=0)
        return cls(arms, found, by_kind(arms, quality), questions, quality, repeats, judged)

    @property
    def failed(self) -> list[Trial]:
        return [trial for arm in self.arms for trial in arm.failed]

    @property
    def costs_money(self) -> bool:
        """Whether any run has a price, known or not."""
        return any(arm.unpriced or (arm.usd is not None and arm.usd.mean) for arm in self.arms)

    def difference(self, metric: str, first: str, second: str) -> Difference | None:
        found = (d for d in self.differences if (d.metric, d.first, d.second) == (metric, first, second))
        return next(found, None)

    def between(self, metric: str, first: str, second: str) -> Difference | None:
        """`second` less `first`, whichever of them came first in the comparison."""
        found = self.difference(metric, first, second)
        if found is None and (other := self.difference(metric, second, first)) is not None:
            return other.turned
        return found


def arm(trials: list[Trial], quality: str) -> Arm:
    ended = [trial for trial in trials if not trial.failed]
    took = [trial.took for trial in ended if trial.took is not None]
    seconds, usd = (Spread.of(trial.value(metric) for trial in ended) for metric in ("seconds", "usd"))
    tiers: dict[str, Tokens] = {}
    for one in took:
        for tier, tokens in one.tiers.items():
            tiers.setdefault(tier, Tokens(tokens.model)).merge(tokens)
    wrong = [trial for trial in ended if trial.scores.get(RIGHT) == 0 and trial.ending != "not answered"]
    counted = [*Counter(trial.ending for trial in trials).most_common()]
    return Arm(
        pipeline=trials[0].pipeline,
        trials=trials,
        endings=dict(counted),
        quality={name: made for name in QUALITIES if (made := bootstrap([*means(ended, name).values()])) is not None},
        zeroed=bootstrap([*means(trials, quality, zeroed=True).values()]) if len(ended) < len(trials) else None,
        usd=usd,
        cost=bootstrap([*means(ended, "usd").values()]),
        unpriced=sum(one.usd is None for one in took),
        seconds=seconds,
        waited=statistics.fmean([one.total.waited for one in took]) if took else 0.0,
        calls={name: statistics.fmean(getattr(one.total, name) for one in took) for name in CALLS} if took else {},
        tiers=tiers,
        costs=costs(ended),
        paid=sum(trial.paid for trial in trials),
        paid_unknown=sum(trial.unpriced for trial in trials),
        measured=Spread.of(trial.measured for trial in ended),
        wrong=len(wrong),
        stale_and_wrong=sum(trial.scores.get("stale") == 1 for trial in wrong),
        between={
            name: sd
            for name in (quality, "usd", "seconds")
            if (sd := within(grouped(ended, name).values())) is not None
        },
        unsettled=unsettled(grouped(ended, quality).values()),
    )


CALLS = ("models", "searches", "fetches")


def grouped(trials: Iterable[Trial], metric: str, zeroed: bool = False) -> dict[str, list[float]]:
    """The figures of each question's repeats. With `zeroed` a failed run counts as 0."""
    groups: dict[str, list[float]] = {}
    for trial in trials:
        value = 0.0 if zeroed and trial.failed else trial.value(metric)
        if value is not None:
            groups.setdefault(trial.question, []).append(value)
    return groups


def means(trials: Iterable[Trial], metric: str, zeroed: bool = False) -> dict[str, float]:
    """For each question the mean over its repeats."""
    return {question: statistics.fmean(values) for question, values in grouped(trials, metric, zeroed).items()}


def difference(metric: str, first: Arm, second: Arm, quality: str) -> Difference | None:
    """None where no question has figures from both."""
    ours, theirs = means(first.trials, metric), means(second.trials, metric)
    pairs = [theirs[question] - ours[question] for question in ours if question in theirs]
    interval = bootstrap(pairs)
    if interval is None:
        return None
    zeroed = None
    if metric == quality and (first.failed or second.failed):
        zeroed = bootstrap(_paired(first, second, lambda arm: means(arm.trials, metric, zeroed=True)))
    return Difference(
        metric=metric,
        first=first.pipeline,
        second=second.pipeline,
        interval=interval,
        higher=sum(pair > 0 for pair in pairs),
        lower=sum(pair < 0 for pair in pairs),
        equal=sum(pair == 0 for pair in pairs),
        chance=sign_test(pairs),
        zeroed=zeroed,
    )


def _paired(first: Arm, second: Arm, values: Callable[[Arm], dict[str, float]]) -> list[float]:
    ours, theirs = values(first), values(second)
    return [theirs[question] - ours[question] for question in ours if question in theirs]


def by_kind(arms: Sequence[Arm], quality: str) -> dict[str, dict[str, list[Interval | None]]]:
    """For each class of question what each pipeline reaches; nothing where there is one class only."""
    kinds = sorted({trial.kind for arm in arms for trial in arm.trials})
    if len(kinds) < 2:
        return {}
    return {
        kind: {
            metric: [bootstrap([*means(_of_kind(arm, kind), metric).values()], resamples=1000) for arm in arms]
            for metric in (quality, "usd", "seconds")
        }
        for kind in kinds
    }


def _of_kind(arm: Arm, kind: str) -> list[Trial]:
    return [trial for trial in arm.trials if trial.kind == kind and not trial.failed]


def costs(trials: Sequence[Trial]) -> list[Cost]:
    """What stages cost in the mean, in the order in which they begin."""
    took = [trial.took for trial in trials if trial.took is not None]
    sums: dict[tuple[str, str], list[float]] = {}
    begins: dict[str, float] = {}
    for one in took:
        for part in one.parts:
            begins[part.stage] = min(begins.get(part.stage, part.begin), part.begin)
            entry = sums.setdefault((part.stage, part.tier), [0.0, 0.0, 0.0])
            entry[0] += (part.usd or 0) / NANO
            entry[1] += part.tokens
            entry[2] += part.usd is None
    rows = sorted(sums.items(), key=lambda item: (begins[item[0][0]], item[0][1]))
    return [Cost(*key, usd / len(took), tokens / len(took), int(unknown)) for key, (usd, tokens, unknown) in rows]
