"""A report as data: JSON with every figure, CSV with a line for each run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from .. import output
from ..ledger import NANO
from . import Report
from .figures import QUALITIES, Arm, Difference
from .gathering import Trial
from .setup import facts
from .statistics import Interval
from .wording import frontier, summary, verdict

COLUMNS = (
    "question_id", "question", "class", "pipeline", "sample", "ending", "error", "answer", *QUALITIES,
    "usd_as_if_cold", "seconds_as_if_cold", "seconds_measured", "usd_paid", "model_calls", "searches", "fetches",
    "input_tokens", "output_tokens", "cache_read_tokens", "sources", "run",
)  # fmt: skip


def as_json(report: Report) -> str:
    found = report.figures
    data = {
        "made": report.made,
        "summary": summary(report),
        "quality": found.quality,
        "questions": len(found.questions),
        "repeats": found.repeats,
        "price_as": dict(report.price_as),
        "pipelines": [_arm(arm) for arm in found.arms],
        "frontier": {metric: frontier(found, metric) for metric in ("usd", "seconds")},
        "differences": [_difference(one) for one in (*found.differences, *found.judged)],
        "classes": {
            kind: {metric: [_interval(one) for one in row] for metric, row in metrics.items()}
            for kind, metrics in found.kinds.items()
        },
        "failures": [{"question": t.question, "pipeline": t.pipeline, "error": t.error} for t in found.failed],
        "judge": dict(report.setup.judge),
        "setup": facts(report),
        "runs": [_trial(trial) for arm in found.arms for trial in arm.trials],
    }
    return output.as_json(data) + "\n"


def _arm(arm: Arm) -> dict[str, Any]:
    return {
        "pipeline": arm.pipeline,
        "runs": len(arm.trials),
        "failed": len(arm.failed),
        "endings": dict(arm.endings),
        "quality": {name: _interval(interval) for name, interval in arm.quality.items()},
        "quality_with_failed_as_0": _interval(arm.zeroed),
        "as_if_cold": {
            "usd": _plain(arm.usd),
            "usd_by_question": _interval(arm.cost),
            "runs_without_a_known_price": arm.unpriced,
            "seconds": _plain(arm.seconds),
            "seconds_waited": arm.waited,
            "calls": dict(arm.calls),
            "tokens": {tier: dict(vars(tokens)) for tier, tokens in arm.tiers.items()},
            "cache_read_share": arm.cached,
            "stages": [dict(vars(cost)) for cost in arm.costs],
        },
        "paid": {"usd": arm.paid / NANO, "unknown_prices": arm.paid_unknown},
        "measured_seconds": _plain(arm.measured),
        "wrong": arm.wrong,
        "stale_and_wrong": arm.stale_and_wrong,
        "standard_deviation_between_repeats": dict(arm.between),
        "questions_whose_repeats_differ": list(arm.unsettled),
    }


def _plain(one: Any) -> dict[str, Any] | None:
    return None if one is None else dict(vars(one))


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    return _plain(interval)


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "metric": one.metric,
        "first": one.first,
        "second": one.second,
        "second_less_first": _interval(one.interval),
        "higher": one.higher,
        "lower": one.lower,
        "equal": one.equal,
        "sign_test": one.chance,
        "after_holm": one.adjusted,
        "claimed": one.claimed,
        "with_failed_as_0": _interval(one.zeroed),
        "in_words": verdict(one),
    }


def _trial(trial: Trial) -> dict[str, Any]:
    row = dict(zip(COLUMNS, _cells(trial), strict=True))
    return {name: None if value == "" else value for name, value in row.items()}


def as_csv(report: Report) -> str:
    """With the mark that spreadsheets look for; they compute nothing of what is in it."""
    file = io.StringIO()
    file.write("\ufeff")
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for arm in report.figures.arms:
        for trial in arm.trials:
            writer.writerow(map(output.csv_cell, _cells(trial)))
    return file.getvalue()


def _cells(trial: Trial) -> Iterator[Any]:
    answer, took = trial.answer, trial.took
    yield from (trial.question, trial.text, trial.kind, trial.pipeline, trial.sample, trial.ending, trial.error)
    yield answer.text if answer else ""
    yield from (_told(trial.scores, name) for name in QUALITIES)
    yield "" if took is None or took.usd is None else took.usd / NANO
    yield "" if took is None else round(took.seconds, 4)
    yield "" if trial.measured is None else trial.measured
    yield trial.paid / NANO
    yield from ("" if took is None else getattr(took.total, name) for name in ("models", "searches", "fetches"))
    yield from ("" if took is None else getattr(took.total, name) for name in ("input", "output"))
    yield "" if took is None else sum(tokens.cache_read for tokens in took.tiers.values())
    yield " ".join(dict.fromkeys(citation.fact.url for citation in answer.citations)) if answer else ""
    yield trial.run


def _told(scores: Mapping[str, float], name: str) -> Any:
    value = scores.get(name, "")
    return int(value) if isinstance(value, float) and value.is_integer() else value
