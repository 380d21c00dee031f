"""How well the rules alone tell supported claims from the rest, on claim-wice: `python -m bench.evidence`.

Balanced accuracy: the mean of the shares of supported claims and of others that are told
rightly. Two-fold: each half of the rows is judged with the threshold that does best on
the other half.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench.data import data
from research.evidence.checks import PARTLY, SUPPORTED, compare, prepared
from research.sentences import content_words

Row = dict[str, Any]


def rows() -> list[Row]:
    path = data("claim-wice") / "dev" / "claims.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def balanced(truth: Sequence[bool], said: Sequence[bool]) -> float:
    right = [sum(one == is_so for one, was in zip(said, truth, strict=True) if was == is_so) for is_so in (True, False)]
    return (right[0] / sum(truth) + right[1] / (len(truth) - sum(truth))) / 2


def two_fold(truth: Sequence[bool], scores: Sequence[float]) -> tuple[float, list[float]]:
    """Balanced accuracy over all rows, and the thresholds that the folds chose."""
    said = [False] * len(truth)
    chosen = []
    for fold in (0, 1):
        other = range(1 - fold, len(truth), 2)
        threshold = max(sorted(set(scores)), key=lambda at: balanced(*_at(truth, scores, other, at)))
        chosen.append(threshold)
        for index in range(fold, len(truth), 2):
            said[index] = scores[index] >= threshold
    return balanced(truth, said), chosen


def _at(
    truth: Sequence[bool], scores: Sequence[float], chosen: Sequence[int], threshold: float
) -> tuple[list[bool], list[bool]]:
    return [truth[index] for index in chosen], [scores[index] >= threshold for index in chosen]


def overlap(row: Row) -> float:
    claim = set(content_words(row["claim"]))
    return len(claim & set(content_words(" ".join(row["evidence_sentences"])))) / max(1, len(claim))


def lines(given: list[Row]) -> Iterator[str]:
    truth = [row["label"] == "supported" for row in given]
    start = time.process_time()
    found = [compare(row["claim"], prepared(row["evidence_sentences"])) for row in given]
    took = time.process_time() - start
    scores = [one.score for one in found]
    yield f"{len(given)} claims, {sum(truth)} of them supported; balanced accuracy, supported against the rest"
    yield f"  always supported                            {balanced(truth, [True] * len(truth)):.2f}"
    yield f"  content-word overlap ≥ 0.5                  {balanced(truth, [overlap(row) >= 0.5 for row in given]):.2f}"
    parts: list[tuple[str, Callable[[int], float]]] = [
        ("words of the best three sentences, two-fold", lambda index: found[index].words),
        ("numbers and dates, two-fold", lambda index: _share(found[index].numbers)),
        ("names, two-fold", lambda index: _share(found[index].names)),
    ]
    for name, part in parts:
        yield f"  {name:43} {two_fold(truth, [part(index) for index in range(len(given))])[0]:.2f}"
    accuracy, (first, second) = two_fold(truth, scores)
    fixed = balanced(truth, [one >= SUPPORTED for one in scores])
    yield f"  all three, two-fold                         {accuracy:.2f}   (thresholds {first:.3f}, {second:.3f})"
    yield f"  all three, the threshold in use ({SUPPORTED})      {fixed:.2f}   (not held out)"
    borne = [row["label"] != "not_supported" for row in given]
    partly = balanced(borne, [one >= PARTLY for one in scores])
    yield f"  at all supported against not, from {PARTLY}      {partly:.2f}   (not held out)"
    yield f"{1000 * took / len(given):.1f} ms of CPU a claim, against whole pages"


def _share(value: float | None) -> float:
    return 1.0 if value is None else value


if __name__ == "__main__":
    print("\n".join(lines(rows())))
