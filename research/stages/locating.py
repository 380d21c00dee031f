"""Which passage of a page bears a sentence out best: what a citation of a page is pinned to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..evidence.checks import SUPPORTED, compare, prepared
from ..evidence.quotes import Located, non_evidence_spans
from ..records import Grade, Page
from ..relevance import bm25
from ..sentences import content_words, spans

LONGEST = 700  # characters of a passage
TOGETHER = 3  # sentences of a passage, at most
NEAREST = 6  # sentences that are looked at closely
AROUND = 2  # of these, whose neighbours are looked at too
FEWEST = 4  # content words of a claim, below which half a page bears it out
NEGATED = 0.2  # taken off the score of a passage of which sentence and passage don't agree on "not"


@dataclass
class Passages:
    """The sentences of one page, ready to be held against claims."""

    page: Page
    about: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        self.about = [text for text in (self.page.title, self.page.site) if text]

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        barred = non_evidence_spans(self.page.text)
        whole = [span for span in spans(self.page.text) if not any(b < span[1] and span[0] < e for b, e in barred)]
        return [_cut(self.page.text, start, end) for start, end in whole]

    @cached_property
    def _words(self) -> list[list[str]]:
        return [content_words(self.page.text[start:end]) for start, end in self._spans]

    def best(self, claim: str) -> Located | None:
        """The passage of one to three sentences that bears `claim` out best; of equals the shortest, then the first.

        None for a page without a sentence.
        """
        if not self._spans:
            return None
        scores = bm25(content_words(claim), self._words)
        nearest = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:NEAREST]
        alone = {self._spans[place]: self._score(claim, *self._spans[place]) for place in nearest}
        best = sorted(nearest, key=lambda place: -alone[self._spans[place]])[:AROUND]
        windows = dict.fromkeys(window for place in best for window in self._windows(place))
        scored = alone | {window: self._score(claim, *window) for window in windows if window not in alone}
        start, end = max(scored, key=lambda window: (scored[window], window[0] - window[1], -window[0]))
        return Located(start, end, Grade.EXACT)

    def bearing(self, claim: str) -> Located | None:
        """The passage that bears all of `claim` out as far as rules see, in the lowest grade; None if none does."""
        place = self.best(claim) if len(content_words(claim)) >= FEWEST else None
        if place is None:
            return None
        found = compare(claim, prepared([self.page.text[place.start : place.end]], self.about))
        return None if found.missing or found.negated or found.score < SUPPORTED else replace(place, grade=Grade.FUZZY)

    def nearest(self, question: str, count: int) -> list[str]:
        """The sentences that share most with `question`, in the page's order; its title is none."""
        scores = bm25(content_words(question), self._words)
        title = " ".join(self.page.title.split())
        told = [" ".join(self.page.text[start:end].split()) for start, end in self._spans]
        order = sorted(
            (place for place, text in enumerate(told) if text != title), key=lambda place: (-scores[place], place)
        )
        return [self.page.text[start:end] for start, end in (self._spans[place] for place in sorted(order[:count]))]

    def _windows(self, place: int) -> list[tuple[int, int]]:
        """The passages around one sentence."""
        found = []
        for first in range(max(0, place - TOGETHER + 1), place + 1):
            for last in range(place, min(first + TOGETHER, len(self._spans))):
                start, end = self._spans[first][0], self._spans[last][1]
                if end - start <= LONGEST or first == last:
                    found.append((start, end))
        return found

    def _score(self, claim: str, start: int, end: int) -> float:
        dates = [self.page.date] if self.page.date else []
        found = compare(claim, prepared([self.page.text[start:end], *dates], self.about))
        return round(found.score - NEGATED * found.negated, 3)


def _cut(text: str, start: int, end: int) -> tuple[int, int]:
    """A sentence without end is cut where a word ends."""
    if end - start <= LONGEST:
        return start, end
    space = text.rfind(" ", start + LONGEST // 2, start + LONGEST)
    return start, space if space > 0 else start + LONGEST
