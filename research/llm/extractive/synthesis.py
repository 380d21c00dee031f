"""An answer of quoted evidence, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import relevance, sentences
from .evidence import alike, clean, covered, holds, missing_names
from .gate import Fact, judge, read_fact, topic_enough
from .question import Asked, read
from .statements import names_its_source, worth
from .subjects import defines, passes
from .terms import terms
from .vocabulary import Kind

MOST_QUOTES = 4
# Of the best fact's score: further quotes below it are left out. Over qa-freshqa-wiki and qa-nq-oracle, the quotes
# hold a reference answer in 0.40 and 0.63 of questions at 0.75 (1.7 quotes on average), in 0.48 and 0.81 at 0.5 (2.7).
QUOTE_SHARE = 0.5
SAME = 0.6  # alike, as sets of words: such facts say the same, and only the first is quoted
SAME_PAGE = 0.8  # a further quote from a page that was quoted counts this much
AROUND_CREDIT = 0.8  # of a word's weight, where only the page's title or the table's head has it
TITLE_CREDIT = 0.05  # of a word's weight besides, there: of equal facts, that of a page about the question comes first
KIND_BONUS = 0.3  # of the score, where the quote holds the kind of answer asked for
DEFINITION_BONUS = 0.5  # of the score, for "X is …" where what X is was asked
LONGEST_QUOTE = 360  # characters, in the answer


def synthesize(question: str, given: Sequence[Mapping[str, Any]]) -> str:
    """Two to four quotes with their markers; `NOT ANSWERED: …` first or `MISSING: …` last where that is so."""
    asked = read(question)
    facts = [read_fact(fact) for fact in given]
    verdict = judge(asked, facts)
    if verdict.reason:
        return f"NOT ANSWERED: {verdict.reason}"
    ending = f"\nMISSING: {'; '.join(verdict.missing)}" if verdict.missing else ""
    return " ".join(_sentence(asked, fact) for fact in _chosen(asked, facts)) + ending


def by_source(question: str, given: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> dict[str, str]:
    """One sentence of each source, or "" where it does not help; `missing` where the question is not answered."""
    asked = read(question)
    facts = [read_fact(fact) for fact in given]
    verdict = judge(asked, facts)
    reply = dict.fromkeys((key for key in keys if key.startswith("source_")), "")
    for fact in [] if verdict.reason else _chosen(asked, facts):
        key = f"source_{fact.source or fact.id}"
        if key in reply and not reply[key]:
            reply[key] = f"“{_shown(asked, fact)}”"
    if "missing" in keys:
        reply["missing"] = verdict.reason or "; ".join(verdict.missing)
    return reply


def _scores(asked: Asked, facts: Sequence[Fact]) -> list[float]:
    rarity = relevance.idf(asked.weights, [fact.words for fact in facts])
    weights = {word: weight * (1 + rarity[word]) for word, weight in asked.importance.items()}
    return [_score(asked, weights, fact) for fact in facts]


def _score(asked: Asked, weights: Mapping[str, float], fact: Fact) -> float:
    if names_its_source(fact.quote) or passes(asked, fact.quote):
        return 0.0
    score = covered(weights, fact.words) + AROUND_CREDIT * covered(weights, fact.around - fact.words)
    score += TITLE_CREDIT * covered(weights, fact.around)
    if holds(asked.kind, fact.quote, asked):
        score *= 1 + KIND_BONUS
    if defines(asked, fact.quote):
        score *= 1 + DEFINITION_BONUS
    return score * worth(fact.quote) / (1 + len(fact.words) / 120)


def _chosen(asked: Asked, facts: Sequence[Fact]) -> list[Fact]:
    """The facts to quote: the best for each part of the question, then the best that are left; none twice."""
    chosen: list[Fact] = []
    parts = [part for part in map(read, asked.parts) if part.topic or part.names] or [asked]
    for part in parts if len(parts) > 1 else ():
        scores = _scores(part, facts)
        best = max(range(len(facts)), key=lambda index: scores[index])
        if _is_about(part, facts[best]) and _is_new(asked, facts[best], chosen):
            chosen.append(facts[best])
    scores = _scores(asked, facts)
    about = _fitting(parts, facts, scores)
    while len(chosen) < MOST_QUOTES:
        totals = {index: scores[index] * _discount(fact, chosen)
                  for index, fact in enumerate(facts) if about[index] and _is_new(asked, fact, chosen)}  # fmt: skip
        best = max(totals, key=lambda index: totals[index], default=-1)
        if best < 0 or not totals[best] or totals[best] < QUOTE_SHARE * max(scores):
            break
        chosen.append(facts[best])
    return chosen


def _fitting(parts: Sequence[Asked], facts: Sequence[Fact], scores: Sequence[float]) -> list[bool]:
    """Which facts may be quoted: those about some part; where the best is a figure of what is named, no other's."""
    about = [any(_is_about(part, fact) for part in parts) for fact in facts]
    fitting = [
        fits and any(_is_of(part, fact, facts) for part in parts) for fits, fact in zip(about, facts, strict=True)
    ]
    best = max(range(len(facts)), key=lambda index: about[index] * scores[index])
    return fitting if fitting[best] else about


def _is_about(asked: Asked, fact: Fact) -> bool:
    """Whether a fact has enough of the question's topic, or stands for all of its dates."""
    dated = asked.dates and set(asked.dates) <= fact.words
    return bool(dated) or covered(asked.topic, fact.all_words) >= topic_enough(asked)


def _is_of(asked: Asked, fact: Fact, facts: Sequence[Fact]) -> bool:
    """Whether a figure is one of what the question names, as far as any fact has that, and says itself of what."""
    if asked.kind is not Kind.COUNT:
        return True
    if missing_names(asked, [fact.all_words]) and not missing_names(asked, [other.all_words for other in facts]):
        return False
    return " | " in fact.quote or not asked.topic or not asked.topic.keys().isdisjoint(fact.words)


def _is_new(asked: Asked, fact: Fact, chosen: Sequence[Fact]) -> bool:
    return all(
        fact is not other and alike(fact.words, other.words) <= SAME and not _says_again(asked, fact, other)
        for other in chosen
    )


def _says_again(asked: Asked, fact: Fact, other: Fact) -> bool:
    """Whether all figures of a fact, and all of the question that it has, stand in another of the same source,
    or that has all of a question for the figure of a date, or of several parts, and this less ("core inflation")."""
    if (fact.source, fact.title, fact.site) != (other.source, other.title, other.site):
        return False
    figures = {word for word in fact.words if word[0].isdigit()}
    said = asked.weights.keys() & fact.words
    less = said < asked.weights.keys() <= other.words
    strict = asked.kind is Kind.COUNT and (bool(asked.dates) or len(asked.parts) > 1)
    return (bool(figures) and figures | said <= other.words) or (strict and less and " | " not in fact.quote)


def _discount(fact: Fact, chosen: Sequence[Fact]) -> float:
    """Pages that were not quoted yet are preferred."""
    return SAME_PAGE if any((fact.source or fact.site) == (other.source or other.site) for other in chosen) else 1.0


def _shown(asked: Asked, fact: Fact) -> str:
    """The quote as the answer shows it: on one line, a row with the names of its columns, its best sentence if long."""
    if " | " in fact.quote and set(sentences.words(fact.claim)) <= set(sentences.words(fact.quote)):
        return fact.claim
    text = clean(fact.quote)
    parts = [text[start:end] for start, end in sentences.spans(text)]
    if len(text) > LONGEST_QUOTE:
        best = max(parts, key=lambda part: covered(asked.weights, set(terms(part))))
        parts = [best if len(best) <= LONGEST_QUOTE else best[:LONGEST_QUOTE].rsplit(" ", 1)[0]]
    return "” “".join(part.lstrip("-*• ").rstrip(" .。;,:") for part in parts)


def _sentence(asked: Asked, fact: Fact) -> str:
    """One sentence with its marker: only the frame is ours, and only for questions in English."""
    source = f"{fact.site} ({fact.date})" if fact.site and fact.date else fact.site or fact.date
    quoted = f"“{_shown(asked, fact)}” [{fact.id}]."
    if not source:
        return quoted
    return f"According to {source}: {quoted}" if asked.english else f"{source}: {quoted}"
