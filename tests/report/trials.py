"""Trials as they would be gathered, made up for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from research.ledger import Total
from research.records import Answer, Citation, Ending, Fact, Grade, Sentence
from research.report.gathering import Part, Took, Trial, taken

PAGE = "0" * 64


def took(usd: float | None = 0.01, seconds: float = 1.0) -> Took:
    """One call of the capable tier."""
    nano = None if usd is None else round(usd * 1e9)
    call = {"what": "model", "name": "made:up", "tier": "capable", "usd": nano, "input": 100, "output": 10}
    line = {"event": "made", "stage": "synthesize", "item": 0, "key": "k", "needs": [], "parts": {}}
    return taken([{**line, "receipt": {"seconds": seconds, "calls": [call]}}])


def trial(question: str, pipeline: str, right: float | None = 1.0, sample: int = 0, **other: Any) -> Trial:
    scores = {} if right is None else {"right": right}
    given: dict[str, Any] = {
        "text": f"What is {question}?", "ending": "answered", "answer": answer(), "took": took(), "scores": scores,
        "run": "20250301-101530.123-k7q2", "references": ("it",),
    }  # fmt: skip
    return Trial(question, pipeline=pipeline, sample=sample, **{**given, **other})


def failed(question: str, pipeline: str, sample: int = 0) -> Trial:
    return trial(
        question, pipeline, None, sample, ending="failed", error="TimedOutError: too late", answer=None, took=None
    )


def paired(first: Sequence[float], second: Sequence[float], **other: Any) -> list[Trial]:
    """One question for each place, through "a" and "b"."""
    rows = zip(first, second, strict=True)
    return [
        trial(f"q{n}", name, value, **other)
        for n, pair in enumerate(rows)
        for name, value in zip("ab", pair, strict=True)
    ]


def fact(quote: str = "It is 3 m tall.", url: str = "https://towers.example/1", **other: Any) -> Fact:
    given: dict[str, Any] = {
        "claim": quote,
        "grade": Grade.EXACT,
        "title": "Towers",
        "site": "towers.example",
        "date": "2024-05-01",
    }
    return Fact(quote=quote, start=0, end=len(quote), url=url, page=PAGE, **{**given, **other})


def answer(text: str = "It is 3 m tall [1].", facts: Iterable[Fact] | None = None, **other: Any) -> Answer:
    found = [fact()] if facts is None else list(facts)
    citations = tuple(Citation(number=n, start=0, end=len(text), fact=one) for n, one in enumerate(found, start=1))
    given: dict[str, Any] = {
        "ending": Ending.ANSWERED, "citations": citations, "as_of": "2025-03-01",
        "sentences": (Sentence(start=0, end=len(text), status="supported"),),
    }  # fmt: skip
    return Answer(text=text, **{**given, **other})


def manifests() -> Mapping[str, list[dict[str, Any]]]:
    one = {
        "pipeline": "a", "pipeline_digest": "abc123", "models": {"capable": "made:up"}, "prompts": {"p.md": "Say."},
        "web": "small", "source": "small", "as_of": "2025-03-01", "web_date": "2025-03-01", "version": "0.1.0",
    }  # fmt: skip
    return {"a": [one]}


__all__ = ["Part", "Total", "answer", "fact", "failed", "manifests", "paired", "took", "trial"]
