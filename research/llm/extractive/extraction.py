"""The statements of a page that bear most on a question, quoted byte for byte."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ... import relevance
from . import statements
from .evidence import alike, clean, covered, holds, is_named
from .question import Asked
from .statements import Statement
from .subjects import defines
from .terms import terms

MOST_FACTS = 6
LONGEST_QUOTE = 700  # characters
LONGEST_CAPTION = 120  # characters; what is longer is no caption, but a page laid out as a table
# A page is quoted where its best statement and its title together cover this much of the question. Low on
# purpose: whether the question is answered is decided over all pages.
PAGE_COVERAGE = 0.4
UNNAMED_COVERAGE = 0.6  # the same for a page on which no name of the question stands
# Of the best statement's score: what scores less is left out. Of 137 questions of qa-freshqa-wiki whose pages hold a
# reference answer in 0.82, the quotes hold one in 0.58 at 0.45 and in 0.61 at 0.3; with six facts a page, not five,
# and AROUND_CREDIT 0.8, not 0.5, in 0.65.
SHARE = 0.3
AROUND_CREDIT = 0.6  # of a word's weight, where it stands in the title or next to the statement, not in it
NEW_CREDIT = 0.5  # of a word's weight, where none of the statements quoted so far has it
KIND_BONUS = 0.6  # of the score, where the statement holds the kind of answer asked for
DEFINITION_BONUS = 1.0  # of the score, for "X is …" where what X is was asked
LEAD_BONUS = 0.1  # of the score, for the first statements of a page
SAME = 0.8  # alike, as sets of words: one of two such statements is quoted

_DEFINITE = re.compile(r"\W{0,3}(?:The|Our)\s+(\w[^.,;:]*?)\s+(?:is|are|was|were|has|have|had)\b")


def extract(asked: Asked, title: str, text: str) -> list[dict[str, str]]:
    """At most `MOST_FACTS` of {"claim", "quote"}: the best first, at the end one for each name that those lack.

    There are none where nothing bears on the question. Each quote is a substring of `text`;
    a claim is its quote on one line, a table's row with the names of its columns.
    """
    found = statements.read(text)
    titled = frozenset(terms(title))
    weights = _weighted(asked.importance, found)
    scores = [_score(asked, weights, titled, found, index, text) for index in range(len(found))]
    if not _bears(asked, titled, found, scores):
        return []
    chosen = _chosen(weights, found, scores)
    naming = _naming(asked, titled, found, chosen)[: MOST_FACTS - 1]
    told: set[int] = set()  # where the statements begin that stand in a quote
    facts: list[dict[str, str]] = []
    for index in (*chosen[: MOST_FACTS - len(naming)], *naming):
        if found[index].start in told:
            continue
        if opening := _opening(asked, titled, found, index, text):
            facts = [fact for fact in facts if fact["quote"] != text[opening.start : opening.end]]
            told.discard(opening.start)
        facts.append(_fact(text, replace(found[index], lead=opening.start) if opening else found[index], told))
    return facts


def _bears(asked: Asked, titled: frozenset[str], found: Sequence[Statement], scores: Sequence[float]) -> bool:
    """Whether the page is about the question: by its best statement, and by a name where names are asked for."""
    best = max(scores, default=0.0)
    if not best:
        return False
    statement = found[scores.index(best)]
    page = titled.union(*(other.words | other.around for other in found))
    named = not asked.names or any(word in page for name in asked.names for word in name)
    enough = PAGE_COVERAGE if named else UNNAMED_COVERAGE
    return covered(asked.weights, statement.words | statement.around | titled) >= enough


def _weighted(weights: Mapping[str, float], found: Sequence[Statement]) -> dict[str, float]:
    rarity = relevance.idf(weights, [statement.words for statement in found])
    return {word: weight * rarity[word] for word, weight in weights.items()}


def _score(asked: Asked, weights: Mapping[str, float], titled: frozenset[str],
           found: Sequence[Statement], index: int, text: str) -> float:  # fmt: skip
    statement = found[index]
    own = _sum(weights, statement.words)
    if not own or len(statement.words) < 2 or _is_title_again(asked, titled, found, statement):
        return 0.0
    score = (own + AROUND_CREDIT * _sum(weights, (statement.around | titled) - statement.words)) * statement.worth
    told = text[statement.start : statement.end]
    if holds(asked.kind, told, asked):
        score *= 1 + KIND_BONUS
    if defines(asked, told):
        score *= 1 + DEFINITION_BONUS
    if index < 3:
        score *= 1 + LEAD_BONUS
    return score / (1 + len(statement.words) / 80)


def _is_title_again(asked: Asked, titled: frozenset[str], found: Sequence[Statement], statement: Statement) -> bool:
    """Whether it only repeats the page's title, as a heading does, or what the page tells in a sentence besides."""
    if alike(statement.words, titled) > SAME:
        return True
    if not _is_in(statement.words, titled):
        return False
    telling = {word for word in statement.words if word in asked.weights or word[0].isdigit()}
    return any(telling <= other.words for other in found if not _is_in(other.words, titled))


def _is_in(words: frozenset[str], titled: frozenset[str]) -> bool:
    return len(words & titled) >= SAME * len(words)


def _sum(weights: Mapping[str, float], words: frozenset[str]) -> float:
    return sum(weight for word, weight in weights.items() if word in words)


def _chosen(weights: Mapping[str, float], found: Sequence[Statement], scores: Sequence[float]) -> list[int]:
    """The statements to quote: the best, then those that score well or add what is still lacking; none twice."""
    floor = SHARE * max(scores)
    chosen: list[int] = []
    said: frozenset[str] = frozenset()
    while len(chosen) < MOST_FACTS:
        rest = [index for index in range(len(found)) if scores[index] and _is_new(found, index, chosen)]
        totals = {index: scores[index] + NEW_CREDIT * _sum(weights, found[index].words - said) for index in rest}
        best = max(rest, key=lambda index: totals[index], default=None)
        if best is None or totals[best] < floor:
            break
        chosen.append(best)
        said |= found[best].words
    return chosen


def _naming(asked: Asked, titled: frozenset[str], found: Sequence[Statement], chosen: Sequence[int]) -> list[int]:
    """A statement for each name of the question that neither the title nor a chosen statement has."""
    said = [titled, *(found[index].words | found[index].around for index in chosen)]
    lacking = [name for name in asked.names if not any(is_named(name, words) for words in said)]
    places = (next((i for i, other in enumerate(found) if is_named(name, other.words)), None) for name in lacking)
    return sorted({place for place in places if place is not None and place not in chosen})


def _opening(
    asked: Asked, titled: frozenset[str], found: Sequence[Statement], index: int, text: str
) -> Statement | None:
    """The sentence before, where it has the name that "The owner is …" leaves to it."""
    statement, before = found[index], found[index - 1] if index else None
    subject = _DEFINITE.match(text, statement.start)
    if before is None or before.head or statement.head or not subject or not _bare(asked, subject[1]):
        return None
    lacking = [name for name in asked.names if not is_named(name, statement.words | titled)]
    named = bool(lacking) and all(is_named(name, before.words) for name in lacking)
    return before if named and text[before.end : statement.start].count("\n") < 2 else None


def _bare(asked: Asked, subject: str) -> bool:
    """Whether a sentence's subject is what is asked about what was named: "owner"."""
    return not asked.topic.keys().isdisjoint(terms(subject))


def _is_new(found: Sequence[Statement], index: int, chosen: Sequence[int]) -> bool:
    words = found[index].words
    return all(index != other and alike(words, found[other].words) <= SAME for other in chosen)


def _fact(text: str, statement: Statement, told: set[int]) -> dict[str, str]:
    """The statement, from its lead where that is near and not quoted yet (a row's is the head of its table)."""
    near = statement.end - statement.lead <= LONGEST_QUOTE
    start = statement.lead if near and statement.lead not in told else statement.start
    quote = text[start : min(statement.end, start + LONGEST_QUOTE)]
    told.add(statement.start)
    if " | " in quote:
        return {"claim": labelled(statement.head, text[statement.start : statement.end]), "quote": quote}
    told.add(start)
    return {"claim": clean(quote), "quote": quote}


def labelled(head: Sequence[str], row: str) -> str:
    """A table's row with the names of its columns, and what stands above those in brackets.

    >>> labelled(("| Share of electricity |  |", "| Source | 2024 |"), "| Hydro | 13.2 |")
    'Hydro, 2024: 13.2 (Share of electricity)'
    """
    names, cells = _cells(head[-1]) if head else [], _cells(row)
    if len(names) == len(cells) > 1:
        parts = [f"{name}: {cell}" if name else cell for name, cell in zip(names[1:], cells[1:], strict=True)]
        told, above = "; ".join(parts), head[:-1]
        told = f"{cells[0]}, {told}" if cells[0] else told
    else:
        told, above = clean(row), head
    caption = "; ".join(" ".join(cell for cell in _cells(line) if cell) for line in above)
    return f"{told} ({caption})" if 0 < len(caption) <= LONGEST_CAPTION else told


def _cells(row: str) -> list[str]:
    return [" ".join(cell.split()) for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]
