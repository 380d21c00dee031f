"""How good one answer is: against references where there are any, and by its own citations.

right        a reference stands in the answer: word for word in normal form, or as a number or date that says the same.
             Where the references are known to be none (an empty list), right is not to answer
exact        the answer is a reference, without markers, case and punctuation
contains     a reference stands in it word for word
f1           token F1 with the nearest reference (Rajpurkar et al., SQuAD, 2016)
recall       the share of sentences that their citations support, as of ALCE (evidence.checks)
precision    the share of citations that are needed, likewise
stale        0 or 1: the newest cited source is older than the question implies
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..evidence.checks import citation_precision, citation_recall
from ..evidence.freshness import warning
from ..evidence.quantities import quantities
from ..questions.columns import ANSWER, plain
from ..records import Answer, Ending
from ..rendering import markers
from ..sentences import words

Scores = dict[str, float]  # without what can't be told

_ARTICLES = frozenset(("a", "an", "the"))
_YES_NO = re.compile(r"(yes|no)\b", re.IGNORECASE)


def score(question: str, answer: Answer, references: Sequence[str], unanswerable: bool = False) -> Scores:
    """All that can be told of an answer."""
    scores: Scores = {}
    text = bare(answer)
    told = text if answer.ending is not Ending.NOT else ""
    if unanswerable:
        scores["right"] = float(answer.ending is Ending.NOT)
    elif references:
        scores["exact"] = float(any(tokens(told) == tokens(reference) for reference in references if tokens(reference)))
        scores["contains"] = float(any(contains(told, reference) for reference in references))
        scores["f1"] = max((f1(told, reference) for reference in references), default=0.0)
        scores["right"] = float(scores["contains"] or any(says(told, reference) for reference in references))
    if answer.ending in (Ending.ANSWERED, Ending.PARTLY):
        measured = {"recall": citation_recall(answer), "precision": citation_precision(answer)}
        scores |= {name: value for name, value in measured.items() if value is not None}
        scores["stale"] = float(bool(warning(question, answer.newest, answer.as_of)))
    return scores


def bare(answer: Answer) -> str:
    """The answer's text without its markers."""
    made, place = [], 0
    for start, end in markers(answer.text):
        made.append(answer.text[place:start].rstrip(" "))
        place = end
    return "".join([*made, answer.text[place:]])


def tokens(text: str) -> list[str]:
    return [word for word in words(text) if word not in _ARTICLES]


def contains(text: str, reference: str) -> bool:
    """Whether the reference stands in the text, word for word. A yes or no counts where the text begins with it."""
    wanted = tokens(reference)
    if not wanted:
        return False
    if len(wanted) == 1 and (said := _YES_NO.fullmatch(reference.strip(" .!"))):
        return bool(re.match(rf"\W*{said[1]}\b", text, re.IGNORECASE))
    return f" {' '.join(wanted)} " in f" {' '.join(tokens(text))} "


def says(text: str, reference: str) -> bool:
    """Whether the text says the one number or date that a short reference consists of; either may be rounded."""
    wanted = quantities(reference)
    if len(wanted.numbers) + len(wanted.dates) != 1 or len(tokens(reference)) > 5:
        return False
    found = quantities(text)
    if wanted.numbers:
        [number] = wanted.numbers
        alike = [other for other in found.numbers if not number.unit or other.unit == number.unit]
        return any(other.says(number) or number.says(other) for other in alike)
    [date] = wanted.dates
    return any(date.says(other) for other in found.dates)


def f1(text: str, reference: str) -> float:
    """
    >>> f1("It was finished in 1890.", "finished in 1890")
    0.75
    """
    ours, theirs = Counter(tokens(text)), Counter(tokens(reference))
    common = (ours & theirs).total()
    return 2 * common / (ours.total() + theirs.total()) if common else 0.0


def is_unanswerable(columns: Mapping[str, Any]) -> bool:
    """Whether the question file says that there is no answer: an empty list of them."""
    return any(plain(name) in ANSWER and value == [] for name, value in columns.items())
