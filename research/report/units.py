"""Figures as people read them: money, shares, durations, differences, intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..ledger import NANO, dollars
from .statistics import Interval

NAMES = {
    "right": "right", "exact": "exact match", "contains": "contains a reference", "f1": "token F1",
    "recall": "supported sentences", "precision": "citation precision", "stale": "older than asked",
    "usd": "cost", "seconds": "time", "judge": "preferred by the judge",
}  # fmt: skip
SHORT = 0.1  # seconds, below which a duration is told in milliseconds
SHORTEST = 0.01  # seconds, below which a duration has too few digits to be the measure of another


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
    >>> seconds(0.0123), seconds(0.34), seconds(8.213), seconds(75.0)
    ('12 ms', '0.34 s', '8.2 s', '75 s')
    """
    if value is None:
        return "–"
    size = abs(value)
    if size < SHORT:
        return f"{value * 1000:.0f} ms"
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
    return ranged(change(metric, interval.low), change(metric, interval.high))


def ranged(low: str, high: str) -> str:
    """Two figures; a unit that both have stands once.

    >>> ranged("0 ms", "3 ms"), ranged("80 ms", "0.12 s")
    ('0 to 3 ms', '80 ms to 0.12 s')
    """
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


def times(metric: str, value: float, least: float) -> str:
    """How many times the lesser figure the greater is; "" where too little is shown of the lesser to tell.

    >>> times("seconds", 3.0, 0.8), times("seconds", 2.92, 0.01), times("seconds", 2.92, 0.003), times("usd", 0.02, 0.0)
    ('3.8 ×', '292 ×', '', '')
    """
    if least <= 0 or (metric == "seconds" and least < SHORTEST):
        return ""
    return f"{value / least:,.0f} ×" if value / least >= 20 else f"{value / least:.1f} ×"


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
