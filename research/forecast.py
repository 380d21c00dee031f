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

from .pipeline import Pipeline, Stage

if TYPE_CHECKING:
    from .llm.messages import Usage

TRIES = 2  # of one reply that are paid for: what breaks off or fits no form is asked for once more
ENVELOPE = 500  # tokens at most that a request has besides its prompt: field names, the reply's schema
FENCE = 60  # tokens at most around each piece of untrusted text
OF_THINKING = 0.25  # the part of their allowance for thinking that models mostly use
REPLACED = 1.3  # pages that are mostly tried for one that can be read


@dataclass(frozen=True)
class Range:
    """What is expected, and the most that may be; `math.inf` where nothing bounds it."""

    expected: float
    most: float

    def __add__(self, other: Range) -> Range:
        return Range(self.expected + other.expected, self.most + other.most)

    def __mul__(self, other: Range) -> Range:
        return Range(self.expected * other.expected, _times(self.most, other.most))

    def within(self, cap: float) -> Range:
        return Range(min(self.expected, cap), min(self.most, cap))


ONE = Range(1, 1)
NONE = Range(0, 0)


@dataclass(frozen=True)
class Amount:
    """So many items, each of so many tokens where a prompt shows it."""

    items: Range
    tokens: Range

    @property
    def shown(self) -> Range:
        return self.items * (self.tokens + Range(FENCE / 2, FENCE))


Inputs = Mapping[str, Amount]


@dataclass(frozen=True)
class Rule:
    """One call of a kind: the tokens that fill its prompt, what it gives, how long replies mostly are.

    `turns`: how often a model is asked at most until the reply is of use.
    """

    gives: Callable[[Stage, Inputs], Amount]
    shows: Callable[[Stage, Inputs], Range] = lambda stage, inputs: NONE
    reply: int = 0
    turns: int = 2


def characters(mostly: int, most: int) -> Range:
    """Tokens of text of so many characters: mostly 4 to a token, at worst of 4 bytes each and 3 bytes a token."""
    return Range(mostly / 4, most * 4 / 3)


QUERY = characters(60, 300)
HIT = characters(400, 300 + 2_048 + 2_000)  # title, address, snippet, as long as web.engines lets them be
SOURCE = characters(120, 600)  # title, site and date of a page
PARTLY_ALIKE = 0.7  # of the hits of several queries, after merging


def _facts(stage: Stage, inputs: Inputs) -> Amount:
    """All facts of one page fit into one reply."""
    most = stage.params.model_dump()["most"]
    reply = stage.sampling.max_tokens if stage.sampling else 0
    return Amount(Range(min(3, most), most), Range(60, reply / most) + SOURCE)


def _listed(stage: Stage, inputs: Inputs) -> Amount:
    """A reply of free form is as long as its schema says, if it says so."""
    schema = stage.params.model_dump().get("reply") or {}
    most = math.inf if schema.get("type", "array") == "array" else 1
    reply = stage.sampling.max_tokens if stage.sampling else 0
    return Amount(Range(min(4, most), schema.get("maxItems", most)), Range(reply / 4, reply))


def _answer(stage: Stage, inputs: Inputs) -> Amount:
    """An answer with a quote beside each of its markers, which take two tokens of a reply at least."""
    longest = stage.sampling.max_tokens if stage.sampling else 0
    quote = inputs["facts"].tokens + Range(FENCE / 2, FENCE)
    return Amount(ONE, Range(250 + 5 * quote.expected, longest + _times(longest / 2, quote.most)))


def _param(name: str) -> Callable[[Stage], int]:
    return lambda stage: int(stage.params.model_dump()[name])


_most, _top, _keep, _share = map(_param, ("most", "top", "keep", "share"))


def _asked(inputs: Inputs) -> Range:
    return inputs["question"].tokens


RULES: Mapping[str, Rule] = {
    "plan": Rule(lambda s, i: Amount(Range(min(2, _most(s)), _most(s)), QUERY), lambda s, i: _asked(i), 60),
    "search": Rule(lambda s, i: Amount(Range(PARTLY_ALIKE * _top(s), _top(s)), HIT)),
    "rerank": Rule(lambda s, i: i["hits"], lambda s, i: _asked(i) + i["hits"].shown, 30),
    "screen": Rule(lambda s, i: Amount(ONE, i["hit"].tokens), lambda s, i: _asked(i) + i["hit"].shown, 10),
    "fetch": Rule(lambda s, i: Amount(ONE, Range(3_000, math.inf))),
    "extract": Rule(
        _facts,
        lambda s, i: _asked(i) + SOURCE + Range(min(i["page"].tokens.expected, _share(s) / 4), _share(s) * 4 / 3),
        300,
    ),
    "quote": Rule(lambda s, i: Amount(i["hits"].items.within(_keep(s)), HIT + SOURCE)),
    "synthesize": Rule(
        _answer,
        lambda s, i: _asked(i) + Amount(i["facts"].items.within(_most(s)), i["facts"].tokens).shown,
        250,
    ),
    "verify": Rule(lambda s, i: i["answer"], lambda s, i: i["answer"].shown, 200),
    "prompt": Rule(
        _listed, lambda s, i: sum((one.shown for one in i.values()), NONE), 250, turns=1
    ),
}  # fmt: skip


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
        if stage.kind.model or stage.kind.web:
            rows.append(_row(stage, rule, inputs, _tried(stage, runs), terms))
    return rows


def _tried(stage: Stage, runs: Range) -> Range:
    """How many items are worked on: replacements and what is done ahead counted in."""
    if stage.want is not None:
        runs = Range(min(runs.expected, stage.want * REPLACED), runs.most)
    if stage.prefetch is not None:
        runs = runs + Range(0, stage.prefetch.top)
    return Range(runs.expected, _times(runs.most, stage.policy.retries + 1))


def _row(stage: Stage, rule: Rule, inputs: Inputs, runs: Range, terms: Terms) -> Row:
    if not stage.kind.model:
        return _web_row(stage, runs, terms)
    model = terms.models[stage.model]
    prompt, sampling = stage.prompt, stage.sampling
    assert prompt is not None
    assert sampling is not None
    thinking = max(sampling.reasoning_tokens, terms.thinking(model))
    first = Range(len(prompt.text) / 4, len(prompt.text.encode()) / 3 + ENVELOPE) + rule.shows(stage, inputs)
    output = Range(rule.reply + OF_THINKING * thinking, sampling.max_tokens + thinking)
    turns = 1 if model.startswith("builtin:") else rule.turns
    tries = 1 if model.startswith("builtin:") else TRIES
    whole = sum(first.most + turn * (output.most + ENVELOPE) for turn in range(turns))  # each turn holds those before
    worst = _sum(
        [_price(terms, model, first.most + turn * (output.most + ENVELOPE), output.most) for turn in range(turns)]
    )
    usd = _price(terms, model, first.expected, output.expected)
    return Row(
        stage.name,
        model,
        Range(runs.expected, _times(runs.most, turns * tries)),
        Range(runs.expected * first.expected, _times(runs.most, tries * whole)),
        Range(runs.expected * output.expected, _times(runs.most, tries * turns * output.most)),
        None if usd is None else usd * runs.expected,
        None if worst is None else _times(runs.most, tries * worst),
    )


def _web_row(stage: Stage, runs: Range, terms: Terms) -> Row:
    """A search asks the first engine, at worst all of them."""
    if stage.kind.web != "search":
        return Row(stage.name, "pages", runs, NONE, NONE, 0, 0)
    fees = [*terms.engines.values()]
    first, all_of_them = fees[0] if fees else 0, _sum(fees)
    return Row(
        stage.name,
        ", ".join(terms.engines),
        runs,
        NONE,
        NONE,
        None if first is None else runs.expected * first,
        None if all_of_them is None else _times(runs.most, all_of_them),
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


def _times(one: float, other: float) -> float:
    """A product in which nothing of something without bounds is nothing."""
    return 0 if 0 in (one, other) else one * other


def total(rows: list[Row]) -> dict[str, Any]:
    """Sums over all rows; `unknown` counts the stages whose price is not known, which makes both sums lower bounds."""
    return {
        "calls": sum((row.calls for row in rows if row.input != NONE), NONE),
        "tokens": sum((row.input + row.output for row in rows), NONE),
        "usd": sum(row.usd or 0 for row in rows),
        "worst_usd": sum(row.worst_usd or 0 for row in rows),
        "unknown": sum(row.worst_usd is None for row in rows),
    }
