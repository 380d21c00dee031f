"""An answer of quoted evidence, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import relevance, sentences
from .evidence import alike, clean, covered, holds
from .gate import Fact, read_fact, unanswered_parts, why_not
from .question import Asked, read
from .statements import names_its_source
from .terms import terms

MOST_QUOTES = 4
FEWEST_QUOTES = 2
QUOTE_SHARE = 0.75  # of the best fact's score: further quotes below it are left out
FIRST_SHARE = 0.4  # the same for the first `FEWEST_QUOTES`
SAME = 0.6  # alike, as sets of words: such facts say the same, and only the first is quoted
SAME_SITE = 0.8  # a further quote from a page that was quoted counts this much
TITLE_CREDIT = 0.5  # of a word's weight, where only the page's title has it
KIND_BONUS = 0.3  # of the score, where the quote holds the kind of answer asked for
LONGEST_QUOTE = 360  # characters, in the answer


def synthesize(question: str, given: Sequence[Mapping[str, Any]]) -> str:
    """Two to four quotes with their markers; `NOT ANSWERED: …` first or `MISSING: …` last where that is so."""
    asked = read(question)
    facts = [read_fact(fact) for fact in given]
    if reason := why_not(asked, facts):
        return f"NOT ANSWERED: {reason}"
    chosen = _chosen(asked, facts)
    missing = unanswered_parts(asked, facts)
    ending = f"\nMISSING: {'; '.join(missing)}" if missing else ""
    return " ".join(_sentence(asked, fact) for fact in chosen) + ending


def by_source(question: str, given: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> dict[str, str]:
    """One sentence of each source, or "" where it does not help; `missing` where the question is not answered."""
    asked = read(question)
    facts = [read_fact(fact) for fact in given]
    reason = why_not(asked, facts)
    reply = dict.fromkeys((key for key in keys if key.startswith("source_")), "")
    for fact in [] if reason else _chosen(asked, facts):
        key = f"source_{fact.source or fact.id}"
        if key in reply and not reply[key]:
            reply[key] = f"“{_shown(asked, fact)}”"
    if "missing" in keys:
        reply["missing"] = reason or "; ".join(unanswered_parts(asked, facts))
    return reply


def _scores(asked: Asked, facts: Sequence[Fact]) -> list[float]:
    rarity = relevance.idf(asked.weights, [fact.words for fact in facts])
    weights = {word: weight * (0.5 + rarity[word]) for word, weight in asked.weights.items()}
    return [_score(asked, weights, fact) for fact in facts]


def _score(asked: Asked, weights: Mapping[str, float], fact: Fact) -> float:
    if names_its_source(fact.quote):
        return 0.0
    score = covered(weights, fact.words) + TITLE_CREDIT * covered(weights, fact.titled - fact.words)
    if holds(asked.kind, fact.quote, asked):
        score *= 1 + KIND_BONUS
    return score / (1 + len(fact.words) / 80)


def _chosen(asked: Asked, facts: Sequence[Fact]) -> list[Fact]:
    """The facts to quote, best first, none twice, other pages preferred."""
    scores = _scores(asked, facts)
    chosen: list[Fact] = []
    while len(chosen) < MOST_QUOTES:
        pages = {fact.source or fact.site for fact in chosen}
        totals = {
            index: scores[index] * (SAME_SITE if (fact.source or fact.site) in pages else 1.0)
            for index, fact in enumerate(facts)
            if all(fact is not other and alike(fact.words, other.words) <= SAME for other in chosen)
        }
        best = max(totals, key=lambda index: totals[index], default=None)
        share = QUOTE_SHARE if len(chosen) >= FEWEST_QUOTES else FIRST_SHARE
        if best is None or not totals[best] or totals[best] < share * max(scores):
            break
        chosen.append(facts[best])
    return chosen


def _shown(asked: Asked, fact: Fact) -> str:
    """The quote as the answer shows it: on one line, a row with the names of its columns, its best sentence if long."""
    if " | " in fact.quote and set(sentences.words(fact.claim)) <= set(sentences.words(fact.quote)):
        return fact.claim
    text = clean(fact.quote)
    spans = sentences.spans(text)
    if len(spans) > 1:
        start, end = max(spans, key=lambda span: covered(asked.weights, set(terms(text[span[0] : span[1]]))))
        text = text[start:end]
    if len(text) > LONGEST_QUOTE:
        text = text[:LONGEST_QUOTE].rsplit(" ", 1)[0]
    return text.lstrip("-*• ").rstrip(" .。;,:")


def _sentence(asked: Asked, fact: Fact) -> str:
    """One sentence with its marker: only the frame is ours, and only for questions in English."""
    source = f"{fact.site} ({fact.date})" if fact.site and fact.date else fact.site or fact.date
    quoted = f"“{_shown(asked, fact)}” [{fact.id}]."
    if not source:
        return quoted
    return f"According to {source}: {quoted}" if asked.english else f"{source}: {quoted}"
