"""Why a run's stages were made or reused: its keys held against those of the run before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .runs import Run

Line = Mapping[str, Any]


def reasons(run: Run, before: Run | None) -> list[str]:
    """One line for each stage, in the order in which they began."""
    now, then = _work(run.journal()), _work(before.journal()) if before else {}
    wide = max(map(len, now), default=0)
    return [f"  {stage:<{wide}}  {_reason(lines, then.get(stage, []))}" for stage, lines in now.items()]


def _work(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """For each stage the work it took up; what was made ahead in the same run counts as made."""
    made = {line["key"] for line in lines if line["event"] == "made"}
    stages: dict[str, list[Line]] = {}
    for line in lines:
        if line["event"] in ("made", "reused") and line["item"] is not None and "within" not in line:
            stages.setdefault(line["stage"], []).append({**line, "event": "made" if line["key"] in made else "reused"})
    return stages


def _reason(lines: Sequence[Line], then: Sequence[Line]) -> str:
    made = [line for line in lines if line["event"] == "made"]
    if not made:
        return f"reused{_of(len(lines))}"
    told = f"made{_of(len(made), len(lines))}"
    if not then:
        return f"{told}: nothing to compare with"
    known = {line["key"] for line in then}
    changed: dict[str, None] = {}
    for line in made:
        if line["key"] not in known:
            changed |= dict.fromkeys(_changed(line["parts"], then))
    return f"{told}: {', '.join(changed)} changed" if changed else f"{told}: asked for anew, or no longer stored"


def _changed(parts: Mapping[str, str], then: Sequence[Line]) -> list[str]:
    """The parts that differ from the nearest key of the run before."""
    differing = [
        [name for name in parts | line["parts"] if parts.get(name) != line["parts"].get(name)] for line in then
    ]
    return min(differing, key=len)


def _of(count: int, total: int | None = None) -> str:
    if total is None or count == total:
        return f" ({count})" if count > 1 else ""
    return f" ({count} of {total})"
