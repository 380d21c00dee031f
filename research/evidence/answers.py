"""The answer that a checked text makes: its ending, and what its reader should know besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..records import Answer, Citation, Disagreement, Ending, Fact, Reference, Value
from .differences import disagreements
from .drafts import UNTOLD, Draft
from .folding import Folded
from .freshness import newest, warning
from .markers import Cited

MOST_DISAGREEMENTS = 5


@dataclass(frozen=True)
class Asked:
    """What an answer is held against: the question, its date, and all facts that were found."""

    question: str
    as_of: str
    found: Folded


def finished(draft: Draft, cited: Cited, asked: Asked, notes: Sequence[str] = ()) -> Answer:
    """The answer of a draft and its checked text, with the ending that its evidence allows."""
    refused = draft.refused or ("" if cited.text.strip() else draft.missing or UNTOLD)
    differing = differences(asked.found.facts, cited.citations, everything=draft.cause == "conflicting")
    shown = not refused or bool(cited.citations)
    latest = newest((citation.fact.date for citation in cited.citations), asked.as_of)
    cause = draft.cause or ("not in the sources" if refused else "conflicting" if differing else "")
    told = [*_counted(draft, cited, asked, latest), *cited.notes, *notes]
    return Answer(
        text=cited.text if shown else "",
        ending=Ending.NOT if refused else Ending.PARTLY if draft.missing else Ending.ANSWERED,
        reason=refused or draft.missing,
        cause=cause,
        citations=cited.citations,
        sentences=cited.sentences if shown else (),
        notes=tuple(told),
        removed_markers=cited.removed_markers,
        as_of=asked.as_of,
        newest=latest,
        disagreements=tuple(differing),
        copies=asked.found.copies,
        uncited=tuple(uncited(asked.found.facts, cited.citations)),
    )


def _counted(draft: Draft, cited: Cited, asked: Asked, latest: str) -> list[str]:
    notes = []
    if cited.removed_markers:
        notes.append(_left_out(cited.removed_markers, "citation", "of sources that are not there"))
    if draft.withheld:
        notes.append(_left_out(draft.withheld, "sentence", "that repeated the program's instructions"))
    if not cited.citations and not draft.refused and cited.text.strip():
        notes.append("No sentence of this answer cites a source.")
    used = {citation.fact.url: citation.fact for citation in cited.citations}
    for copy in asked.found.copies:
        if copy.copy_of in used:
            first = used[copy.copy_of]
            notes.append(f"{_named(copy)} carries the text of {_named(first)}: they count as one source.")
    if used and (old := warning(asked.question, latest, asked.as_of)):
        notes.append(old)
    return notes


def _left_out(count: int, what: str, which: str) -> str:
    return f"1 {what} {which} was left out." if count == 1 else f"{count} {what}s {which} were left out."


def _named(page: Fact | Reference) -> str:
    return page.site or page.title or page.url


def differences(facts: Sequence[Fact], citations: Sequence[Citation], everything: bool) -> list[Disagreement]:
    """Where sources differ about what is cited; with `everything`, about anything."""
    numbers = {citation.fact.url: citation.number for citation in citations}
    cited = {(citation.fact.url, citation.fact.start, citation.fact.end) for citation in citations}
    found = []
    for one in disagreements(facts):
        facts_of_it = [stated.fact for stated in one.values]
        if everything or any((fact.url, fact.start, fact.end) in cited for fact in facts_of_it):
            values = [Value(value=s.value, number=numbers.get(s.fact.url, 0), fact=s.fact) for s in one.values]
            found.append(Disagreement(values=tuple(values)))
    return found[:MOST_DISAGREEMENTS]


def uncited(facts: Sequence[Fact], citations: Sequence[Citation]) -> list[Reference]:
    """The pages that had something to say and are not cited, each once: what is passed over can be seen."""
    used = {citation.fact.url for citation in citations}
    others = {fact.url: fact for fact in reversed(facts) if fact.url not in used}
    return [Reference(url=one.url, title=one.title, site=one.site, date=one.date) for one in reversed(others.values())]
