"""Whether facts answer a question at all: the decision between an answer and "not answered"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .evidence import covered, holds, missing_names
from .question import Asked, read
from .statements import names_its_source
from .terms import terms

ENOUGH = 0.65  # of the question's weight, in the best fact
ENOUGH_ELSEWHERE = 0.5  # the same for scripts of which neither stems nor stop words are known
TOPIC_ENOUGH = 0.6  # of the weight of the words that are neither names nor dates, in the facts of one page
PART_ENOUGH = 0.5  # of the weight of the topic words of one part of a compound question


@dataclass(frozen=True)
class Fact:
    """A numbered fact as synthesis is given it; `words` are those of claim and quote, `titled` those of its page's title.

    `source` numbers the page that it stands in (0 where that was not given).
    """

    id: int
    source: int
    title: str
    claim: str
    quote: str
    site: str
    date: str
    words: frozenset[str]
    titled: frozenset[str]

    @property
    def all_words(self) -> frozenset[str]:
        return self.words | self.titled


def read_fact(given: Mapping[str, object]) -> Fact:
    claim, quote = str(given.get("claim") or ""), str(given.get("quote") or "")
    title, site, date = (str(given.get(key) or "") for key in ("title", "site", "date"))
    words, titled = frozenset(terms(f"{claim}\n{quote}")), frozenset(terms(title))
    return Fact(
        int(str(given["id"])), int(str(given.get("source") or 0)), title, claim, quote, site, date, words, titled
    )


def why_not(asked: Asked, facts: Sequence[Fact]) -> str:
    """Why `facts` do not answer the question, in a few words; empty where they do."""
    telling = [fact for fact in facts if not names_its_source(fact.quote)]
    if not telling:
        return "no source says anything about it"
    sources = _by_source(facts)
    if names := missing_names(asked, sources):
        return f"no passage that was found is about {' and '.join(' '.join(name) for name in names)}"
    if dates := _missing_dates(asked, telling):
        return f"no passage that was found tells it for {' '.join(dates)}"
    if not any(holds(asked.kind, fact.quote, asked) for fact in telling):
        return f"the sources give no {asked.kind.value.removeprefix('a ')} for it"
    if max(covered(asked.weights, fact.all_words) for fact in telling) < _enough(asked):
        return "no passage that was found bears on all of it"
    topic = {word: weight for word, weight in asked.topic.items() if weight >= 1}
    if topic and max(covered(topic, words) for words in sources) < TOPIC_ENOUGH:
        return "no page that was read bears on all of it"
    return ""


def _by_source(facts: Sequence[Fact]) -> list[frozenset[str]]:
    """The words of each page's facts."""
    sources: dict[object, frozenset[str]] = {}
    for fact in facts:
        key = fact.source or fact.title or fact.id
        sources[key] = sources.get(key, frozenset()) | fact.all_words
    return list(sources.values())


def _missing_dates(asked: Asked, facts: Sequence[Fact]) -> list[str]:
    """The question's years and months that no fact has beside another word of the question."""
    about = asked.weights.keys() - set(asked.dates)
    dated = [fact.all_words for fact in facts if not about or about & fact.all_words]
    return [date for date in asked.dates if not any(date in words for words in dated)]


def _enough(asked: Asked) -> float:
    return ENOUGH if asked.text.isascii() or asked.english else ENOUGH_ELSEWHERE


def unanswered_parts(asked: Asked, facts: Sequence[Fact]) -> list[str]:
    """The parts of a compound question that no fact bears on; a part that only refers back counts as borne on."""
    if len(asked.parts) < 2:
        return []
    missing = []
    for part in map(read, asked.parts):
        own = {word: weight for word, weight in part.weights.items() if weight >= 1}
        if own and max(covered(own, fact.all_words) for fact in facts) < PART_ENOUGH:
            missing.append(part.text)
    return missing
