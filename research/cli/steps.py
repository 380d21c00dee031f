"""`research show RUN` for a run whose model worked in a loop: its thoughts, calls and results, step by step."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..ledger import Total, dollars

if TYPE_CHECKING:
    from ..runs import Run, Runs
    from ..store import Store

SHOWN = 300  # characters of a thought or a result
SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD")  # what the names of variables end in that hold what nobody may see
SHORTEST_SECRET = 8  # characters; what is shorter is a placeholder, or a word

_MARKS = re.compile(r"</?data-[0-9a-f]{16}[^<>\n]{0,100}>")  # around what came from the web

Line = Mapping[str, Any]


def steps(run: Run, runs: Runs) -> list[dict[str, Any]]:
    """The steps of a run's loop, each with what it took; of a run that reused a loop, those of the run that made it.

    Empty for a run without a loop.
    """
    lines = run.journal()
    if not any(line["event"] == "step" for line in lines):
        keys = {line["key"] for line in lines if line["event"] == "reused" and line["receipt"].get("nested")}
        lines = _made_elsewhere(keys, runs) if keys else []
    receipts = {line["key"]: line["receipt"] for line in lines if line["event"] in ("made", "reused")}
    return [_step(line, receipts) for line in lines if line["event"] == "step"]


def _made_elsewhere(keys: set[str], runs: Runs) -> list[dict[str, Any]]:
    for other in runs.newest_first():
        lines = other.journal()
        if any(line["event"] == "made" and line["key"] in keys for line in lines):
            return lines
    return []


def _step(line: Line, receipts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    step = {key: value for key, value in line.items() if key not in ("event", "at", "stage")}
    step["took"] = receipts.get(line.get("turn") or line.get("compacted", ""), {})
    step["results"] = [{**result, "took": receipts.get(result["work"], {})} for result in line.get("results", ())]
    return step


def whole(steps: Sequence[Mapping[str, Any]], store: Store) -> list[dict[str, Any]]:
    """The steps with all that the store has of them: each turn, each search's results, each page."""

    def kept(key: str) -> Any:
        found = store.find(key) if key else None
        return None if found is None else json.loads(found.data)

    full = []
    for step in steps:
        results = [{**result, "whole": kept(result["work"])} for result in step["results"]]
        full.append({**step, "whole": kept(step.get("turn") or step.get("compacted", "")), "results": results})
    return full


def told(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The steps as lines to read."""
    for step in steps:
        if "compacted" in step:
            yield f"── the older part was shortened · {_account(step['took'])}"
            continue
        yield f"── step {step['step']} · {_account(step['took'])}"
        if step["thought"].strip():
            yield f"  {_short(step['thought'])}"
        if step["finish"] in ("length", "pause"):
            yield f"  ({'cut off' if step['finish'] == 'length' else 'paused'})"
        for result in step["results"]:
            took = f" · {result['took']['seconds']:.2f} s" if result["took"] else ""
            yield f"  → {result['call']} {_short(result['arguments'])}{took}"
            failed = "failed: " if result["failed"] else ""
            yield f"    {failed}{_short(result['text'])} ({result['length']:,} characters)"


def _account(took: Mapping[str, Any]) -> str:
    """What a turn took: model, tokens, dollars, seconds."""
    total = Total()
    calls = took.get("calls", ())
    total.add(calls)
    cached = f" ({total.cached:,} cached)" if total.cached else ""
    tokens = f"{total.input:,} tokens in{cached}, {total.output:,} out"
    names = ", ".join(dict.fromkeys(call["name"] for call in calls))
    return f"{names} · {tokens} · {dollars(total.usd, total.unknown)} · {took.get('seconds', 0):.2f} s"


def _short(text: str) -> str:
    from ..output import on_one_line

    plain = on_one_line(_MARKS.sub("", text))
    return plain if len(plain) <= SHOWN else f"{plain[:SHOWN]}…"


def redacted(value: Any, environment: Mapping[str, str] = os.environ) -> Any:
    """JSON data without the values of variables that hold secrets, wherever they stand in it."""
    from ..llm.redaction import blanked

    names = [name for name in environment if name.upper().endswith(SECRET)]
    secrets = [environment[name] for name in names if len(environment[name]) >= SHORTEST_SECRET]
    if isinstance(value, str):
        return blanked(value, secrets)
    if isinstance(value, Mapping):
        return {key: redacted(one, environment) for key, one in value.items()}
    return [redacted(one, environment) for one in value] if isinstance(value, list | tuple) else value
