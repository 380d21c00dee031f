"""Search queries out of a question's own words."""

from __future__ import annotations

import re

from ... import sentences
from .question import read

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
_PAIR = re.compile(
    r"^(?P<one>[\w-]+(?: [\w-]+)?) and (?:the )?(?P<other>[\w-]+(?: [\w-]+)?) (?P<rest>(?:of|in|for) .+)$"
)


def plan(question: str) -> dict[str, object]:
    """The plan as JSON-ready values. It always searches; no word or year is added that the question lacks."""
    cleaned = _cleaned(question)
    parts = read(cleaned).parts
    if len(parts) > 1:
        others = [_with_topic(part, parts[0]) for part in parts if any(w >= 1 for w in read(part).weights.values())]
    else:
        others = [_rewritten(cleaned), *_halves(cleaned), _key_words(cleaned)]
    queries = {_same(query): query for query in reversed([cleaned, *others]) if query}
    ordered = dict.fromkeys(_same(query) for query in [cleaned, *others] if query)
    reason = "the built-in model knows nothing of itself, so that it always searches"
    return {"needs_search": True, "queries": [queries[key] for key in ordered][:MOST_QUERIES], "reason": reason}


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


def _halves(text: str) -> list[str]:
    """ "the area and population of Peru" as two queries."""
    match = _PAIR.search(_rewritten(text))
    return [f"{match[side]} {match['rest']}" for side in ("one", "other")] if match else []


def _with_topic(part: str, opening: str) -> str:
    """One part of a compound question, with the words of its opening where it only refers to them."""
    phrase = _rewritten(part)
    if part == opening or not (_LEANING.search(part) or len(sentences.content_words(part)) < 2):
        return phrase
    return _short(f"{_key_words(_rewritten(opening))} {_key_words(_LEANING.sub('', phrase))}".strip())


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_QUERY else text[:LONGEST_QUERY].rsplit(" ", 1)[0]


def _same(query: str) -> str:
    return " ".join(sentences.words(query)) or query
