"""How much a stage of each kind may be given, show to a model, and give: the rules that a forecast is made of.

Lengths are in tokens. The most holds for any model, web and question: each list as long as its stage lets it be,
each text as long as its source lets it be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .pipeline import Stage

FENCE = 60  # tokens at most around each piece of untrusted text


@dataclass(frozen=True)
class Range:
    """What is expected, and the most that may be; `math.inf` where nothing bounds it."""

    expected: float
    most: float

    def __add__(self, other: Range) -> Range:
        return Range(self.expected + other.expected, self.most + other.most)

    def __mul__(self, other: Range) -> Range:
        return Range(self.expected * other.expected, times(self.most, other.most))

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
class Asked:
    """What is asked of a stage: how often, with how many tokens in the prompt, for a reply of mostly how many."""

    runs: Range
    shows: Range = NONE
    reply: int = 0
    turns: int = 1


@dataclass(frozen=True)
class Rule:
    """One call of a kind: the tokens that fill its prompt, what it gives, how long replies mostly are.

    `turns`: how often a model is asked at most until the reply is of use. `parts`: for a stage whose work calls
    on others, what it asks of each.
    """

    gives: Callable[[Stage, Inputs], Amount]
    shows: Callable[[Stage, Inputs], Range] = lambda stage, inputs: NONE
    reply: int = 0
    turns: int = 2
    parts: Callable[[Stage, Inputs], Mapping[str, Asked]] | None = None


def characters(mostly: int, most: int) -> Range:
    """Tokens of text of so many characters: mostly 4 to a token, at worst of 4 bytes each and 3 bytes a token."""
    return Range(mostly / 4, most * 4 / 3)


QUERY = characters(60, 300)
HIT = characters(400, 300 + 2_048 + 2_000)  # title, address, snippet, as long as web.engines lets them be
SOURCE = characters(120, 600)  # title, site and date of a page
SHORTENED = 1_500  # tokens of a history that was told shorter
TOOLS = 2_000  # tokens at most that the tools' descriptions take
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
    return Amount(ONE, Range(250 + 5 * quote.expected, longest + times(longest / 2, quote.most)))


def _param(name: str) -> Callable[[Stage], int]:
    return lambda stage: int(stage.params.model_dump()[name])


_most, _top, _keep, _share = map(_param, ("most", "top", "keep", "share"))


def _asked(inputs: Inputs) -> Range:
    return inputs["question"].tokens


def _loop(stage: Stage, inputs: Inputs) -> Mapping[str, Asked]:
    """A model in a loop: as many replies as it may, each to the longest history, which is shortened each time.

    History is kept within its window, or the newest exchanges where those are longer.
    """
    params = stage.params.model_dump()
    reply = stage.sampling.max_tokens if stage.sampling else 0
    result = max(params["share"] * 4 / 3, params["top"] * HIT.most) + FENCE
    exchange = reply + params["at_once"] * result
    longest = max(params["window"], SHORTENED + params["keep"] * exchange) + TOOLS
    return {
        "turn": Asked(Range(min(5, params["steps"]), params["steps"] + 1), _asked(inputs) + Range(8_000, longest), 250),
        "compact": Asked(Range(0, params["steps"] + 1), Range(20_000, params["window"] + exchange), 800),
        "search": Asked(Range(min(3, params["searches"]), params["searches"])),
        "fetch": Asked(Range(min(4, params["pages"]), params["pages"])),
    }


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
    "recall": Rule(lambda s, i: Amount(ONE, Range(60, math.inf)), lambda s, i: _asked(i), 120),
    "investigate": Rule(lambda s, i: Amount(ONE, Range(1_000, math.inf)), parts=_loop),
    "prompt": Rule(
        _listed, lambda s, i: sum((one.shown for one in i.values()), NONE), 250, turns=1
    ),
}  # fmt: skip


def times(one: float, other: float) -> float:
    """A product in which nothing of something without bounds is nothing."""
    return 0 if 0 in (one, other) else one * other
