"""The pictures of stages: when each works in one run, and what each costs in the mean."""

from __future__ import annotations

from collections.abc import Iterator

from .figures import Arm, Figures
from .gathering import Part, Trial
from .shapes import LEFT, RIGHT_EDGE, ROW, WIDTH, Chart, across, axis, legend, tick_across
from .units import money, ranged, seconds

SHOWN = 14  # pieces of work of one stage in a waterfall
TIERS = ("cheap", "capable", "pinned", "")


def stage_costs(found: Figures) -> Chart | None:
    """Mean cost of a question by stage and tier; tokens, where nothing costs anything."""
    unit = "usd" if any(cost.usd for arm in found.arms for cost in arm.costs) else "tokens"
    rows = [(arm.pipeline, [cost for cost in arm.costs if getattr(cost, unit)]) for arm in found.arms]
    longest = max((sum(getattr(cost, unit) for cost in costs) for _, costs in rows), default=0.0)
    if not longest:
        return None

    def told(value: float) -> str:
        return money(value) if unit == "usd" else f"{value:,.0f} tokens"

    parts = {
        n: ", ".join(f"{c.stage} ({c.tier or 'no model'}) {told(getattr(c, unit))}" for c in costs) for n, costs in rows
    }
    words = "; ".join(f"{n}: {part or 'nothing'}" for n, part in parts.items())
    bottom = 14 + ROW * len(rows)
    title = f"{'Cost' if unit == 'usd' else 'Tokens'} of a question by stage and tier, as if cold"
    chart = Chart("stages", title, words, bottom + 54)
    scale = axis([longest], LEFT, WIDTH - RIGHT_EDGE)
    for tick in scale.ticks():
        text = "0" if not tick else money(tick) if unit == "usd" else f"{tick:,.0f}"
        tick_across(chart, scale(tick), 8, bottom, text)
    for place, (name, costs) in enumerate(rows):
        y, at = 14 + ROW * place, 0.0
        chart.label(LEFT - 10, y + ROW / 2 + 4, name, "end")
        for cost in costs:
            value = getattr(cost, unit)
            wide = scale(at + value) - scale(at)
            kind = f"t{TIERS.index(cost.tier) if cost.tier in TIERS else 2}"
            chart.draw(
                "rect",
                "",
                f"{cost.stage}: {told(value)}",
                x=scale(at),
                y=y + 6,
                width=max(0.5, wide - 1),
                height=ROW - 12,
                class_=kind,
            )
            if wide > 7 * len(cost.stage) + 4:
                chart.label(scale(at) + wide / 2, y + ROW / 2 + 4, cost.stage, "middle", f"on {kind}")
            at += value
    used = [tier for tier in TIERS if any(cost.tier == tier for _, costs in rows for cost in costs)]
    legend(chart, [(f"t{TIERS.index(tier)}", tier or "no model") for tier in used], bottom + 42)
    return chart


def waterfalls(found: Figures) -> Iterator[Chart]:
    """One for each pipeline, all of one question: that at which they are nearest to their p50, taken together."""
    timed = {arm.pipeline: _timed(arm) for arm in found.arms}
    medians = {arm.pipeline: arm.seconds.p50 for arm in found.arms if arm.seconds is not None and arm.seconds.p50}

    def far(question: str) -> tuple[int, float]:
        own = [(timed[name].get(question), p50) for name, p50 in medians.items()]
        off = [abs(trial.took.seconds / p50 - 1) for trial, p50 in own if trial is not None and trial.took is not None]
        return len(medians) - len(off), sum(off)

    chosen = min(found.questions, key=far, default="")
    for arm in found.arms:
        trial = timed[arm.pipeline].get(chosen)
        if trial is not None and (chart := waterfall(arm, trial)) is not None:
            yield chart


def _timed(arm: Arm) -> dict[str, Trial]:
    """Of each question the first repeat that ended with a timetable."""
    ended = sorted((t for t in arm.trials if t.took is not None and t.took.parts), key=lambda t: -t.sample)
    return {trial.question: trial for trial in ended}


def waterfall(arm: Arm, trial: Trial) -> Chart | None:
    """The timetable of one run: each piece of work from its begin to its end, as if cold."""
    assert trial.took is not None
    stages: dict[str, list[Part]] = {}
    for part in sorted(trial.took.parts, key=lambda part: (part.begin, part.end)):
        stages.setdefault(f"{part.stage} {part.work}".strip(), []).append(part)
    total = trial.took.seconds
    middle = arm.seconds.p50 if arm.seconds else None
    if total <= 0:
        return None
    rows = [(name, parts[:SHOWN], len(parts)) for name, parts in stages.items()]
    tall = [max(22.0, 6 + 7.0 * len(parts)) for _, parts, _ in rows]
    bottom = 14 + sum(tall)
    told = f"{trial.text}: {'; '.join(_told(*row) for row in rows)}"
    chart = Chart(
        f"waterfall-{arm.pipeline}",
        f"{arm.pipeline}: {seconds(total)} for one question, as if cold (p50 of all: {seconds(middle)})",
        told,
        bottom + 54,
    )
    scale = axis([total], LEFT, WIDTH - RIGHT_EDGE)
    across(chart, scale, "seconds", 8, bottom)
    y = 14.0
    for (name, parts, count), height in zip(rows, tall, strict=True):
        chart.label(LEFT - 10, y + height / 2 + 4, f"{name} × {count}" if count > 1 else name, "end")
        for place, part in enumerate(parts):
            kind = f"t{TIERS.index(part.tier) if part.tier in TIERS else 2}"
            wide = scale(part.begin + part.seconds) - scale(part.begin)
            title = f"{name}: {ranged(seconds(part.begin), seconds(part.begin + part.seconds))}"
            thick = height - 8 if len(parts) == 1 else 5.0
            chart.draw(
                "rect",
                "",
                title,
                x=scale(part.begin),
                y=y + (4 if len(parts) == 1 else 3 + 7.0 * place),
                width=max(1.0, wide),
                height=thick,
                class_=kind,
            )
        y += height
    used = [tier for tier in TIERS if any(part.tier == tier for _, parts, _ in rows for part in parts)]
    legend(chart, [(f"t{TIERS.index(tier)}", tier or "no model") for tier in used], bottom + 42)
    return chart


def _told(name: str, parts: list[Part], count: int) -> str:
    ends = max(part.begin + part.seconds for part in parts)
    times = f" × {count}" if count > 1 else ""
    return f"{name}{times}: {ranged(seconds(min(part.begin for part in parts)), seconds(ends))}"
