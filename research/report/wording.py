"""The summary of a report in words, and what a comparison shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .figures import RIGHT, Arm, Difference, Figures
from .units import NAMES, between, chance, change, figure, listed, share, times, within

if TYPE_CHECKING:
    from . import Report

FEW = 20  # questions; below that, little can be shown
LABELS = {"usd": "Cost of a question, as if cold, mean", "seconds": "Time of a question, as if cold, p50"}
STATISTICS = {"usd": "mean cost", "seconds": "p50 of time"}
WORDS = {"usd": ("costs more", "costs less", "cheap"), "seconds": ("takes longer", "is faster", "fast")}


def verdict(difference: Difference) -> str:
    """What a comparison shows, or that it shows nothing."""
    one, n = difference, difference.interval.n
    if not one.claimed:
        return f"no difference shown (n = {n})"
    more, less, *_ = WORDS.get(one.metric, ("is better", "is worse"))
    told = f"{one.second} {more if one.interval.mean > 0 else less} than {one.first}"
    return told if one.holds_both_ways else f"{told} (not so if failed runs count as wrong)"


def summary(report: Report) -> list[str]:
    """What the figures say, most important first."""
    found = report.figures
    return [
        _extent(found),
        *_quality(found),
        *_differences(found),
        *_expense(found),
        *_frontier(found),
        *_failures(found),
        *_repeats(found),
        *_judged(found),
        *_cautions(report),
    ]


def _extent(found: Figures) -> str:
    runs = sum(len(arm.trials) for arm in found.arms)
    times = f", {found.repeats} times each" if found.repeats > 1 else ""
    names = listed(arm.pipeline for arm in found.arms)
    failed = f"; {len(found.failed)} failed" if found.failed else "; none failed"
    return f"{len(found.questions)} questions through {names}{times}: {runs} runs{failed}."


def _quality(found: Figures) -> Iterator[str]:
    ranked = [arm for arm in found.arms if found.quality in arm.quality]
    ranked.sort(key=lambda arm: -arm.quality[found.quality].mean)
    if ranked:
        label = "Right answers" if found.quality == RIGHT else "Sentences that their citations support"
        told = "; ".join(f"{arm.pipeline} {between(found.quality, arm.quality[found.quality])}" for arm in ranked)
        yield f"{label}: {told}."
    if found.quality != RIGHT:
        yield "There are no reference answers, so nothing here tells whether an answer is right."


def _differences(found: Figures) -> Iterator[str]:
    compared = [one for one in found.differences if one.metric == found.quality]
    family = len(found.differences) + len(found.judged)
    for one in compared:
        if one.claimed:
            p = chance(one.adjusted)
            how = f"n = {one.interval.n}, p {p if p[0] == '<' else f'= {p}'} after Holm's correction for {family}"
            by = f"{change(one.metric, one.interval.mean)} ({within(one.metric, one.interval)})"
            yield f"{verdict(one)}: {by}, {how} comparisons."
    rest = [f"{one.first} and {one.second}" for one in compared if not one.claimed]
    if rest:
        n = min(one.interval.n for one in compared if not one.claimed)
        yield f"No difference in quality shown (n = {n}) between {'; '.join(rest)}."


def _expense(found: Figures) -> Iterator[str]:
    for metric, label in LABELS.items():
        known = [(arm, value) for arm in found.arms if (value := typical(arm, metric)) is not None]
        if not known:
            continue
        known.sort(key=lambda pair: pair[1])
        if metric == "usd" and not found.costs_money:
            yield "No run costs anything: all of its models and engines are free."
            continue
        least = known[0]
        told = [f"{least[0].pipeline} {figure(metric, least[1])}"]
        told += [f"{arm.pipeline} {figure(metric, value)}{_against(found, metric, least, arm, value)}"
                 for arm, value in known[1:]]  # fmt: skip
        yield f"{label}: {'; '.join(told)}.{_not_shown(found, metric, least[0], [arm for arm, _ in known[1:]])}"


def typical(arm: Arm, metric: str) -> float | None:
    """The mean of dollars, the median of seconds."""
    spread = arm.usd if metric == "usd" else arm.seconds
    return None if spread is None else spread.mean if metric == "usd" else spread.p50


def _against(found: Figures, metric: str, least: tuple[Arm, float], arm: Arm, value: float) -> str:
    """What a pipeline takes against the one that takes least: how many times as much only where that is shown."""
    first, lowest = least[0].pipeline, least[1]
    one = found.between(metric, first, arm.pipeline)
    if one is None:
        return ", not compared: no question has both"
    if not one.claimed:
        return ""
    more, less, _ = WORDS[metric]
    if one.interval.mean < 0:
        return f", though by the mean of questions it {less}"
    return f" ({times(metric, value, lowest) or more})"


def _not_shown(found: Figures, metric: str, least: Arm, others: Sequence[Arm]) -> str:
    """Against which pipelines the one that takes least shows no difference."""
    made = [found.between(metric, least.pipeline, arm.pipeline) for arm in others]
    same = [one for one in made if one is not None and not one.claimed]
    if not same:
        return ""
    n, names = min(one.interval.n for one in same), listed(one.second for one in same)
    of = names if len(same) == 1 else f"any of {names}"
    return f" No difference in {NAMES[metric]} shown (n = {n}) between {least.pipeline} and {of}."


def frontier(found: Figures, metric: str) -> list[str]:
    """The pipelines of which none is at least as good for no more, with a difference shown in either.

    Quality goes by its mean, and what is taken by its typical value.
    """
    known = [(arm.pipeline, typical(arm, metric), arm.quality.get(found.quality)) for arm in found.arms]
    points = [(name, spent, quality.mean) for name, spent, quality in known if spent is not None and quality]

    def beats(other: str, name: str) -> bool:
        spent, good = (found.between(kind, name, other) for kind in (metric, found.quality))
        less = spent is not None and spent.claimed and spent.interval.mean < 0
        return less or (good is not None and good.claimed and good.interval.mean > 0)

    return [
        name
        for name, spent, good in points
        if not any(s <= spent and q >= good and beats(other, name) for other, s, q in points if other != name)
    ]


def _frontier(found: Figures) -> Iterator[str]:
    metric = "usd" if found.costs_money else "seconds"
    names = frontier(found, metric)
    if names and len(found.arms) > 1:
        verb = "is" if len(names) == 1 else "are"
        who = "all" if len(names) == len(found.arms) > 2 else listed(names)
        yield (
            f"By mean quality and {STATISTICS[metric]}, {who} {verb} on the frontier: no other is at least "
            f"as good and as {WORDS[metric][2]}, with a difference shown."
        )


def _failures(found: Figures) -> Iterator[str]:
    for arm in found.arms:
        if not arm.failed:
            continue
        quality = arm.quality.get(found.quality)
        either = f": {share(arm.zeroed.mean)} if they count as 0, {share(quality.mean)} without them" if (
            arm.zeroed and quality
        ) else ""  # fmt: skip
        yield f"{len(arm.failed)} of {len(arm.trials)} runs of {arm.pipeline} failed{either}."


def _repeats(found: Figures) -> Iterator[str]:
    for arm in found.arms:
        differing, of = arm.unsettled
        if differing:
            yield f"In {differing} of {of} questions the repeats of {arm.pipeline} came out differently."


def _judged(found: Figures) -> Iterator[str]:
    for one in found.judged:
        than = "" if one.claimed else f" between {one.first} and {one.second}"
        yield f"By the judge: {verdict(one)}{than}; better in {one.higher}, worse in {one.lower}, equal in {one.equal}."


def _cautions(report: Report) -> Iterator[str]:
    found = report.figures
    if len(found.questions) < FEW:
        yield f"{len(found.questions)} questions are few: only large differences can show."
    if unpriced := [arm.pipeline for arm in found.arms if arm.unpriced]:
        yield f"A price is unknown, so the dollars of {listed(unpriced)} are left out where it is missing."
    models = {tokens.model for arm in found.arms for tokens in arm.tiers.values()}
    if any(model.startswith("builtin:") for model in models):
        yield "The built-in extractive model took part: it quotes by word overlap, and its tokens are estimates."
    if report.price_as:
        told = listed(f"{tier} as {model}" for tier, model in report.price_as.items())
        yield f"Dollars are estimated: recorded tokens at other prices ({told})."
