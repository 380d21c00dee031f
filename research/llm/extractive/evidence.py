"""How well a passage bears on a question, and whether it holds the kind of answer asked for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from .question import Asked
from .terms import terms
from .vocabulary import Kind

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|"
    r"twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|dozen|half|twice|once|"
    r"none|zero|several|single|both)\b|[一二三四五六七八九十百千万]",
    re.IGNORECASE,
)
_DATE = re.compile(
    rf"(?<![\d.,$€£])(?:1\d{{3}}|20\d\d)(?!\d|[.,]\d)|\b(?:{_MONTHS})\b|\b\d{{1,4}}\s?(?:BCE?|AD|CE)\b|\b\d\d?(?:st|nd|rd|th)\b|"
    r"\bcentur(?:y|ies)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bweek(?:day|end)s?\b|"
    r"\b\d\d?(?:[:.]\d\d)?\s?[ap]\.?m\b|\b\d\d?:\d\d\b|\bo[’']clock\b|\b(?:noon|midnight)\b|\d年|\d世紀|\d{3,4}",
    re.IGNORECASE,
)
_DAY = re.compile(
    rf"\b\d\d? (?:{_MONTHS})\b(?: \d{{4}})?|\b(?:{_MONTHS}) \d\d?(?:, \d{{4}})?\b", re.IGNORECASE
)  # no figure
_REASON = re.compile(
    r"\b(?:because|due to|since|so that|so as|therefore|thus|as a result|in order to|caus\w+|reason\w*|owing|led to|"
    r"result\w* (?:in|from))\b",
    re.IGNORECASE,
)
_CAPITALISED = re.compile(r"[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω][^\W_]+")
_CASED = re.compile(r"[a-zа-яα-ω]", re.IGNORECASE)

_PLACE = re.compile(r"\b(?:in|at|near|from|on|around|off|along|across) (?:the|a|an) \w", re.IGNORECASE)
MANY_NAMES = 3


def covered(weights: Mapping[str, float], found: Collection[str]) -> float:
    """The share of the question's weight that stands in `found`, 0 to 1; 1 where there is nothing to find."""
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in found) / total if total else 1.0


def missing_names(asked: Asked, passages: Sequence[Collection[str]]) -> list[tuple[str, ...]]:
    """The question's names that the best passage (each as its words) lacks; of many names, one may be lacking."""
    lacking = [[name for name in asked.names if not is_named(name, words)] for words in passages]
    fewest = min(lacking, key=len, default=list(asked.names))
    return [] if len(fewest) == 1 and len(asked.names) >= MANY_NAMES else fewest


def is_named(name: Sequence[str], words: Collection[str]) -> bool:
    """Whether all words of a name are there, or its initials as a word."""
    return all(word in words for word in name) or (len(name) > 1 and "".join(word[0] for word in name) in words)


def holds(kind: Kind, text: str, asked: Asked) -> bool:
    """Whether `text` has something that could be the answer: of that kind, and not said by the question."""
    if kind is Kind.COUNT:
        return _new(_NUMBER, _DAY.sub(" ", text), asked)
    if kind is Kind.WHEN:
        return _new(_DATE, text, asked)
    if kind is Kind.WHERE and _PLACE.search(text):
        return True
    if kind in (Kind.WHO, Kind.WHERE):
        return _has_new_name(text, asked)
    if kind is Kind.WHY:
        return not text.isascii() or _REASON.search(text) is not None
    return True


def _new(pattern: re.Pattern[str], text: str, asked: Asked) -> bool:
    return any(match[0] not in asked.text for match in pattern.finditer(text))


def _has_new_name(text: str, asked: Asked) -> bool:
    if len(_CASED.findall(text)) * 2 < len(text):
        return True  # a script without capitals
    known = set(asked.weights)
    return any(words and not known.issuperset(words) for words in map(terms, _CAPITALISED.findall(text)))


def alike(one: Collection[str], other: Collection[str]) -> float:
    """Jaccard similarity of two sets of words."""
    one, other = set(one), set(other)
    return len(one & other) / len(one | other) if one or other else 1.0


def clean(text: str) -> str:
    """`text` on one line, without markers of references and outer bars of a table's row."""
    text = re.sub(r"\s?\[(?:\d{1,3}|[a-z]|citation needed|note \d+)\]|【\d+】", "", text)
    lines = [re.sub(r"\s*\|\s*", " | ", line.strip().strip("|").strip()) for line in text.splitlines()]
    return " / ".join(" ".join(line.split()) for line in lines if line.strip(" |-:"))
