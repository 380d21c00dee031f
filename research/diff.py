"""Two runs of a question, held against each other: stages, queries, sources, facts, sentences, cost."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from research.ledger import Total, as_if_cold, dollars, paid, seconds_as_if_cold
from research.output import on_one_line
from research.records import Answer, Fact
from research.runs import Run
from research.store import Store

Line = Mapping[str, Any]
LONGEST = 200  # characters of a text that is shown


@dataclass(frozen=True)
class Stage:
    """A stage of both runs. `changed` are the parts of its recipe that differ; made and reused count pieces of work."""

    name: str
    first: str
    second: str
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """What only one of two lists has, in its order."""

    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    kept: int = 0

    @classmethod
    def of(cls, first: Sequence[str], second: Sequence[str]) -> Change:
        ours, theirs = dict.fromkeys(first), dict.fromkeys(second)
        gone = tuple(text for text in ours if text not in theirs)
        return cls(gone, tuple(text for text in theirs if text not in ours), len(ours) - len(gone))


@dataclass
class Diff:
    """`first` and `second` are run ids; `same_question` tells whether they can be compared at all."""

    first: str
    second: str
    same_question: bool
    setup: dict[str, tuple[str, str]]  # what differs in how they were run
    stages: list[Stage]
    queries: Change
    sources: Change  # addresses that are cited
    read: Change  # addresses of pages that were read
    facts: Change  # quotes that were extracted
    sentences: list[tuple[str, str]] = field(default_factory=list)  # "−", "+" or " ", with the sentence and its mark
    ending: tuple[str, str] = ("", "")
    figures: dict[str, tuple[str, str]] = field(default_factory=dict)


def diff(first: Run, second: Run, store: Store) -> Diff:
    """Raises: StoreError for a run that can't be read."""
    ours, theirs = _Read.of(first, store), _Read.of(second, store)
    return Diff(
        first.id,
        second.id,
        ours.manifest.get("question") == theirs.manifest.get("question"),
        {name: pair for name in SETUP if (pair := _pair(ours, theirs, name))[0] != pair[1]},
        list(_stages(ours, theirs)),
        Change.of(ours.queries, theirs.queries),
        Change.of(ours.cited, theirs.cited),
        Change.of(ours.read, theirs.read),
        Change.of([fact.quote for fact in ours.facts], [fact.quote for fact in theirs.facts]),
        list(_sentences(ours.answer, theirs.answer)),
        (ours.ending, theirs.ending),
        dict(_figures(ours.lines, theirs.lines)),
    )


SETUP = ("question", "pipeline", "as_of", "web_date", "web", "source", "models", "sample", "version")


def _pair(ours: _Read, theirs: _Read, name: str) -> tuple[str, str]:
    first, second = (_told(one.manifest.get(name, "")) for one in (ours, theirs))
    return first, second


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return str(value)


@dataclass
class _Read:
    """What there is of a run. What the store no longer holds is missing."""

    manifest: dict[str, Any]
    lines: list[dict[str, Any]]
    answer: Answer | None
    queries: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    @classmethod
    def of(cls, run: Run, store: Store) -> _Read:
        made = cls(run.manifest(), run.journal(), run.answer())
        dropped = {(line["stage"], line["item"]) for line in made.lines if line["event"] == "dropped"}
        for line in made.lines:
            taken = line["event"] in ("made", "reused") and line["item"] is not None
            if taken and (line["stage"], line["item"]) not in dropped:
                made._take(line, store)
            elif line["event"] == "step":
                made._step(line)
        if made.answer is not None and not made.facts:
            made.facts = [citation.fact for citation in made.answer.citations]
        return made

    def _take(self, line: Line, store: Store) -> None:
        kind = str(line["parts"].get("kind", "")).partition(" ")[0]
        data = store.value(line["ref"]) if kind in ("plan", "fetch", "extract", "quote") else None
        if data is None:
            return
        value = json.loads(data)
        if kind == "plan":
            self.queries += value["queries"]
        elif kind == "fetch" and value["outcome"] == "ok":
            self.read.append(value["url"])
        elif kind in ("extract", "quote"):
            self.facts += [Fact.model_validate(fact) for fact in value]

    def _step(self, line: Line) -> None:
        for result in line.get("results", ()):
            if result.get("call") == "search":
                try:
                    self.queries.append(str(json.loads(result["arguments"])["query"]))
                except (ValueError, LookupError, TypeError):
                    continue

    @property
    def cited(self) -> list[str]:
        return [] if self.answer is None else [citation.fact.url for citation in self.answer.citations]

    @property
    def ending(self) -> str:
        if self.answer is not None:
            return f"{self.answer.ending}{f' ({self.answer.reason})' if self.answer.reason else ''}"
        last = self.lines[-1] if self.lines else {}
        return f"failed: {last['error']}" if "error" in last else "unfinished"


def _stages(ours: _Read, theirs: _Read) -> Iterator[Stage]:
    recipes = ours.manifest.get("recipes", {}), theirs.manifest.get("recipes", {})
    for name in dict.fromkeys([*recipes[0], *recipes[1]]):
        first, second = (recipe.get(name) for recipe in recipes)
        changed: tuple[str, ...] = ()
        if first is not None and second is not None:
            changed = tuple(part for part in dict.fromkeys([*first, *second]) if first.get(part) != second.get(part))
        yield Stage(name, _work(ours.lines, name, first), _work(theirs.lines, name, second), changed)


def _work(lines: Sequence[Line], stage: str, recipe: Any) -> str:
    """How much of it was made, and how much reused."""
    if recipe is None:
        return "–"
    own = [line for line in lines if line.get("stage") == stage and line["event"] in ("made", "reused")]
    keys = {line["key"]: False for line in own if line["item"] is not None and "within" not in line}
    for line in own:
        if line["event"] == "made" and line["key"] in keys:
            keys[line["key"]] = True
    made = sum(keys.values())
    parts = [f"{count} {name}" for count, name in ((made, "made"), (len(keys) - made, "reused")) if count]
    return ", ".join(parts) or "not reached"


def _sentences(first: Answer | None, second: Answer | None) -> Iterator[tuple[str, str]]:
    ours, theirs = _marked(first), _marked(second)
    for sign, start, end, begin, stop in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if sign == "equal":
            yield from ((" ", text) for text in ours[start:end])
        else:
            yield from (("−", text) for text in ours[start:end])
            yield from (("+", text) for text in theirs[begin:stop])


def _marked(answer: Answer | None) -> list[str]:
    """The sentences of an answer, each with its mark where that is not "supported"."""
    if answer is None:
        return []
    if not answer.sentences:
        return [on_one_line(answer.text)] if answer.text else []
    return [
        on_one_line(answer.text[one.start : one.end]) + ("" if one.status == "supported" else f" ({one.status})")
        for one in answer.sentences
    ]


def _figures(ours: Sequence[Line], theirs: Sequence[Line]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, total in (("paid", paid), ("as if cold", as_if_cold)):
        yield name, (_money(total(ours)), _money(total(theirs)))
    yield "seconds as if cold", (f"{seconds_as_if_cold(ours):.2f}", f"{seconds_as_if_cold(theirs):.2f}")
    first, second = as_if_cold(ours), as_if_cold(theirs)
    for label, field_ in (("model calls", "models"), ("searches", "searches"), ("pages", "fetches")):
        yield label, (str(getattr(first, field_)), str(getattr(second, field_)))
    yield "tokens", (f"{first.input:,} in, {first.output:,} out", f"{second.input:,} in, {second.output:,} out")


def _money(total: Total) -> str:
    return dollars(total.usd, total.unknown)


def told(found: Diff) -> Iterator[str]:
    """As lines to read."""
    yield f"− {found.first}"
    yield f"+ {found.second}"
    if not found.same_question:
        yield "These runs are of two questions."
    for name, (first, second) in found.setup.items():
        yield f"{name}: {_short(first)} → {_short(second)}"
    yield f"ending: {found.ending[0]}" + ("" if len({*found.ending}) == 1 else f" → {found.ending[1]}")
    wide = max((len(stage.name) for stage in found.stages), default=0)
    yield "stages"
    for stage in found.stages:
        changed = f"; {', '.join(stage.changed)} changed" if stage.changed else ""
        yield f"  {stage.name:<{wide}}  {stage.first} → {stage.second}{changed}"
    for name, change in (
        ("queries", found.queries), ("cited sources", found.sources), ("pages read", found.read), ("facts", found.facts)
    ):  # fmt: skip
        yield from _changes(name, change)
    yield "sentences" + ("" if any(sign != " " for sign, _ in found.sentences) else ": the same")
    yield from (f"{sign} {text}" for sign, text in found.sentences)
    yield "figures"
    for name, (first, second) in found.figures.items():
        yield f"  {name}: {first}" + ("" if first == second else f" → {second}")


def _changes(name: str, change: Change) -> Iterator[str]:
    if not (change.gone or change.new):
        yield f"{name}: the same {change.kept}" if change.kept else f"{name}: none"
        return
    yield f"{name}: {change.kept} in both"
    yield from (f"− {_short(text)}" for text in change.gone)
    yield from (f"+ {_short(text)}" for text in change.new)


def _short(text: str) -> str:
    plain = on_one_line(text)
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST].rstrip()}…"
