"""Figures as people read them, and the summary in words that is made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..ledger import NANO, dollars
from .figures import RIGHT, Arm, Difference, Figures
from .statistics import Interval

if TYPE_CHECKING:
    from . import Report

NAMES = {
    "right": "right", "exact": "exact match", "contains": "contains a reference", "f1": "token F1",
    "recall": "supported sentences", "precision": "citation precision", "stale": "older than asked",
    "usd": "cost", "seconds": "time", "judge": "preferred by the judge",
}  # fmt: skip
FEW = 20  # questions; below that, little can be shown


def money(usd: float | None, unknown: int = 0) -> str:
    """
    >>> money(0.0123), money(None), money(-0.5)
    ('$0.01', 'unknown', '−$0.50')
    """
    if usd is None:
        return "unknown"
    return f"{'−' if usd < 0 else ''}{dollars(abs(round(usd * NANO)), unknown)}"


def share(value: float | None) -> str:
    """
    >>> share(0.753), share(None)
    ('75 %', '–')
    """
    return "–" if value is None else f"{value * 100:.0f} %"


def seconds(value: float | None) -> str:
    """
    >>> seconds(0.0123), seconds(8.213), seconds(75.0)
    ('0.01 s', '8.2 s', '75 s')
    """
    if value is None:
        return "–"
    size = abs(value)
    return f"{value:.0f} s" if size >= 20 else f"{value:.1f} s" if size >= 1 else f"{value:.2f} s"


def count(value: float | None) -> str:
    """
    >>> count(2.0), count(2.345), count(12345.6)
    ('2', '2.3', '12,346')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 or abs(value - round(value)) < 0.05 else f"{value:.1f}"


def figure(metric: str, value: float | None) -> str:
    """A figure of a metric, with its unit."""
    if metric in ("usd", "seconds"):
        return money(value) if metric == "usd" else seconds(value)
    return share(value)


def change(metric: str, value: float) -> str:
    """A difference, with its sign.

    >>> change("right", -0.09), change("seconds", 1.25), change("usd", 0.002), change("right", 0.0)
    ('−9 points', '+1.2 s', '+$0.0020', '0 points')
    """
    told = money(abs(value)) if metric == "usd" else seconds(abs(value)) if metric == "seconds" else points(value)
    return f"{'−' if value < 0 else '+'}{told}" if re.search(r"[1-9]", told) else told


def points(value: float) -> str:
    told = f"{abs(value) * 100:.0f}"
    return f"{told} point{'' if told == '1' else 's'}"


def within(metric: str, interval: Interval) -> str:
    """An interval in words, "" where there is none.

    >>> within("right", Interval(20, -0.05, -0.15, 0.0))
    '−15 to 0 points'
    """
    if interval.low is None or interval.high is None:
        return ""
    return _range(change(metric, interval.low), change(metric, interval.high))


def _range(low: str, high: str) -> str:
    """Two figures; a unit that both have stands once."""
    (value, _, unit), other = low.partition(" "), high.partition(" ")[2]
    return f"{value} to {high}" if unit == other else f"{low} to {high}"


def between(metric: str, interval: Interval | None) -> str:
    """A mean with the ends of its interval.

    >>> between("right", Interval(20, 0.85, 0.7, 1.0))
    '85 % (70 to 100)'
    """
    if interval is None:
        return "–"
    told = figure(metric, interval.mean)
    if interval.low is None or interval.low == interval.high:
        return told
    low, high = (figure(metric, end) for end in (interval.low, interval.high))
    if low.partition(" ")[2] == high.partition(" ")[2] == told.partition(" ")[2]:
        low, high = low.partition(" ")[0], high.partition(" ")[0]
    return f"{told} ({low} to {high})"


def chance(value: float) -> str:
    """
    >>> chance(0.0000012), chance(0.0312), chance(1.0)
    ('< 0.001', '0.031', '1')
    """
    return "< 0.001" if value < 0.001 else f"{value:.3f}".rstrip("0").rstrip(".")


def listed(items: Iterable[str]) -> str:
    """
    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


def verdict(difference: Difference) -> str:
    """What a comparison shows, or that it shows nothing."""
    one, n = difference, difference.interval.n
    if not one.claimed:
        return f"no difference shown (n = {n})"
    what = {"usd": ("costs more", "costs less"), "seconds": ("takes longer", "is faster")}
    more, less = what.get(one.metric, ("is better", "is worse"))
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
    for metric, label in (
        ("usd", "Cost of a question, as if cold"),
        ("seconds", "Time of a question, as if cold, p50"),
    ):
        known = [(arm, value) for arm in found.arms if (value := typical(arm, metric)) is not None]
        if not known:
            continue
        known.sort(key=lambda pair: pair[1])
        least = known[0][1]
        if metric == "usd" and not found.costs_money:
            yield "No run costs anything: all of its models and engines are free."
            continue
        told = [f"{known[0][0].pipeline} {figure(metric, least)}"]
        told += [f"{arm.pipeline} {figure(metric, value)}{_times(value, least)}" for arm, value in known[1:]]
        yield f"{label}: {'; '.join(told)}."


def typical(arm: Arm, metric: str) -> float | None:
    """The mean of dollars, the median of seconds."""
    spread = arm.usd if metric == "usd" else arm.seconds
    return None if spread is None else spread.mean if metric == "usd" else spread.p50


def _times(value: float, least: float) -> str:
    return f" ({value / least:.1f} ×)" if least > 0 and value / least >= 1.05 else ""


def frontier(found: Figures, metric: str) -> list[str]:
    """The pipelines that no other equals in quality for less: by their means alone."""
    known = [(arm.pipeline, typical(arm, metric), arm.quality.get(found.quality)) for arm in found.arms]
    points = [(name, spent, quality.mean) for name, spent, quality in known if spent is not None and quality]
    return [
        name
        for name, spent, good in points
        if not any(s <= spent and q >= good and (s, q) != (spent, good) for other, s, q in points if other != name)
    ]


def _frontier(found: Figures) -> Iterator[str]:
    metric = "usd" if found.costs_money else "seconds"
    names = frontier(found, metric)
    if names and len(found.arms) > 1:
        word = "costs less" if metric == "usd" else "is faster"
        verb = "is" if len(names) == 1 else "are"
        yield f"By the means, {listed(names)} {verb} on the frontier: none that is at least as good {word}."


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
