"""What became of a search, counted from a run's journal: hits found, pages read, and why others were not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .records import Answer, Grade, Outcome

PDF = " (PDF)"
_PASSING = ("timed out", "not reached", "not recorded")
_LABELS = {str(outcome) for outcome in Outcome} | {*_PASSING}


class Tally(NamedTuple):
    """`found` hits were to be read, `read` were, `pdf` of them as PDF; `lost` counts the others that were tried by
    outcome, and `unread` tells of each: "blocked: https://…". `snippets` of the `cited` sources are cited by their
    snippet only. `skipped` is what engines said that did not answer.
    """

    found: int = 0
    read: int = 0
    pdf: int = 0
    lost: Mapping[str, int] = {}
    cited: int = 0
    snippets: int = 0
    skipped: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As it stands under an answer.

        >>> str(Tally(found=14, read=4, pdf=1, lost={"blocked": 2}, cited=3))
        '14 found, 4 read (1 PDF), 2 blocked, 3 cited'
        """
        read = f"{self.read} read" + (f" ({self.pdf} PDF)" if self.pdf else "")
        counts = [f"{self.found} found", read] if self.found else []
        counts += [f"{count} {label}" for label, count in self.lost.items()]
        its = "its snippet" if self.snippets == 1 else "their snippets"
        cited = f"{self.cited} cited" + (f" ({self.snippets} by {its} only)" if self.snippets else "")
        return ", ".join([*counts, cited])


def tally(lines: Iterable[Mapping[str, Any]], answer: Answer | None = None) -> Tally:
    """The count over a journal's lines."""
    lines = [line for line in lines if "within" not in line]
    stages: list[_Stage | _Loop]
    stages = [_Stage(lines, name) for name in dict.fromkeys(line["stage"] for line in lines if _kind(line) == "fetch")]
    stages += [_Loop(line["receipt"]["nested"]) for line in lines if line.get("receipt", {}).get("nested")]
    cited = {citation.fact.url: citation.fact.grade for citation in (answer.citations if answer else ())}
    searches = [line["receipt"] for line in lines if _kind(line) == "search"]
    searches += [receipt for stage in stages if isinstance(stage, _Loop) for receipt in stage.searches]
    notes = [note for receipt in searches for note in receipt.get("notes", ())]
    return Tally(
        found=sum(stage.of for stage in stages),
        read=sum(len(stage.read) for stage in stages),
        pdf=sum(outcome.endswith(PDF) for stage in stages for outcome in stage.read),
        lost=dict(sum((Counter(map(_label, stage.left)) for stage in stages), Counter())),
        cited=len(cited),
        snippets=sum(grade is Grade.SNIPPET for grade in cited.values()),
        skipped=tuple(dict.fromkeys(note for note in notes if note.startswith("skipped "))),
        unread=tuple(reason for stage in stages for reason in stage.left if ": " in reason),
    )


class _Stage:
    """One stage that fetches: how many it was to read, the outcomes of those it gave, and why it left others out."""

    def __init__(self, lines: Iterable[Mapping[str, Any]], name: str) -> None:
        own = [line for line in lines if line.get("stage") == name and line.get("item", 0) is not None]
        outcomes = {line["item"]: line["receipt"].get("outcome", "") for line in own if _kind(line)}
        dropped = {line["item"]: line["reason"] for line in own if line["event"] == "dropped"}
        selected = next((line for line in own if line["event"] == "selected"), None)
        if selected is None:
            chosen: Iterable[int] = [item for item in outcomes if item not in dropped]
            self.of, self.left = len({*outcomes, *dropped}), [*dropped.values()]
        else:
            chosen = selected["chosen"]
            self.of, self.left = selected["of"], [*selected.get("left", {}).values()]
        self.read: list[str] = [outcomes.get(item, "") for item in chosen]


class _Loop:
    """A loop that fetches, by the receipts of its parts: the pages that it tried, read or not."""

    def __init__(self, parts: Iterable[Mapping[str, Any]]) -> None:
        parts = list(parts)
        outcomes = [part["receipt"].get("outcome", "") for part in parts if part["work"] == "fetch"]
        self.of = len(outcomes)
        self.read = [outcome for outcome in outcomes if outcome.removesuffix(PDF) == Outcome.OK]
        self.left = [outcome for outcome in outcomes if outcome.removesuffix(PDF) != Outcome.OK]
        self.searches = [part["receipt"] for part in parts if part["work"] == "search"]


def _kind(line: Mapping[str, Any]) -> str:
    """The kind of the stage whose work a line tells of; "" for other lines."""
    return str(line.get("parts", {}).get("kind", "")).partition(" ")[0]


def _label(reason: str) -> str:
    """What a reason begins with, where that is a label."""
    label = reason.partition(":")[0]
    return label if label in _LABELS else "not read"
