"""Search queries out of a question's own words."""

from __future__ import annotations

import re

from ... import sentences
from .question import Asked, read

MOST_QUERIES = 3
LONGEST_QUERY = 200  # characters

_FILLER = re.compile(
    r"^(?:(?:please|hi|hello|hey|ok|so|well)[\s,!.]+)*"
    r"(?:(?:can|could|would|will) you (?:please )?(?:tell me|explain|find(?: out)?|say|look up|show me|help me \w+)\s+|"
    r"(?:please )?(?:tell me|show me|explain to me|find out)\s+(?:about\s+)?|"
    r"i(?: would|'d|’d)? (?:like|want|need|am trying|wonder)(?:ed)?(?: to (?:know|find out|understand))?\s+|"
    r"do you know\s+|i was wondering\s+)?",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:(?:in|on|at|to|for|from|by|with|of|during)\s+)?"
    r"(?:what(?:'s|’s)?|which|who(?:se|m|'s|’s)?|when|where|why|is|are|was|were|does|do|did|"
    r"how(?: (?:many|much|long|old|far|often|tall|large))?)\b\s*"
    r"(?:(?:is|are|was|were|does|do|did|has|have|had|can|could|will|would)\s+)?"
    r"(?:(?:it|there|the name of|the)\s+)?",
    re.IGNORECASE,
)
_LEANING = re.compile(r"\b(?:it|its|he|she|his|her|they|their|them|this|that|these|those|one)\b", re.IGNORECASE)


def plan(question: str) -> dict[str, object]:
    """The plan as JSON-ready values. It always searches; no word or year is added that the question lacks."""
    cleaned = _cleaned(question)
    asked = read(cleaned)
    candidates = [cleaned, *(_with_topic(part, asked) for part in asked.parts if len(asked.parts) > 1)]
    candidates.append(_rewritten(cleaned))
    candidates.append(_key_words(cleaned))
    queries = list({_same(query): query for query in reversed(candidates) if query}.values())[::-1]
    reason = "the built-in model knows nothing of itself, so that it always searches"
    return {"needs_search": True, "queries": queries[:MOST_QUERIES], "reason": reason}


def _cleaned(question: str) -> str:
    text = " ".join(question.split())
    text = (_FILLER.sub("", text) or text).strip(" ?？!.;,:")
    return _short(text or question.strip())


def _rewritten(text: str) -> str:
    """The question without its question words and with stop words left in: a phrase, as titles are."""
    return _short(_OPENING.sub("", text, count=1).strip(" ,"))


def _key_words(text: str) -> str:
    kept = [word for word in text.split() if sentences.content_words(word) or word.isupper()]
    return _short(" ".join(word.strip(',;:?!"“”()') for word in kept))


def _with_topic(part: str, asked: Asked) -> str:
    """One part of a compound question, with the topic's words where it only refers to them."""
    if not _LEANING.search(part) and len(sentences.content_words(part)) > 1:
        return _key_words(part) if part != asked.parts[0] else _rewritten(part)
    if part == asked.parts[0]:
        return _rewritten(part)
    return _short(f"{_key_words(_rewritten(asked.parts[0]))} {_key_words(_LEANING.sub('', _rewritten(part)))}".strip())


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_QUERY else text[:LONGEST_QUERY].rsplit(" ", 1)[0]


def _same(query: str) -> str:
    return " ".join(sentences.words(query)) or query
