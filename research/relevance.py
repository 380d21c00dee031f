"""Which texts bear on a question: BM25 over small collections, and a page's best passages.

BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009), with the inverse document frequency kept above zero:
`ln(1 + (N - n + 0.5) / (n + 0.5))` for a word in n of N documents.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import sentences

K1 = 1.2  # how soon a word's repetition stops to count
B = 0.75  # how much a document's length counts
PASSAGE = 800  # characters; a passage ends at the first paragraph's end beyond it
LONGEST_PASSAGE = 1_200  # characters; a longer paragraph is cut at a sentence's end before it
LEAD_BONUS = 0.15  # of the best score: the head of a page says what it is about
GAP = "\n[…]\n"

_LINE = re.compile(r"[^\n]*\n+|[^\n]+$")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*\s|[。！？।۔؟]")


@dataclass(frozen=True)
class Narrowed:
    """A page's best passages, and which spans of the page they are (in its order)."""

    text: str
    spans: tuple[tuple[int, int], ...]


def rank(query: str, documents: Sequence[str]) -> list[tuple[int, float]]:
    """All documents as (index, score), best first; equal scores keep their order.

    A score is 0 where the document shares no word with the query.
    """
    terms = term_reader(query)
    return rank_terms(terms(query), [terms(document) for document in documents])


def rank_terms(query: Sequence[str], documents: Sequence[Sequence[str]]) -> list[tuple[int, float]]:
    """`rank` for texts that are terms already; a repeated term counts as often as it stands there."""
    scored = enumerate(bm25(query, documents))
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def bm25(
    query: Sequence[str], documents: Sequence[Sequence[str]], importance: Mapping[str, float] | None = None
) -> list[float]:
    """The score of each document, in their order; `importance` multiplies what a term counts (1 where not given)."""
    wanted = set(query)
    counts = [Counter(term for term in document if term in wanted) for document in documents]
    weights = idf(wanted, counts)
    if importance is not None:
        weights = {term: weight * importance.get(term, 1.0) for term, weight in weights.items()}
    mean = sum(map(len, documents)) / len(documents) if documents else 0.0
    return [_score(count, len(document) / mean if mean else 1.0, weights)
            for count, document in zip(counts, documents, strict=True)]  # fmt: skip


def idf(terms: Iterable[str], documents: Sequence[Iterable[str]]) -> dict[str, float]:
    """The inverse document frequency of each of `terms`; `documents` yield each term once."""
    wanted = set(terms)
    found = Counter(term for document in documents for term in set(document) & wanted)
    return {term: math.log1p((len(documents) - found[term] + 0.5) / (found[term] + 0.5)) for term in wanted}


def _score(count: Counter[str], length: float, weights: dict[str, float]) -> float:
    norm = K1 * (1 - B + B * length)
    return sum(weights[term] * times * (K1 + 1) / (times + norm) for term, times in count.items())


def narrow(text: str, question: str, limit: int) -> Narrowed:
    """The passages of `text` that bear most on `question`, at most `limit` characters in all.

    They keep the page's order and are joined by `GAP`; a text within the limit is
    returned whole. Where no passage shares a word with the question, the text's head is kept.
    """
    if len(text) <= limit:
        return Narrowed(text, ((0, len(text)),) if text else ())
    spans = passages(text)
    terms = term_reader(question)
    scores = bm25(terms(question), [terms(text[start:end]) for start, end in spans])
    scores[0] += LEAD_BONUS * max(scores)
    order = sorted(range(len(spans)), key=lambda index: (-scores[index], index))
    kept = _merged([spans[index] for index in _that_fit(order, spans, limit)])
    if not kept:
        start, end = spans[order[0]]
        kept = [(start, min(end, start + max(limit, 0)))]
    return Narrowed(GAP.join(text[start:end] for start, end in kept), tuple(kept))


def _that_fit(order: Sequence[int], spans: Sequence[tuple[int, int]], limit: int) -> list[int]:
    """The indices to keep, ascending: in `order`, each that still has room."""
    kept: list[int] = []
    room = limit
    for index in order:
        start, end = spans[index]
        size = end - start + (len(GAP) if kept else 0)
        if size <= room:
            kept.append(index)
            room -= size
    return sorted(kept)


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def passages(text: str) -> list[tuple[int, int]]:
    """Spans that cover `text` without gaps, each about `PASSAGE` characters, of whole paragraphs where they fit."""
    spans: list[tuple[int, int]] = []
    start = 0
    for end in _breaks(text):
        if end - start >= PASSAGE:
            spans.append((start, end))
            start = end
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def _breaks(text: str) -> Iterator[int]:
    """Where a passage may end: after each line, and inside lines that are too long for one."""
    for line in _LINE.finditer(text):
        start, end = line.span()
        while end - start > LONGEST_PASSAGE:
            start = _cut(text, start)
            yield start
        yield end


def _cut(text: str, start: int) -> int:
    """The last sentence's end within a passage from `start`, else the last space, else its full length."""
    end = start + LONGEST_PASSAGE
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start + PASSAGE, end)]
    if ends:
        return ends[-1]
    space = text.rfind(" ", start + PASSAGE, end)
    return space + 1 if space > 0 else end


def term_reader(query: str) -> Callable[[str], list[str]]:
    """A function text → terms that works each distinct chunk between spaces out only once.

    Terms are content words, or all words where `query` has no content words ("to be").
    """
    known: dict[str, list[str]] = {}
    split = sentences.content_words if sentences.content_words(query) else sentences.words

    def read(text: str) -> list[str]:
        terms: list[str] = []
        for chunk in text.split():
            found = known.get(chunk)
            if found is None:
                found = known[chunk] = split(chunk)
            terms += found
        return terms

    return read
