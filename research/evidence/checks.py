"""Whether a sentence is borne out by the quotes it cites: by rules alone, no model.

What a rule can see is whether the sentence's numbers, dates and names stand in the
quotes, and how many of its words do. It can't see who did what to whom.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..records import Answer, Citation, Fact, Mark
from ..sentences import STOP_WORDS, content_words, fold, spans, words
from .languages import differ
from .quantities import Quantities, quantities, states

SUPPORTED = 0.64  # score from which a sentence counts as supported (see `python -m bench.evidence`)
PARTLY = 0.40  # score from which it counts as partly supported
SENTENCES = 3  # of the passages, taken together, that a claim is compared with
WEIGHT_WORDS, WEIGHT_NUMBERS, WEIGHT_NAMES = 0.6, 0.2, 0.2

_NEGATIONS = frozenset(("not", "no", "never", "none", "neither", "nor", "cannot", "without"))
_CAPITALISED = re.compile(r"[^\W\d_a-z][\w'’&-]*")
_MARKER = re.compile(r"\[\d{1,4}\]")
_CALENDAR = (
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday i"
)
_NO_NAMES = frozenset(_CALENDAR.split())


@dataclass(frozen=True)
class Findings:
    """What the rules saw: shares from 0 to 1 (None where the claim has none), and what is missing."""

    words: float
    numbers: float | None
    names: float | None
    missing: tuple[str, ...] = ()  # numbers and dates, as the claim spells them
    unnamed: tuple[str, ...] = ()
    negated: bool = False  # one of claim and quotes says "not", the other doesn't

    @property
    def score(self) -> float:
        """The weighted mean of the shares that there are."""
        parts = [(self.words, WEIGHT_WORDS), (self.numbers, WEIGHT_NUMBERS), (self.names, WEIGHT_NAMES)]
        present = [(share, weight) for share, weight in parts if share is not None]
        return sum(share * weight for share, weight in present) / sum(weight for _, weight in present)


@dataclass(frozen=True)
class Passages:
    """Quotes made ready for comparing: their sentences' words, their numbers, their names."""

    sentences: tuple[frozenset[str], ...]
    words: frozenset[str]
    initials: str
    quantities: Quantities = field(repr=False)


def score(claim: str, passages: Sequence[str]) -> float:
    """How well `passages` bear `claim` out, from 0 to 1; `SUPPORTED` and `PARTLY` are its thresholds."""
    return compare(claim, prepared(passages)).score


def prepared(passages: Sequence[str], about: Sequence[str] = ()) -> Passages:
    """Passages, and texts `about` them (titles, names of sources), which lend words and names but no numbers."""
    texts = (*passages, *about)
    sentences = [frozenset(content_words(text[start:end])) for text in texts for start, end in spans(text)]
    whole = "\n".join(texts)
    initials = "".join(word[0] for word in _CAPITALISED.findall(whole)).casefold()
    stated = [text[start:end] for text in passages for start, end in spans(text) if states(text[start:end])]
    return Passages(tuple(sentences), frozenset(words(whole)), initials, quantities("\n".join(stated)))


def compare(claim: str, passages: Passages) -> Findings:
    """What the rules see of `claim` in `passages`."""
    bare = _MARKER.sub("", claim)
    missing, stated = _missing(quantities(bare), passages.quantities)
    names = names_in(bare)
    unnamed = tuple(name for name in names if not _is_named(name, passages))
    claimed = frozenset(content_words(bare))
    return Findings(
        words=_overlap(claimed, passages.sentences),
        numbers=1 - len(missing) / stated if stated else None,
        names=1 - len(unnamed) / len(names) if names else None,
        missing=missing,
        unnamed=unnamed,
        negated=_turned(claimed, passages.sentences),
    )


def judge(sentence: str, facts: Sequence[Fact]) -> tuple[Mark, str]:
    """How the quotes of the cited `facts` bear `sentence` out, and why it is not wholly.

    A number or date that stands in no cited quote never leaves a sentence supported.
    """
    if not facts:
        return "uncited", "no source is cited"
    found = findings(sentence, facts)
    if found.missing:
        verb = "stands" if len(found.missing) == 1 else "stand"
        reason = f"{_listed(found.missing)} {verb} in no cited quote"
        return ("partly" if found.numbers and found.score >= PARTLY else "unsupported"), reason
    if found.negated:
        return "partly", "one of sentence and quote says “not”, the other does not"
    if found.score >= SUPPORTED:
        return "supported", ""
    if differ(_MARKER.sub("", sentence), " ".join(fact.quote for fact in facts)):
        return "partly", "written in another language than its quotes: only numbers, dates and names were compared"
    reason = f"{_listed(found.unnamed)} not named in a cited quote" if found.unnamed else "few of its words stand there"
    return ("partly" if found.score >= PARTLY else "unsupported"), reason


def findings(sentence: str, facts: Sequence[Fact]) -> Findings:
    """What the rules see of `sentence` in the quotes of `facts`; their titles and sites lend words and names."""
    about = [text for fact in facts for text in (fact.title, fact.site) if text]
    dates = {fact.date: None for fact in facts if fact.date}
    return compare(sentence, prepared([*(fact.quote for fact in facts), *dates], about))


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _turned(claimed: frozenset[str], sentences: Sequence[frozenset[str]]) -> bool:
    """Whether only the claim, or only each sentence that has most of its words, is negated."""
    near = [sentence for sentence in sentences if 2 * len(claimed & sentence) >= len(claimed) > 0]
    if not near:
        return False
    ours = _negated(claimed)
    if ours and any(_negated(sentence) and 4 * len(claimed & sentence) >= len(claimed) for sentence in sentences):
        return False  # one of several sentences that the claim takes up is negated too
    return all(_negated(sentence) != ours for sentence in near)


def _negated(found: frozenset[str]) -> bool:
    return bool(found & _NEGATIONS) or any(word.endswith("n't") for word in found)


def _missing(claimed: Quantities, given: Quantities) -> tuple[tuple[str, ...], int]:
    """The numbers and dates that the passages don't have, and how many the claim has."""
    missing = [n.text for n in claimed.numbers if not any(n.says(other) for other in given.numbers)]
    missing += [d.text for d in claimed.dates if not any(d.says(other) for other in given.dates)]
    return tuple(dict.fromkeys(missing)), len(claimed.numbers) + len(claimed.dates)


def _overlap(claimed: frozenset[str], sentences: Sequence[frozenset[str]]) -> float:
    """The share of the claim's words in the few sentences that together have most of them (chosen greedily)."""
    if not claimed:
        return 0.0
    left = claimed
    for _ in range(SENTENCES):
        best = max(sentences, key=lambda sentence: len(left & sentence), default=frozenset())
        left = left - best
    return 1 - len(left) / len(claimed)


def names_in(text: str) -> list[str]:
    """Capitalised words that don't merely open a sentence, each once."""
    found: list[str] = []
    for start, end in spans(text):
        tokens = list(_CAPITALISED.finditer(text, start, end))
        for number, token in enumerate(tokens):
            opens = not any(char.isalnum() for char in text[start : token.start()])
            alone = number + 1 == len(tokens) or tokens[number + 1].start() != token.end() + 1
            folded = fold(token[0])
            if folded not in _NO_NAMES and folded not in STOP_WORDS and not (opens and alone):
                found.append(token[0])
    return list(dict.fromkeys(found))


def _is_named(name: str, passages: Passages) -> bool:
    if all(part in passages.words for part in words(name.removesuffix("'s").removesuffix("’s"))):
        return True
    return name.isupper() and 2 < len(name) <= 6 and name.casefold() in passages.initials


def citation_recall(answer: Answer) -> float | None:
    """The share of sentences that their citations together support; None without sentences.

    Recall and precision follow ALCE (Gao, Yen, Yu and Chen, "Enabling Large Language Models
    to Generate Text with Citations", 2023), with `judge` in place of its entailment model.
    """
    marks = [sentence.status == "supported" for sentence in answer.sentences]
    return sum(marks) / len(marks) if marks else None


def citation_precision(answer: Answer) -> float | None:
    """The share of citations (sentence × source) that are needed; None without citations.

    As in ALCE: one is not if its sentence is not supported, or if it alone does not
    support the sentence while the others do without it.
    """
    needed = total = 0
    for sentence in answer.sentences:
        cited: dict[int, list[Fact]] = {}
        for citation in _within(answer.citations, sentence.start, sentence.end):
            cited.setdefault(citation.number, []).append(citation.fact)
        total += len(cited)
        if sentence.status == "supported":
            needed += sum(_is_needed(answer.text[sentence.start : sentence.end], number, cited) for number in cited)
    return needed / total if total else None


def _within(citations: Sequence[Citation], start: int, end: int) -> list[Citation]:
    return [citation for citation in citations if start <= citation.start and citation.end <= end]


def _is_needed(sentence: str, number: int, cited: dict[int, list[Fact]]) -> bool:
    others = [fact for other, facts in cited.items() if other != number for fact in facts]
    return judge(sentence, cited[number])[0] == "supported" or judge(sentence, others)[0] != "supported"
