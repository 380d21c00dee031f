"""What a run may cost, worked out from the pipeline's declarations before anything is sent.

For each kind of stage a rule says what one call is shown and what it gives; counts and lengths flow down the
pipeline from there. The worst case holds for any model, web and question of that length: each list as long as
its stage lets it be, each page refused and replaced, each reply repaired, broken off and paid for all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .bounds import NONE, ONE, RULES, Amount, Asked, Range, times
from .pipeline import Pipeline, Stage

if TYPE_CHECKING:
    from .llm.messages import Usage
    from .prompts import Prompt

TRIES = 2  # of one reply that are paid for: what breaks off or fits no form is asked for once more
ENVELOPE = 500  # tokens at most that a request has besides its prompt: field names, the reply's schema
OF_THINKING = 0.25  # the part of their allowance for thinking that models mostly use
REPLACED = 1.3  # pages that are mostly tried for one that can be read


@dataclass(frozen=True)
class Row:
    """One stage. `input` and `output` are tokens of all calls; dollars are nano, None where no price is known."""

    stage: str
    asks: str
    calls: Range
    input: Range
    output: Range
    usd: float | None
    worst_usd: float | None


@dataclass(frozen=True)
class Terms:
    """Whom the stages ask, and at what price. `models` maps tiers and pinned names to "provider:model"; `thinking`
    tells how many tokens a model may think unasked; `engines` are tried in order, each at its fee."""

    models: Mapping[str, str]
    price: Callable[[str, Usage], int | None]
    thinking: Callable[[str], int]
    engines: Mapping[str, int | None]


def forecast(pipeline: Pipeline, question: str, terms: Terms) -> list[Row]:
    """A row for each stage that asks a model or the web, in the order of the data."""
    size = Range(len(question) / 4, len(question.encode()) / 3)
    amounts = {"question": Amount(ONE, size), "as_of": Amount(ONE, Range(4, 8)), "web_date": Amount(ONE, Range(4, 8))}
    rows = []
    for stage in pipeline.stages.values():
        inputs = {name: amounts[source.name] for name, source in stage.takes.items()}
        runs = ONE
        if stage.each is not None:
            listed = amounts[stage.each.name]
            runs, inputs[stage.item] = listed.items, Amount(ONE, listed.tokens)
        rule = RULES[stage.kind.name]
        one = rule.gives(stage, inputs)
        kept = runs if stage.want is None else runs.within(stage.want)
        amounts[stage.gives] = Amount(kept * one.items, one.tokens)
        asked = {"": Asked(_tried(stage, runs), rule.shows(stage, inputs), rule.reply, rule.turns)}
        for name, each in (rule.parts(stage, inputs) if rule.parts else asked).items():
            part = stage.parts[name] if name else stage
            if part.kind.model or part.kind.web:
                rows.append(_row(f"{stage.name} {name}".strip(), part, part.prompt or stage.prompt, each, terms))
    return rows


def _tried(stage: Stage, runs: Range) -> Range:
    """How many items are worked on: replacements and what is done ahead counted in."""
    if stage.want is not None:
        runs = Range(min(runs.expected, stage.want * REPLACED), runs.most)
    if stage.prefetch is not None:
        runs = runs + Range(0, stage.prefetch.top)
    return Range(runs.expected, times(runs.most, stage.policy.retries + 1))


def _row(name: str, stage: Stage, prompt: Prompt | None, asked: Asked, terms: Terms) -> Row:
    if not stage.kind.model:
        return _web_row(name, stage, asked.runs, terms)
    model, sampling, text = terms.models[stage.model], stage.sampling, prompt.text if prompt else ""
    assert sampling is not None
    thinking = max(sampling.reasoning_tokens, terms.thinking(model))
    first = Range(len(text) / 4, len(text.encode()) / 3 + ENVELOPE) + asked.shows
    output = Range(asked.reply + OF_THINKING * thinking, sampling.max_tokens + thinking)
    builtin = model.startswith("builtin:")
    tries = 1 if builtin else TRIES
    inputs = [first.most + turn * (output.most + ENVELOPE) for turn in range(1 if builtin else asked.turns)]
    worst = _sum([_price(terms, model, each, output.most) for each in inputs])  # each turn holds those before it
    usd = _price(terms, model, first.expected, output.expected)
    return Row(
        name,
        model,
        Range(asked.runs.expected, times(asked.runs.most, len(inputs) * tries)),
        Range(asked.runs.expected * first.expected, times(asked.runs.most, tries * sum(inputs))),
        Range(asked.runs.expected * output.expected, times(asked.runs.most, tries * len(inputs) * output.most)),
        None if usd is None else usd * asked.runs.expected,
        None if worst is None else times(asked.runs.most, tries * worst),
    )


def _web_row(name: str, stage: Stage, runs: Range, terms: Terms) -> Row:
    """A search asks the first engine, at worst all of them, each twice."""
    if stage.kind.web != "search":
        return Row(name, "pages", runs, NONE, NONE, 0, 0)
    fees = [*terms.engines.values()]
    first, all_of_them = fees[0] if fees else 0, _sum(fees)
    return Row(
        name,
        ", ".join(terms.engines),
        runs,
        NONE,
        NONE,
        None if first is None else runs.expected * first,
        None if all_of_them is None else times(runs.most, TRIES * all_of_them),
    )


def _sum(parts: Sequence[float | None]) -> float | None:
    """None if one of them is not known."""
    return None if any(part is None for part in parts) else sum(part or 0 for part in parts)


def _price(terms: Terms, model: str, fresh: float, output: float) -> float | None:
    """Nano-dollars of one call; where writing to the provider's cache costs more than reading, it is written."""
    from .llm.messages import Usage

    if math.inf in (fresh, output):
        one = terms.price(model, Usage(input=1))
        return None if one is None else math.inf if one else 0
    tokens = math.ceil(output)
    costs = [
        terms.price(model, Usage(input=math.ceil(fresh), output=tokens)),
        terms.price(model, Usage(cache_write=math.ceil(fresh), output=tokens)),
    ]
    return None if None in costs else max(cost or 0 for cost in costs)


def total(rows: list[Row]) -> dict[str, Any]:
    """Sums over all rows; `unknown` counts the stages whose price is not known, which makes both sums lower bounds."""
    return {
        "calls": sum((row.calls for row in rows if row.input != NONE), NONE),
        "tokens": sum((row.input + row.output for row in rows), NONE),
        "usd": sum(row.usd or 0 for row in rows),
        "worst_usd": sum(row.worst_usd or 0 for row in rows),
        "unknown": sum(row.worst_usd is None for row in rows),
    }
