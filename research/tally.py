"""What became of a search, counted from a run's journal: hits found, pages read, and why others were not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .records import Answer, Grade, Outcome

PDF = " (PDF)"
_PASSING = ("timed out", "not reached", "not recorded")
_LABELS = {str(outcome) for outcome in Outcome} | {*_PASSING}


@dataclass(frozen=True)
class Tally:
    """`found` hits were to be read, `read` were, `pdf` of them as PDF; `lost` counts the others that were tried by
    outcome. `snippets` of the `cited` sources are cited by their snippet only. `skipped` is what engines said that
    did not answer.
    """

    found: int = 0
    read: int = 0
    pdf: int = 0
    lost: Mapping[str, int] = field(default_factory=dict)
    cited: int = 0
    snippets: int = 0
    skipped: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As it stands under an answer.

        >>> str(Tally(found=14, read=4, pdf=1, lost={"blocked": 2}, cited=3))
        '14 found, 4 read (1 PDF), 2 blocked, 3 cited'
        """
        read = f"{self.read} read" + (f" ({self.pdf} PDF)" if self.pdf else "")
        counts = [f"{self.found} found", read] if self.found else []
        counts += [f"{count} {label}" for label, count in self.lost.items()]
        cited = f"{self.cited} cited" + (f" ({self.snippets} by its snippet only)" if self.snippets else "")
        return ", ".join([*counts, cited])


def tally(lines: Iterable[Mapping[str, Any]], answer: Answer | None = None) -> Tally:
    """The count over a journal's lines."""
    lines = list(lines)
    work = [line for line in lines if line["event"] in ("made", "reused")]
    fetching = {line["stage"] for line in work if _kind(line) == "fetch"}
    chosen = [line for line in lines if line["event"] == "selected" and line["stage"] in fetching]
    outcomes = {
        (line["stage"], line["item"]): line["receipt"].get("outcome", "")
        for line in work
        if line["stage"] in fetching and line["item"] is not None
    }
    read = [outcomes.get((line["stage"], item), "") for line in chosen for item in line["chosen"]]
    lost = Counter(_label(line) for line in lines if line["event"] == "dropped" and line["stage"] in fetching)
    cited = {citation.fact.url: citation.fact.grade for citation in (answer.citations if answer else ())}
    notes = [note for line in work if _kind(line) == "search" for note in line["receipt"].get("notes", ())]
    return Tally(
        found=sum(line["of"] for line in chosen),
        read=len(read),
        pdf=sum(outcome.endswith(PDF) for outcome in read),
        lost=dict(lost),
        cited=len(cited),
        snippets=sum(grade is Grade.SNIPPET for grade in cited.values()),
        skipped=tuple(dict.fromkeys(note for note in notes if note.startswith("skipped "))),
    )


def _kind(line: Mapping[str, Any]) -> str:
    return str(line.get("parts", {}).get("kind", "")).partition(" ")[0]


def _label(line: Mapping[str, Any]) -> str:
    """What a reason begins with, where that is a label."""
    label = str(line["reason"]).partition(":")[0]
    return label if label in _LABELS else "not read"
