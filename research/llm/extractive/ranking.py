"""Search hits in the order of their likely use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ... import relevance
from .evidence import covered
from .question import read
from .terms import terms

TITLE_TIMES = 3  # a title's word counts as often as this many of the snippet
# Added to a hit's share of the best score: 1 for the engine's first hit, 1/2 for its second, 1/3 … Engines see
# whole pages and links, BM25 only a snippet.
ENGINE_PRIOR = 0.5
SCREEN_COVERAGE = 0.34  # of the question's weight, in title, snippet and URL

_URL_WORD = re.compile(r"[^\W\d_]{3,}|\d{4}")
_URL_STOP = frozenset(("http", "https", "www", "com", "org", "net", "html", "htm", "php", "wiki", "index", "example"))


def rerank(question: str, hits: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """All ids, best first: BM25 of the question against title, snippet and URL, and the engine's own order."""
    asked = read(question)
    scores = relevance.bm25(list(asked.weights), [_words(hit) for hit in hits])
    best = max(scores, default=0.0) or 1.0
    totals = [score / best + ENGINE_PRIOR / (place + 1) for place, score in enumerate(scores)]
    order = sorted(range(len(hits)), key=lambda index: (-totals[index], index))
    return {"ranking": [hits[index]["id"] for index in order]}


def screen(question: str, hit: Mapping[str, Any]) -> dict[str, object]:
    """Whether one hit bears on the question."""
    return {"relevant": covered(read(question).weights, set(_words(hit))) >= SCREEN_COVERAGE}


def _words(hit: Mapping[str, Any]) -> list[str]:
    address = [word for word in _URL_WORD.findall(str(hit.get("url") or "")) if word.lower() not in _URL_STOP]
    title, snippet = str(hit.get("title") or ""), str(hit.get("snippet") or "")
    return terms(title) * TITLE_TIMES + terms(snippet) + terms(" ".join(address))
