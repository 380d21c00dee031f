"""An answer while it is being written: its finished sentences, each checked as the whole will be.

It is for a reader who watches, and changes nothing: what is kept and given is made of the whole reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..records import Answer, Ending, Fact, Mark
from ..sentences import spans

if TYPE_CHECKING:
    from .job import Hear

MOST = 20_000  # characters of a reply that are looked at, and how often: bounds the work on a hostile one
MOST_LOOKS = 200
PATIENT = 0.1  # of what is unread beyond `SHORT` characters: as much must come before the next look at it,
SHORT = 100  # so that all looks together cost little more than one

_BEGUN = re.compile(r"[^\w\[［【\\]*\w+\W")  # a sentence with a whole word, and no marker that may be the last one's


class Unfolding:
    """Takes the pieces of a reply, and tells `hear` the answer as far as it can be checked.

    `ripe` gives up to which place of the reply it can be looked at, from a place that is known already;
    `drafted` the text, with its markers, of a reply up to there. A reply that begins anew takes back what was told.
    """

    def __init__(
        self, hear: Hear, facts: Sequence[Fact], ripe: Callable[[str, int], int], drafted: Callable[[str], str]
    ) -> None:
        self._hear, self._facts, self._ripe, self._drafted = hear, facts, ripe, drafted
        self._begin()
        self._judged: dict[tuple[str, tuple[int, ...]], tuple[Mark, str]] = {}

    def _begin(self) -> None:
        self._reply, self._place, self._looks, self._next = "", 0, 0, 0

    def __call__(self, piece: str | None) -> None:
        if piece is None:
            self._begin()
            self._hear(None)
            return
        if len(self._reply) > MOST or self._looks >= MOST_LOOKS:
            return
        self._reply += piece
        if self._next <= len(self._reply) <= MOST:
            self._look()

    def _look(self) -> None:
        length = len(self._reply)
        place = self._ripe(self._reply, self._place)
        self._next = length + int(PATIENT * max(0, length - place - SHORT))
        if place > self._place:
            self._place = place
            self._looks += 1
            self._hear(self._checked(self._drafted(self._reply[:place])))

    def _checked(self, text: str) -> Answer:
        from ..evidence.markers import cite

        cited = cite(text, self._facts, self._judge)
        return Answer(text=cited.text, ending=Ending.PARTLY, citations=cited.citations, sentences=cited.sentences)

    def _judge(self, sentence: str, facts: Sequence[Fact]) -> tuple[Mark, str]:
        """As `evidence.checks.judge`, each sentence once."""
        from ..evidence.checks import judge

        key = sentence, tuple(map(id, facts))
        if key not in self._judged:
            self._judged[key] = judge(sentence, facts)
        return self._judged[key]


def whole_sentences(reply: str, since: int) -> int:
    """Where the last sentence ends after which another one has surely begun; `since` if none does."""
    from ..evidence.markers import find

    found = spans(reply[since:])
    if len(found) < 2:
        return since
    begun = reply[since + found[-1][0] :]
    markers = find(begun)
    if markers and not begun[: markers[0].start].strip():  # they belong to the sentence before
        begun = begun[markers[0].end :]
    return since + found[-2][1] if _BEGUN.match(begun) else since


def whole_strings(reply: str, since: int) -> int:
    """Where the last string of a JSON text may end; `since` if there is none."""
    return max(since, reply.rfind('"', since) + 1)
