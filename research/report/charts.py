"""The pictures that compare pipelines: quality against what it takes, spreads, differences, endings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .figures import Arm, Difference, Figures
from .gathering import Trial
from .shapes import LEFT, RIGHT_EDGE, ROW, WIDTH, Chart, Scale, across, axis, legend, tick_across
from .statistics import Interval, quantile
from .units import change, figure

MOST_DOTS = 200  # in one row; above that, the box tells it
ENDINGS = ("answered", "partly answered", "answered without search", "not answered", "failed")


def frontier_chart(found: Figures, metric: str) -> Chart | None:
    """Quality against what it takes, each pipeline with its intervals."""
    spent = {arm.pipeline: arm.cost if metric == "usd" else _seconds(arm) for arm in found.arms}
    points = [(n, arm, spent[arm.pipeline], arm.quality.get(found.quality)) for n, arm in enumerate(found.arms)]
    known = [(n, arm, x, y) for n, arm, x, y in points if x is not None and y is not None]
    if not known or not any(x.mean for _, _, x, _ in known):
        return None
    what = "Dollars a question" if metric == "usd" else "Time of a question (p50)"
    told = "; ".join(
        f"{arm.pipeline}: {figure(metric, x.mean)}, {figure(found.quality, y.mean)}" for _, arm, x, y in known
    )
    chart = Chart(
        f"frontier-{metric}", f"Quality against {'cost' if metric == 'usd' else 'time'}, as if cold", told, 330
    )
    wide = axis([end for _, _, spent_on, _ in known for end in _ends(spent_on)], 70, WIDTH - 120)
    high = axis([end for _, _, _, good in known for end in _ends(good)], 270, 20)
    across(chart, wide, metric, 20, 270)
    for tick in high.ticks():
        chart.line(70, high(tick), WIDTH - 120, high(tick), "grid")
        chart.label(62, high(tick) + 4, figure(found.quality, tick), "end", "tick")
    chart.label((WIDTH - 50) / 2, 312, what, "middle", "tick")
    for number, arm, x, y in known:
        _cross(chart, wide, high, x, y)
        chart.mark(
            number,
            wide(x.mean),
            high(y.mean),
            f"{arm.pipeline}: {figure(metric, x.mean)}, {figure(found.quality, y.mean)}",
        )
    for name, at, height in _apart([(arm.pipeline, wide(x.mean), high(y.mean)) for _, arm, x, y in known]):
        chart.label(at + 11, height + 4, name)
    return chart


def _ends(interval: Interval) -> list[float]:
    return [end for end in (interval.low, interval.mean, interval.high) if end is not None]


def _seconds(arm: Arm) -> Interval | None:
    return None if arm.seconds is None else Interval(arm.seconds.n, arm.seconds.p50)


def _cross(chart: Chart, wide: Scale, high: Scale, x: Interval, y: Interval) -> None:
    if x.low is not None and x.high is not None:
        chart.line(wide(x.low), high(y.mean), wide(x.high), high(y.mean), "whisker")
    if y.low is not None and y.high is not None:
        chart.line(wide(x.mean), high(y.low), wide(x.mean), high(y.high), "whisker")


def _apart(labels: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Labels of which none stands on another."""
    placed: list[tuple[str, float, float]] = []
    for name, x, y in sorted(labels, key=lambda one: one[2]):
        while any(abs(y - other_y) < 14 and abs(x - other_x) < 130 for _, other_x, other_y in placed):
            y += 2
        placed.append((name, x, y))
    return placed


def distribution(found: Figures, metric: str) -> Chart | None:
    """A row for each pipeline: every run a dot, the middle half a box, the median a line."""
    rows = [(n, arm.pipeline, _values(arm.trials, metric)) for n, arm in enumerate(found.arms)]
    rows = [row for row in rows if row[2]]
    if not rows or not any(value for _, _, values in rows for value in values):
        return None
    bottom = 14 + ROW * len(rows)
    what = "Cost" if metric == "usd" else "Time"
    told = "; ".join(
        f"{name}: p5 {figure(metric, quantile(v, 0.05))}, median {figure(metric, quantile(v, 0.5))}, "
        f"p95 {figure(metric, quantile(v, 0.95))}" for _, name, v in rows
    )  # fmt: skip
    chart = Chart(f"spread-{metric}", f"{what} of each run, as if cold", told, bottom + 28)
    scale = axis([value for _, _, values in rows for value in values], LEFT, WIDTH - RIGHT_EDGE)
    across(chart, scale, metric, 8, bottom)
    for place, (number, name, values) in enumerate(rows):
        y = 14 + ROW * place + ROW / 2
        chart.label(LEFT - 10, y + 4, name, "end")
        _box(chart, scale, values, y, f"p{number % 8}")
    return chart


def _values(trials: Iterable[Trial], metric: str) -> list[float]:
    return [value for trial in trials if (value := trial.value(metric)) is not None]


def _box(chart: Chart, scale: Scale, values: list[float], y: float, kind: str) -> None:
    low, first, middle, third, high = (scale(quantile(values, q)) for q in (0.05, 0.25, 0.5, 0.75, 0.95))
    if len(values) <= MOST_DOTS:
        for place, value in enumerate(values):
            drop = ((place * 7) % 11 - 5) * 1.6
            chart.draw("circle", cx=scale(value), cy=y + drop, r=2.2, class_=f"{kind} dot")
    chart.line(low, y, high, y, "whisker")
    chart.draw("rect", x=first, y=y - 8, width=max(1.0, third - first), height=16.0, class_=f"{kind} box")
    chart.line(middle, y - 10, middle, y + 10, "median")


def forest(differences: Sequence[Difference], metric: str, title: str) -> Chart | None:
    """Each comparison with its interval; a line at zero."""
    rows = [one for one in differences if one.metric == metric]
    ends = [v for one in rows for v in (one.interval.mean, one.interval.low, one.interval.high) if v is not None]
    if not rows or not any(ends):
        return None
    bottom = 14 + ROW * len(rows)
    told = "; ".join(f"{one.second} less {one.first}: {change(metric, one.interval.mean)}" for one in rows)
    chart = Chart(f"forest-{metric}", title, told, bottom + 28)
    scale = axis(ends, 230, WIDTH - 40)
    for tick in scale.ticks():
        tick_across(chart, scale(tick), 8, bottom, "0" if abs(tick) < 1e-12 else change(metric, tick))
    chart.line(scale(0), 8, scale(0), bottom, "zero")
    for place, one in enumerate(rows):
        y = 14 + ROW * place + ROW / 2
        chart.label(220, y + 4, f"{one.second} − {one.first}", "end")
        if one.interval.low is not None and one.interval.high is not None:
            chart.line(scale(one.interval.low), y, scale(one.interval.high), y, "claimed" if one.claimed else "whisker")
        kind = "claimed" if one.claimed else "shown"
        chart.draw(
            "circle", "", change(metric, one.interval.mean), cx=scale(one.interval.mean), cy=y, r=5.0, class_=kind
        )
    return chart


def endings(found: Figures) -> Chart:
    """How runs ended, as shares of each pipeline's."""
    names = list(dict.fromkeys(name for arm in found.arms for name in arm.endings))
    names.sort(key=lambda name: ENDINGS.index(name) if name in ENDINGS else len(ENDINGS))
    bottom = 14 + ROW * len(found.arms)
    told = "; ".join(
        f"{a.pipeline}: " + ", ".join(f"{count} {name}" for name, count in a.endings.items()) for a in found.arms
    )
    chart = Chart("endings", "How runs ended", told, bottom + 34)
    scale = Scale(0, 1, LEFT, WIDTH - RIGHT_EDGE)
    for place, arm in enumerate(found.arms):
        y, at = 14 + ROW * place, 0.0
        chart.label(LEFT - 10, y + ROW / 2 + 4, arm.pipeline, "end")
        for name in names:
            part = arm.endings.get(name, 0) / len(arm.trials)
            if part:
                kind = f"e{ENDINGS.index(name) if name in ENDINGS else len(ENDINGS)}"
                chart.draw(
                    "rect",
                    "",
                    f"{arm.endings[name]} {name}",
                    x=scale(at),
                    y=y + 5,
                    width=scale(part) - scale(0),
                    height=ROW - 10,
                    class_=kind,
                )
                if part > 0.06:
                    chart.label(scale(at + part / 2), y + ROW / 2 + 4, str(arm.endings[name]), "middle", f"on {kind}")
            at += part
    legend(
        chart, [(f"e{ENDINGS.index(name) if name in ENDINGS else len(ENDINGS)}", name) for name in names], bottom + 20
    )
    return chart
