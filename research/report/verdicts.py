"""A judge's verdicts as comparisons: for each question who was preferred, both orders taken together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .figures import Difference
from .statistics import bootstrap, sign_test


def compared(verdicts: Iterable[Mapping[str, Any]]) -> list[Difference]:
    """One for each pair of pipelines; a preference is between −1 (the first) and 1 (the second)."""
    pairs: dict[tuple[str, str], dict[str, list[float]]] = {}
    for verdict in verdicts:
        judge = verdict["judge"]
        by_question = pairs.setdefault((judge["first"], judge["second"]), {})
        by_question.setdefault(verdict["of"], []).append(float(judge["preference"]))
    return [_difference(first, second, found) for (first, second), found in pairs.items()]


def _difference(first: str, second: str, found: Mapping[str, list[float]]) -> Difference:
    values = [sum(preferences) / len(preferences) for preferences in found.values()]
    interval = bootstrap(values)
    assert interval is not None
    return Difference(
        metric="judge",
        first=first,
        second=second,
        interval=interval,
        higher=sum(value > 0 for value in values),
        lower=sum(value < 0 for value in values),
        equal=sum(value == 0 for value in values),
        chance=sign_test(values),
    )
