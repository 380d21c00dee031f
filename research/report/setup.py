"""What was run, so that it can be run again: pipelines, prompts, models, prices, web, versions."""

from __future__ import annotations

import platform
from typing import Any

from ..store import digest
from . import Report

HOW = {
    "as if cold": "worked out: the cost and the critical path of each run over the recorded cost and duration of all "
    "work that its answer rests on, whether this run made it or found it in the store; by one function for all",
    "paid": "what these runs themselves paid; what they found in the store cost nothing again",
    "measured": "seconds of the clock, of runs that found nothing in the store",
    "intervals": "95 %, by a percentile bootstrap over questions; repeats of a question are averaged first",
    "claims": "an exact sign test over questions (McNemar's, for right and wrong), corrected for all comparisons of "
    "this report by Holm's method, with an interval that leaves zero out",
    "classes": "shown without tests: they are too many, and each too small",
}  # fmt: skip


def facts(report: Report) -> dict[str, Any]:
    """As JSON data."""
    setup = report.setup
    return {
        **{name: setup.notes[name] for name in ("command", "questions", "parallel", "isolated") if name in setup.notes},
        "prices": setup.notes.get("prices", "as recorded in the runs"),
        "pipelines": {name: [made_by(one) for one in manifests] for name, manifests in setup.manifests.items()},
        "python": platform.python_version(),
        "how": HOW,
    }


def made_by(manifest: dict[str, Any]) -> dict[str, Any]:
    return {
        "pipeline": manifest.get("pipeline"),
        "digest": str(manifest.get("pipeline_digest", ""))[:12],
        "models": manifest.get("models", {}),
        "prompts": {name: digest(text)[:12] for name, text in manifest.get("prompts", {}).items()},
        "web": manifest.get("web"),
        "source": str(manifest.get("source", ""))[:12],
        "as_of": manifest.get("as_of"),
        "web_date": manifest.get("web_date"),
        "version": manifest.get("version"),
    }
