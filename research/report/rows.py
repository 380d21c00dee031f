"""The tables of a report, in words: the same for HTML and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..ledger import NANO, dollars
from . import Report
from .figures import QUALITIES, Arm, Figures
from .units import NAMES, between, chance, change, count, figure, money, seconds, share, within
from .wording import verdict

WAITED = 0.05  # seconds of waiting, for rate slots and further tries, from which it is told


@dataclass(frozen=True)
class Table:
    """A table with its cells as text; `note` tells how its figures were obtained. The first cell names the row."""

    name: str
    title: str
    note: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: frozenset[int] = field(default_factory=frozenset)  # rows that claim something


def tables(report: Report) -> Iterator[Table]:
    found = report.figures
    yield overview(report)
    yield qualities(found)
    yield differences(found)
    yield bought(found)
    if found.kinds:
        yield kinds(found)
    if found.repeats > 1:
        yield repeats(found)
    if found.failed:
        yield failures(found)
    if report.setup.judge:
        yield judge(report)


def overview(report: Report) -> Table:
    """Pipelines × quality, dollars, seconds, calls, tokens, cache: all as if cold."""
    found = report.figures
    tiers = list(dict.fromkeys(tier for arm in found.arms for tier in arm.tiers))
    label = NAMES[found.quality]
    head = ["pipeline", label, "dollars", "time p50", "p95", "model calls", "searches", "pages"]
    head += [f"{tier} tokens in / out" for tier in tiers] + ["cache reads"]
    waits = any(arm.waited >= WAITED for arm in found.arms)
    head += ["time of calls spent waiting"] if waits else []
    rows = []
    for arm in found.arms:
        ended = max(1, len(arm.trials) - len(arm.failed))
        row = [arm.pipeline, between(found.quality, arm.quality.get(found.quality))]
        row += [_dollars(arm), seconds(arm.seconds.p50 if arm.seconds else None)]
        row += [seconds(arm.seconds.p95 if arm.seconds else None)]
        row += [count(arm.calls.get(name)) for name in ("models", "searches", "fetches")]
        for tier in tiers:
            tokens = arm.tiers.get(tier)
            told = "–"
            if tokens is not None:
                read = tokens.input + tokens.cache_read + tokens.cache_write
                told = f"{count(read / ended)} / {count(tokens.output / ended)}"
            row.append(told)
        row.append(share(arm.cached))
        row += [seconds(arm.waited)] if waits else []
        rows.append(row)
    estimated = " Dollars are estimated: recorded tokens at other prices." if report.price_as else ""
    note = (
        "Means of a question, but of time its median (p50) and p95, as if cold: had nothing been reused, by recorded "
        "costs and durations. In brackets "
        f"the 95 % interval over questions.{estimated}"
    )
    return Table("overview", "Pipelines", note, head, rows)


def _dollars(arm: Arm) -> str:
    if arm.cost is None:
        return "unknown"
    told = between("usd", arm.cost)
    return f"{told}, {arm.unpriced} runs unknown" if arm.unpriced else told


def qualities(found: Figures) -> Table:
    names = [name for name in QUALITIES if any(name in arm.quality for arm in found.arms)]
    head = ["pipeline", *(NAMES[name] for name in names), "wrong", "of them stale", "not answered", "failed"]
    rows = [
        [
            arm.pipeline,
            *(share(arm.quality[name].mean) if name in arm.quality else "–" for name in names),
            count(arm.wrong),
            count(arm.stale_and_wrong),
            count(arm.endings.get("not answered", 0)),
            f"{len(arm.failed)} of {len(arm.trials)}",
        ]
        for arm in found.arms
    ]
    note = (
        "Over runs that ended; answers without a search have no citations, and are left out of those figures. "
        "Wrong: answered, and not right."
    )
    return Table("quality", "Quality", note, head, rows)


def differences(found: Figures) -> Table:
    family = len(found.differences) + len(found.judged)
    head = [
        "second − first",
        "of",
        "difference",
        "95 % interval",
        "higher / lower / equal",
        "p (sign test)",
        "p (Holm)",
        "",
    ]
    rows: list[list[str]] = []
    marked = set()
    for one in (*found.differences, *found.judged):
        if one.claimed:
            marked.add(len(rows))
        rows.append([
            f"{one.second} − {one.first}", NAMES[one.metric], change(one.metric, one.interval.mean),
            within(one.metric, one.interval) or "–", f"{one.higher} / {one.lower} / {one.equal}", chance(one.chance),
            chance(one.adjusted), verdict(one),
        ])  # fmt: skip
    note = (
        f"Paired by question, repeats averaged; {family} comparisons, for which the last p is corrected. A difference "
        "is claimed where that p is under 0.05 and the interval leaves zero out."
    )
    return Table("differences", "Differences", note, head, rows, frozenset(marked))


def bought(found: Figures) -> Table:
    """What was paid and measured, apart from what is as if cold."""
    head = ["pipeline", "paid by these runs", "measured time p50", "p95", "runs measured"]
    rows = [
        [
            arm.pipeline,
            dollars(arm.paid, arm.paid_unknown),
            seconds(arm.measured.p50 if arm.measured else None),
            seconds(arm.measured.p95 if arm.measured else None),
            f"{arm.measured.n if arm.measured else 0} of {len(arm.trials)}",
        ]
        for arm in found.arms
    ]
    note = (
        "Who ran first paid for what others share, so this compares nothing. Time is measured only where a run reused "
        "nothing; compare --isolate sees to that, but for pages that questions share."
    )
    return Table("paid", "Paid and measured", note, head, rows)


def kinds(found: Figures) -> Table:
    names = [arm.pipeline for arm in found.arms]
    head = ["class", "questions", "of", *names]
    rows = []
    for kind, metrics in found.kinds.items():
        for metric, row in metrics.items():
            if any(one is not None for one in row):
                of = max(one.n for one in row if one is not None)
                rows.append([kind or "(none)", str(of), NAMES[metric], *(between(metric, one) for one in row)])
    return Table("classes", "By class of question", "As if cold; intervals only, no tests.", head, rows)


def repeats(found: Figures) -> Table:
    head = [
        "pipeline",
        f"s.d. of {NAMES[found.quality]}",
        "s.d. of dollars",
        "s.d. of time",
        "questions whose repeats differ",
    ]
    rows = [
        [
            arm.pipeline,
            *(
                figure(metric, arm.between.get(metric)) if metric in arm.between else "–"
                for metric in (found.quality, "usd", "seconds")
            ),
            f"{arm.unsettled[0]} of {arm.unsettled[1]}",
        ]
        for arm in found.arms
    ]
    return Table("repeats", "Between repeats", "Standard deviation between repeats of one question.", head, rows)


def failures(found: Figures) -> Table:
    rows = [[trial.text, trial.pipeline, str(trial.sample), trial.error] for trial in found.failed]
    note = "Left out of the means above, and counted as 0 beside them: see the summary."
    return Table("failures", "Failed runs", note, ["question", "pipeline", "sample", "error"], rows)


def judge(report: Report) -> Table:
    told = report.setup.judge
    rows = [[told["model"], str(told["verdicts"]), str(told["swayed"]), money(told["usd"] / NANO)]]
    note = (
        "Each pair of answers was shown in both orders; where the order decided, it counts as equal. "
        "Not part of any pipeline's cost."
    )
    return Table("judge", "The judge", note, ["model", "pairs", "decided by the order", "cost, as if cold"], rows)
