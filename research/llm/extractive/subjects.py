"""What a sentence tells of its subject: what it is, something else about it, or only that it is one of several."""

from __future__ import annotations

import re
from functools import lru_cache

from ... import sentences
from .question import Asked
from .terms import asked_terms, terms

MOST_WORDS = 5  # of what a question asks the meaning of

_BE = r"(?:is|are|was|were)"
_WHAT_IS = re.compile(
    rf"(?:what|who)(?:['’]s| {_BE})\s+(?:(?:the|an?|our|your|my|their|its|his|her)\s+)?(?P<what>[^?,;:]+?)\s*\??",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    rf"\W*(?:(?:The|An?|Our|Your|My)\s+)?(?P<what>[^.,;:()]{{2,80}}?)\s*(?:\([^)]*\)\s*)?"
    rf"\b(?:{_BE}|means?|refers? to|denotes?)\s+(?P<told>.+)",
    re.IGNORECASE | re.DOTALL,
)
# What happens to a thing does not say what it is: "is changed on Mondays", "can be had at the desk".
_HAPPENS = re.compile(
    rf"\b(?:(?:{_BE}|has been|have been|(?:can|could|must|should|may|might|will|has to|needs to) (?:not )?be)\s+"
    r"(?:(?:not|never|only|always|also|being|\w+ly)\s+)?"
    r"(?!called|named|defined|estimated|expected|considered|based|located|situated|priced|fixed|composed|measured|"
    r"described|used|need|red\b)"
    r"(?:\w{2,}ed|given|kept|shown|written|hidden|sent|told|chosen|taken|stolen|lost)"
    r"|(?:changes|expires|rotates|varies|depends))\s+"
    r"(?:on|in|at|by|every|each|from|to|with|once|twice|when|after|before|daily|weekly|monthly|yearly|regularly|often)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[:=\"“”«»‘]|\b(?:it|this|now|currently|which) (?:is|was|reads)\b", re.IGNORECASE)
_NAME = r"(?:the )?[A-ZÀ-ÖØ-Þ][\w’'-]*(?: [A-ZÀ-ÖØ-Þ][\w’'-]*)*"
_NAMES = rf"{_NAME}(?:, {_NAME})*,? and {_NAME}"
_LIST = re.compile(rf",? (?:among them|including) {_NAMES}|{_NAMES},? among them")


@lru_cache(maxsize=64)
def _meant(question: str) -> frozenset[str]:
    """The words of X in "What is X?", none where that is a longer matter."""
    match = _WHAT_IS.fullmatch(question)
    words = match["what"].split() if match else []
    return frozenset(asked_terms(" ".join(words))) if len(words) <= MOST_WORDS else frozenset()


def defines(asked: Asked, text: str) -> bool:
    """Whether a sentence of `text` says what that is which the question asks for: "X is a …" to "What is X?"."""
    meant = _meant(asked.text)
    if not meant or not meant & set(terms(text)):
        return False
    matches = (_SUBJECT.match(text[start:end]) for start, end in sentences.spans(text))
    return any(match and frozenset(terms(match["what"])) == meant for match in matches) and not passes(asked, text)


def passes(asked: Asked, text: str) -> bool:
    """Whether `text` tells what happens to X, not what it is, where "What is X?" was asked."""
    meant = _meant(asked.text)
    match = _HAPPENS.search(text) if meant else None
    return (
        match is not None
        and meant <= frozenset(terms(text[: match.start()]))
        and meant.isdisjoint(terms(text[match.end() :]))
        and not _VALUE.search(text)
    )


def without_lists(text: str) -> str:
    """`text` without names that it only lists: a figure for "63 countries, among them Peru and Chile" is not Peru's."""
    return _LIST.sub("", text)
