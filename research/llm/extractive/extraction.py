"""The sentences of a page that bear most on a question, quoted byte for byte."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ... import relevance, sentences
from .evidence import alike, best_first, clean, covered, holds, missing_names
from .question import Asked
from .terms import terms

MOST_FACTS = 5
LONGEST_QUOTE = 700  # characters
# A page is quoted where its best sentence and its title together cover this much of the question. Low on
# purpose: whether the question is answered is decided over all pages.
PAGE_COVERAGE = 0.4
SENTENCE_SHARE = 0.45  # of the best sentence's score; what scores less is left out
TITLE_CREDIT = 0.5  # of a word's weight, where it stands in the title and not in the sentence
KIND_BONUS = 0.25  # of the sentence's score, where it holds the kind of answer asked for
LEAD_BONUS = 0.1  # of the sentence's score, for the first sentences of a page
SAME = 0.8  # alike, as sets of words: one of two such sentences is quoted

_LEANS = re.compile(r"(?:He|She|It|They|His|Her|Its|Their|This|These|That|Those|Here|There)\b")


@dataclass(frozen=True)
class _Sentence:
    start: int
    end: int
    words: frozenset[str]


def extract(asked: Asked, title: str, text: str) -> list[dict[str, str]]:
    """At most `MOST_FACTS` of {"claim", "quote"}, best first; none where nothing bears on the question.

    Each quote is a substring of `text`. A claim is its quote on one line, with the page's
    title before it where the quote alone does not name what the question names.
    """
    found = [_Sentence(start, end, frozenset(terms(text[start:end]))) for start, end in sentences.spans(text)]
    titled = frozenset(terms(title))
    scores = _scores(asked, titled, found, text)
    facts: list[dict[str, str]] = []
    taken: list[_Sentence] = []
    for index in best_first(scores):
        sentence = found[index]
        if len(facts) == MOST_FACTS or not scores[index] or scores[index] < SENTENCE_SHARE * max(scores):
            break
        if any(alike(sentence.words, other.words) > SAME for other in taken):
            continue
        taken.append(sentence)
        facts.append(_fact(asked, title, titled, text, _quote(found, index, text)))
    return facts


def _scores(asked: Asked, titled: frozenset[str], found: Sequence[_Sentence], text: str) -> list[float]:
    """One score a sentence; all 0 where the page does not bear on the question."""
    weights = _weighted(asked.weights, found)
    scores = [_score(asked, weights, titled, found, index, text) for index in range(len(found))]
    best = max(scores, default=0.0)
    if not best:
        return scores
    words = found[scores.index(best)].words | titled
    bears = covered(asked.weights, words) >= PAGE_COVERAGE
    if not bears or (asked.names and len(missing_names(asked, words)) == len(asked.names)):
        return [0.0] * len(found)
    return scores


def _weighted(weights: Mapping[str, float], found: Sequence[_Sentence]) -> dict[str, float]:
    rarity = relevance.idf(weights, [sentence.words for sentence in found])
    return {word: weight * rarity[word] for word, weight in weights.items()}


def _score(asked: Asked, weights: Mapping[str, float], titled: frozenset[str],
           found: Sequence[_Sentence], index: int, text: str) -> float:  # fmt: skip
    sentence = found[index]
    own = sum(weight for word, weight in weights.items() if word in sentence.words)
    if not own or len(sentence.words) < 3:
        return 0.0
    around = titled | (found[index - 1].words if index else frozenset())
    score = own + TITLE_CREDIT * sum(w for word, w in weights.items() if word in around and word not in sentence.words)
    quote = text[sentence.start : sentence.end]
    if holds(asked.kind, quote, asked):
        score *= 1 + KIND_BONUS
    if index < 3:
        score *= 1 + LEAD_BONUS
    return score / (1 + len(sentence.words) / 80)


def _quote(found: Sequence[_Sentence], index: int, text: str) -> str:
    """The sentence, with the one before it where it leans on that; a table's row with the row above it."""
    start, end = found[index].start, found[index].end
    if index and (_LEANS.match(text, start) or " | " in text[start:end]):
        before = found[index - 1]
        adjoins = text[before.end : start].count("\n") < 2 and end - before.start <= LONGEST_QUOTE
        if adjoins and (" | " in text[before.start : before.end]) == (" | " in text[start:end]):
            start = before.start
    return text[start : min(end, start + LONGEST_QUOTE)]


def _fact(asked: Asked, title: str, titled: frozenset[str], text: str, quote: str) -> dict[str, str]:
    claim = clean(quote)
    needed = (titled & asked.weights.keys()) - set(terms(quote))
    return {"claim": f"{clean(title)}: {claim}" if needed else claim, "quote": quote}
