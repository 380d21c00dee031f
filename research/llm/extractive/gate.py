"""Whether facts answer a question at all: the decision between an answer and "not answered"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .evidence import covered, holds, missing_names, missing_years
from .question import Asked, read
from .terms import terms

ENOUGH = 0.6  # of the question's weight, in the best fact
PART_ENOUGH = 0.5  # of the weight of the topic words of one part of a compound question


@dataclass(frozen=True)
class Fact:
    """A numbered fact as synthesis is given it, and its words."""

    id: int
    claim: str
    quote: str
    site: str
    date: str
    words: frozenset[str]


def read_fact(given: Mapping[str, object]) -> Fact:
    claim, quote = str(given.get("claim") or ""), str(given.get("quote") or "")
    words = frozenset(terms(f"{claim}\n{quote}"))
    return Fact(int(str(given["id"])), claim, quote, str(given.get("site") or ""), str(given.get("date") or ""), words)


def why_not(asked: Asked, facts: Sequence[Fact]) -> str:
    """Why `facts` do not answer the question, in a few words; empty where they do."""
    if not facts:
        return "no source says anything about it"
    texts = [f"{fact.claim}\n{fact.quote}" for fact in facts]
    everything = frozenset(word for fact in facts for word in fact.words)
    if years := missing_years(asked, texts):
        return f"no source says anything about {' or '.join(years)}"
    if names := missing_names(asked, everything):
        return f"no source names {', '.join(' '.join(name) for name in names)}"
    if not any(holds(asked.kind, text, asked) for text in texts):
        return f"the sources give no {asked.kind.value.removeprefix('a ')} for it"
    if max(covered(asked.weights, fact.words) for fact in facts) < ENOUGH:
        return "no passage that was found bears on all of it"
    return ""


def unanswered_parts(asked: Asked, facts: Sequence[Fact]) -> list[str]:
    """The parts of a compound question that no fact bears on; a part that only refers back counts as borne on."""
    if len(asked.parts) < 2:
        return []
    missing = []
    for part in map(read, asked.parts):
        own = {word: weight for word, weight in part.weights.items() if weight >= 1}
        if own and max(covered(own, fact.words) for fact in facts) < PART_ENOUGH:
            missing.append(part.text)
    return missing
