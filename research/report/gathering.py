"""From results files and run folders to trials: one question, through one pipeline, once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import StoreError, UsageError, words
from ..ledger import NANO, Total, as_if_cold, paid, seconds_as_if_cold, timetable, used
from ..questions.columns import answers, class_of
from ..records import Answer
from ..results import DONE
from ..runs import Run, Runs
from .quality import Scores, is_unanswerable, score

GONE = "its run folder is gone"


@dataclass
class Tokens:
    """Of all calls of one tier. `input` are fresh ones."""

    model: str = ""
    calls: int = 0
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    def add(self, call: Mapping[str, Any]) -> None:
        self.merge(Tokens("", 1, *(call.get(name, 0) for name in ("input", "cache_read", "cache_write", "output"))))

    def merge(self, other: Tokens) -> None:
        for name in ("calls", "input", "cache_read", "cache_write", "output"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True)
class Part:
    """A piece of work in the timetable of a run as if cold: seconds since it began, nano-dollars (None: unknown)."""

    stage: str
    work: str  # of work that is made of parts, which part
    tier: str
    begin: float
    seconds: float
    end: float
    usd: int | None
    tokens: int
    calls: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Took:
    """What a run takes with nothing reused. `usd` is nano-dollars; None where a price is unknown."""

    usd: int | None
    least: int  # what is known of `usd`
    seconds: float
    total: Total
    tiers: Mapping[str, Tokens]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Trial:
    """One run of one question through one pipeline, as it ended.

    `ending` is the answer's, or "failed" with its `error`. `measured` are the seconds that passed, told only
    where nothing was reused. `judged` and `paid` are nano-dollars of this run alone.
    """

    question: str  # its id
    text: str
    pipeline: str
    sample: int = 0
    kind: str = ""
    references: tuple[str, ...] = ()
    unanswerable: bool = False
    ending: str = ""
    error: str = ""
    run: str = ""
    answer: Answer | None = None
    scores: Scores = field(default_factory=dict)
    took: Took | None = None
    paid: int = 0
    unpriced: int = 0  # calls of `paid` whose price is unknown
    measured: float | None = None
    reused: bool = True  # at least something

    @property
    def failed(self) -> bool:
        return self.answer is None

    def value(self, metric: str) -> float | None:
        """Its figure for a metric: a score, "usd" in dollars, or "seconds". None where it has none."""
        if metric == "usd":
            return None if self.took is None or self.took.usd is None else self.took.usd / NANO
        if metric == "seconds":
            return None if self.took is None else self.took.seconds
        return self.scores.get(metric)


@dataclass
class Gathered:
    """Trials, and the manifests of the runs that they are of, one for each pipeline."""

    trials: list[Trial] = field(default_factory=list)
    manifests: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    verdicts: list[dict[str, Any]] = field(default_factory=list)  # of a judge
    notes: dict[str, Any] = field(default_factory=dict)  # what a comparison wrote down about itself


def gather(names: Iterable[str], runs: Runs, wanted: Collection[str] | None = None) -> Gathered:
    """From results files and run ids; of files all records, or those with the `wanted` ids.

    Raises: UsageError for what is neither, or for runs that can't be told apart.
    """
    gathered = Gathered()
    for name in names:
        if Path(name).is_file():
            records = [*_records(Path(name))]
            gathered.verdicts += [record for record in records if "judge" in record]
            for record in records:
                if "judge" not in record and (wanted is None or record["id"] in wanted):
                    gathered.notes |= record["notes"] if "of" in record else {}  # a batch's are notes on its answers
                    gathered.trials.append(_of_record(record, runs, gathered))
        else:
            gathered.trials.append(_of_run(runs.open(name), gathered))
    _check(gathered.trials)
    gathered.trials = in_order(gathered.trials)
    return gathered


def in_order(trials: Iterable[Trial]) -> list[Trial]:
    """Questions, and of each its pipelines and their repeats, each as they first come."""
    trials = list(trials)
    questions, pipelines = (
        {name: place for place, name in enumerate(dict.fromkeys(names))}
        for names in ([trial.question for trial in trials], [trial.pipeline for trial in trials])
    )
    return sorted(trials, key=lambda one: (questions[one.question], pipelines[one.pipeline], one.sample))


def _check(trials: list[Trial]) -> None:
    if not trials:
        raise UsageError("there is nothing to report: no row in these files has been run")
    counted = Counter((trial.question, trial.pipeline, trial.sample) for trial in trials)
    [(question, pipeline, sample), count] = counted.most_common(1)[0]
    if count > 1:
        raise UsageError(
            f"question {question!r} was run {count} times through {pipeline} as sample {sample}; a report takes each "
            "once: name fewer runs"
        )


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """The newest record of each row, in the order of the rows and not in that in which they ended.

    Raises: UsageError for a file that is no results file.
    """
    newest: dict[str, dict[str, Any]] = {}
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    record = json.loads(line)
                    whole = record | {"state": record["state"]}
                    parts = {name: {**(whole.get(name) or {})} for name in ("columns", "paid", "error")}
                    newest[record["id"]] = whole | parts
                except (ValueError, LookupError, TypeError):
                    if not newest:
                        raise UsageError(f"{path}: that is no results file of a comparison or a batch") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: it can't be read: {error}") from None
    yield from sorted(newest.values(), key=lambda record: int(record.get("row") or 0))


def _of_record(record: Mapping[str, Any], runs: Runs, gathered: Gathered) -> Trial:
    columns = record.get("columns", {})
    asked: dict[str, Any] = {
        "question": record.get("of", record["id"]),
        "text": record["question"],
        "pipeline": record.get("arm", record.get("pipeline", "")),
        "sample": record.get("sample", 0),
        "kind": class_of(columns),
        "references": answers(columns),
        "unanswerable": is_unanswerable(columns),
        "run": record.get("run") or "",
    }
    spent = record.get("paid", {})
    asked |= {"paid": round(spent.get("usd", 0) * NANO), "unpriced": spent.get("unknown_prices", 0)}
    if record["state"] != DONE:
        error = record.get("error") or {}
        return Trial(
            **asked, ending="failed", error=f"{words(error.get('kind', record['state']))}: {error.get('message', '')}"
        )
    try:
        run = runs.open(asked["run"])
        answer = run.answer()
    except (UsageError, StoreError):
        answer = None
    if answer is None:
        return Trial(**asked, ending="failed", error=GONE)
    _note(gathered, asked["pipeline"], run)
    return _ended(asked, answer, run.journal())


def _of_run(run: Run, gathered: Gathered) -> Trial:
    manifest, answer, lines = run.manifest(), run.answer(), run.journal()
    pipeline, spent = str(manifest["pipeline"]), paid(lines)
    asked: dict[str, Any] = {
        "question": manifest["question"],
        "text": manifest["question"],
        "pipeline": pipeline,
        "sample": manifest.get("sample", 0),
        "run": run.id,
        "paid": spent.usd,
        "unpriced": spent.unknown,
    }
    _note(gathered, pipeline, run)
    if answer is None:
        last = lines[-1] if lines else {}
        return Trial(**asked, ending="failed", error=str(last.get("error", "it was stopped")))
    return _ended(asked, answer, lines)


def _ended(asked: Mapping[str, Any], answer: Answer, lines: list[dict[str, Any]]) -> Trial:
    made = {line["key"] for line in lines if line["event"] == "made"}
    reused = any(line["event"] == "reused" and line["key"] not in made for line in lines)
    last = lines[-1] if lines else {}
    return Trial(
        **asked,
        ending=str(answer.ending),
        answer=answer,
        scores=score(asked["text"], answer, asked.get("references", ()), asked.get("unanswerable", False)),
        took=taken(lines),
        measured=float(last["at"]) if not reused and last.get("event") == "ended" else None,
        reused=reused,
    )


def taken(lines: Iterable[Mapping[str, Any]]) -> Took:
    """What a run takes as if cold, from its journal."""
    lines = list(lines)
    works = used(lines)
    spans = timetable(works)
    total, parts = as_if_cold(lines), []
    tiers: dict[str, Tokens] = {}
    for key, work in works.items():
        calls = work["receipt"].get("calls", ())
        for call in calls:
            if call["what"] == "model":
                tiers.setdefault(call.get("tier") or "pinned", Tokens(call["name"])).add(call)
        prices = [call.get("usd", 0) for call in calls]
        parts.append(
            Part(
                stage=work["stage"],
                work=work.get("work", ""),
                tier=next((call.get("tier", "") for call in calls if call["what"] == "model"), ""),
                **spans[key]._asdict(),
                usd=None if None in prices else sum(prices),
                calls=tuple(calls),
                tokens=sum(call.get(name, 0) for call in calls for name in ("input", "cache_read", "output")),
            )
        )
    usd = None if total.unknown else total.usd
    return Took(usd, total.usd, seconds_as_if_cold(lines), total, tiers, tuple(parts))


def _note(gathered: Gathered, pipeline: str, run: Run) -> None:
    """What a run was made by, where that is not known yet."""
    known = gathered.manifests.setdefault(pipeline, [])
    manifest = run.manifest()
    shaping = ("pipeline_digest", "as_of", "web_date", "source", "models", "version")
    if not any(all(other.get(name) == manifest.get(name) for name in shaping) for other in known):
        known.append(manifest)
