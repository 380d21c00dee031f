"""An answer of quoted evidence, or the reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ... import sentences
from .evidence import alike, best_first, clean, covered, holds
from .gate import Fact, read_fact, unanswered_parts, why_not
from .question import Asked, read
from .terms import terms

MOST_QUOTES = 4
FEWEST_QUOTES = 2
QUOTE_SHARE = 0.75  # of the best fact's score: further quotes below it are left out, beyond the first two
SAME = 0.6  # alike, as sets of words: such facts say the same, and only the first is quoted
SAME_SITE = 0.8  # a further quote from a site that was quoted counts this much
LONGEST_QUOTE = 360  # characters, in the answer

_ENGLISH = re.compile(r"\b(?:the|is|are|was|were|did|does|do|of|in|who|what|when|where|which|how|why)\b", re.IGNORECASE)


def synthesize(question: str, given: Sequence[Mapping[str, Any]]) -> str:
    """Two to four quotes with their markers; `NOT ANSWERED: …` first or `MISSING: …` last where that is so."""
    asked = read(question)
    facts = [read_fact(fact) for fact in given]
    if reason := why_not(asked, facts):
        return f"NOT ANSWERED: {reason}"
    chosen = _chosen(asked, facts)
    lines = [_sentence(fact, _shown(asked, fact), english=_ENGLISH.search(question) is not None) for fact in chosen]
    missing = unanswered_parts(asked, chosen)
    ending = f"\nMISSING: {'; '.join(missing)}" if missing else ""
    return " ".join(lines) + ending


def by_source(question: str, given: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> dict[str, str]:
    """One sentence of each source, or "" where it does not help; `missing` where the question is not answered."""
    asked = read(question)
    facts = [read_fact(fact) for fact in given]
    reason = why_not(asked, facts)
    reply = dict.fromkeys((key for key in keys if key.startswith("source_")), "")
    if not reason:
        for key, source in zip(reply, _sources(facts, len(reply)), strict=False):
            best = max(source, key=lambda fact: _score(asked, fact))
            reply[key] = _shown(asked, best)
    if "missing" in keys:
        reply["missing"] = reason or "; ".join(unanswered_parts(asked, facts))
    return reply


def _sources(facts: Sequence[Fact], wanted: int) -> list[list[Fact]]:
    """The facts of each source, in order: one fact a source where their numbers agree, else by site."""
    if len(facts) == wanted:
        return [[fact] for fact in facts]
    sites: dict[str, list[Fact]] = {}
    for fact in facts:
        sites.setdefault(fact.site, []).append(fact)
    return list(sites.values())


def _score(asked: Asked, fact: Fact) -> float:
    score = covered(asked.weights, fact.words) + 0.01
    if holds(asked.kind, fact.quote, asked):
        score *= 1.25
    return score / (1 + len(fact.words) / 80)


def _chosen(asked: Asked, facts: Sequence[Fact]) -> list[Fact]:
    """The facts to quote, best first, none twice, other sites preferred."""
    scores = [_score(asked, fact) for fact in facts]
    chosen: list[Fact] = []
    while len(chosen) < MOST_QUOTES:
        sites = {fact.site for fact in chosen}
        open_scores = [score * (SAME_SITE if fact.site in sites else 1.0) if _adds(fact, chosen) else 0.0
                       for fact, score in zip(facts, scores, strict=True)]  # fmt: skip
        best = best_first(open_scores)[0]
        floor = QUOTE_SHARE * max(scores) if len(chosen) >= FEWEST_QUOTES else QUOTE_SHARE * max(scores) / 2
        if not open_scores[best] or open_scores[best] < floor:
            break
        chosen.append(facts[best])
    return chosen


def _adds(fact: Fact, chosen: Sequence[Fact]) -> bool:
    return all(fact is not other and alike(fact.words, other.words) <= SAME for other in chosen)


def _shown(asked: Asked, fact: Fact) -> str:
    """The quote as the answer shows it: on one line, its best sentence where it is long."""
    text = clean(fact.quote)
    if len(text) > LONGEST_QUOTE:
        spans = sentences.spans(text)
        start, end = max(spans, key=lambda span: covered(asked.weights, set(terms(text[span[0] : span[1]]))))
        text = text[start:end]
    if len(text) > LONGEST_QUOTE:
        text = text[:LONGEST_QUOTE].rsplit(" ", 1)[0]
    return text.rstrip(" .。;,:")


def _sentence(fact: Fact, quote: str, english: bool) -> str:
    source = f"{fact.site} ({fact.date})" if fact.site and fact.date else fact.site or fact.date
    quoted = "” “".join(quote[start:end].rstrip(" .。") for start, end in sentences.spans(quote))
    if not source:
        return f"“{quoted}” [{fact.id}]."
    return f"According to {source}: “{quoted}” [{fact.id}]." if english else f"{source}: “{quoted}” [{fact.id}]."
