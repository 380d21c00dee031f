"""The final text → the answer, with the same citations, checks and endings as every pipeline's.

The text cites sources by number. Each citation is pinned to the passage of its page that
bears the sentence out best; a source that was never read, to its snippet. What no passage
bears out is marked by the checks, not left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...records import Answer, Ending, Fact, Grade
from ..extract import as_fact
from ..job import Job
from ..quote import as_fact as as_snippet
from ..synthesize import HONEST
from .loop import Conclusion
from .sources import Source, Sources

if TYPE_CHECKING:
    from ...evidence.folding import Folded
    from ...evidence.markers import Cited
    from ..locating import Passages

UNSEARCHED = "Answered without a search: the model found none needed, so nothing here has a source."


def answered(job: Job, question: str, as_of: str, sources: Sources, conclusion: Conclusion) -> Answer:
    from ...evidence.answers import Asked, finished
    from ...evidence.drafts import read
    from ...evidence.markers import cite

    assert job.prompt is not None
    notes = (HONEST,) if job.model.name.startswith("builtin:") else ()
    draft = read(conclusion.text, "\n".join([job.prompt.text, *(prompt.text for prompt in job.further.values())]))
    if not conclusion.searched:
        if draft.refused:
            return Answer(text="", ending=Ending.NOT, reason=draft.refused, cause=draft.cause, notes=notes, as_of=as_of)
        text = cite(draft.text, []).text
        return Answer(text=text, ending=Ending.WITHOUT_SEARCH, notes=(UNSEARCHED, *notes), as_of=as_of)
    if not any(source.hit or source.readable for source in sources.all):
        reason = "no evidence was found"
        return Answer(text="", ending=Ending.NOT, reason=reason, cause="no evidence", notes=notes, as_of=as_of)
    if conclusion.stopped:
        notes = (f"The model was made to answer from what it had read. {conclusion.stopped}", *notes)
    if conclusion.looping and not draft.refused:
        draft = replace(draft, missing=draft.missing or f"the investigation was cut short: {conclusion.stopped}")
    pinning = Pinning(question, sources)
    cited, found = pinning.cited(draft.text)
    return finished(draft, cited, Asked(question, as_of, found), notes)


class Pinning:
    """Pins citations of sources to passages."""

    def __init__(self, question: str, sources: Sources) -> None:
        self.question = question
        self.sources = {source.number: source for source in sources.all if source.hit or source.readable}
        self._passages: dict[int, Passages] = {}

    def cited(self, text: str) -> tuple[Cited, Folded]:
        """The text with its citations, numbered anew, and all facts that it is held against."""
        from ...evidence.folding import fold
        from ...evidence.markers import cite

        stand_ins = {number: self._stand_in(source) for number, source in self.sources.items()}
        most = max(self.sources, default=0)
        blank = Fact(claim="", quote="", start=0, end=0, grade=Grade.SNIPPET, url="", page="")
        first = cite(text, [stand_ins.get(number, blank) for number in range(1, most + 1)])
        facts: dict[tuple[int, int], Fact] = {}  # by where the sentence begins, and the source's number in it
        for citation in first.citations:
            source = next(one for one in self.sources.values() if one.url == citation.fact.url)
            sentence = first.text[citation.start : citation.end]
            facts[citation.start, citation.number] = self._fact(source, sentence)
        pages = [source.page for source in self.sources.values() if source.page is not None and source.readable]
        passed = [self._fact(one, self.question) for one in self.sources.values() if self._passed_over(one, first)]
        found = fold([*facts.values(), *passed], pages)
        moved = {place: _stands_for(fact, found.facts) for place, fact in facts.items()}
        final = cite(*_renumbered(first, moved, found.facts))
        removed, links = first.removed_markers + final.removed_markers, first.removed_links + final.removed_links
        notes = tuple(dict.fromkeys((*first.notes, *final.notes)))
        return replace(final, removed_markers=removed, removed_links=links, notes=notes), found

    def _stand_in(self, source: Source) -> Fact:
        return Fact(claim="", quote="", start=0, end=0, grade=Grade.EXACT, url=source.url, page="")

    def _passed_over(self, source: Source, cited: Cited) -> bool:
        """Whether a source was read, and is not cited."""
        return source.readable and all(citation.fact.url != source.url for citation in cited.citations)

    def _fact(self, source: Source, claim: str) -> Fact:
        from ..locating import Passages

        if source.page is not None and source.readable:
            passages = self._passages.setdefault(source.number, Passages(source.page))
            if (place := passages.best(claim)) is not None:
                return as_fact(source.page, claim, place)
        if source.hit is not None:
            return as_snippet(source.hit).model_copy(update={"claim": claim})
        return self._stand_in(source)


def _stands_for(fact: Fact, found: Sequence[Fact]) -> Fact:
    """The fact that stands for `fact` after copies were folded into one."""
    if fact in found:
        return fact
    same = [one for one in found if one.claim == fact.claim]
    return next((one for one in found if fact.quote in one.quote), same[0] if same else fact)


def _renumbered(cited: Cited, moved: dict[tuple[int, int], Fact], found: Sequence[Fact]) -> tuple[str, list[Fact]]:
    """The text with each marker naming its facts by their places in a list, and that list."""
    from ...evidence.markers import find

    facts = list(dict.fromkeys([*moved.values()]))
    places = {fact: place for place, fact in enumerate(facts, start=1)}
    starts = {(citation.start, citation.number): citation for citation in cited.citations}
    made, place = [], 0
    for cluster in find(cited.text):
        begin = next((s for (s, _), one in starts.items() if s <= cluster.start and cluster.end <= one.end), -1)
        ids = dict.fromkeys(places[moved[begin, number]] for number in cluster.ids if (begin, number) in moved)
        made += [cited.text[place : cluster.start], "".join(f"[{number}]" for number in ids)]
        place = cluster.end
    return "".join([*made, cited.text[place:]]), facts
