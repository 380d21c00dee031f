"""Which stages can go cheap: one stage's tier swapped at a time, all before it from the store.

And what each stage buys: a pipeline with it against one without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from research.errors import UsageError
from research.pipeline import TIERS, Pipeline, Stage
from research.report.figures import RIGHT, SUPPORT, Arm, Difference, arm, difference
from research.report.gathering import Trial
from research.report.statistics import holm
from research.report.units import chance, change, listed, within

# What is bought, the pipeline without it, and the one with it.
LADDER = (
    ("ordering the hits (rerank)", "top-n", "fixed"),
    ("reading pages (fetch, extract)", "snippets", "top-n"),
    ("searching (search, quote)", "closed-book", "snippets"),
)
LADDER_PIPELINES = ("fixed", "top-n", "snippets", "closed-book")


@dataclass(frozen=True)
class Swap:
    """A pipeline in which one stage is bound to the other tier."""

    stage: str
    tier: str  # the one that it is bound to now
    pipeline: Pipeline


def swaps(pipeline: Pipeline) -> list[Swap]:
    """One for each stage that is bound to a tier.

    Raises: UsageError where there is none.
    """
    found = []
    for name, stage in pipeline.stages.items():
        if stage.model in TIERS:
            [other] = set(TIERS) - {stage.model}
            stages = {**pipeline.stages, name: bound(stage, other)}
            found.append(Swap(name, other, pipeline._replace(name=f"{name} {other}", stages=stages)))
    if not found:
        raise UsageError(f"{pipeline.name}: no stage is bound to a tier, so there is nothing to advise on")
    return found


def bound(stage: Stage, tier: str) -> Stage:
    return stage._replace(model=tier)


@dataclass(frozen=True)
class Advice:
    """Of one stage. `quality`, `usd` and `seconds` are what the other tier changes; None where nothing tells."""

    stage: str
    was: str
    tier: str
    quality: Difference | None
    usd: Difference | None
    seconds: Difference | None

    @property
    def gains(self) -> bool:
        """Whether the other tier is better."""
        return self.quality is not None and self.quality.claimed and self.quality.interval.mean > 0

    @property
    def loses(self) -> bool:
        return self.quality is not None and self.quality.claimed and self.quality.interval.mean < 0

    @property
    def needs_capable(self) -> bool:
        """Whether a difference was shown that only the capable tier makes."""
        return self.gains if self.tier == "capable" else self.loses

    @property
    def undecided(self) -> bool:
        """Whether the capable tier looks better, and too few questions were asked to claim it."""
        better = 1 if self.tier == "capable" else -1
        return self.quality is not None and self.quality.interval.mean * better > 0 and is_too_few(self.quality)

    @property
    def told(self) -> str:
        """In a few words."""
        if self.quality is None:
            return f"{self.stage}: nothing can be told"
        by, n = self._by, self.quality.interval.n
        if self.undecided:
            might = "may need capable" if self.tier == "capable" else "may not go cheap"
            return f"{self.stage} {might}: {by}; {too_few(self.quality)}"
        if self.tier == "capable":
            if self.gains:
                return f"{self.stage} should go capable: {by}"
            return f"{self.stage} can stay cheap: no gain shown in {n} questions ({by})"
        if self.loses:
            return f"{self.stage} can't go cheap: {by}"
        return f"{self.stage} can go cheap: no loss shown in {n} questions ({by})"

    @property
    def _by(self) -> str:
        assert self.quality is not None
        interval = self.quality.interval
        told = change("right", interval.mean)
        ends = within("right", interval)
        return f"{told}, {ends}" if ends else told


def is_too_few(one: Difference) -> bool:
    """Whether the interval leaves zero out, and the test, after all others, does not bear it out."""
    return one.interval.excludes_zero and not one.claimed


def too_few(one: Difference) -> str:
    """Why such a difference is not claimed."""
    n = one.interval.n
    return f"{n} question{' is' if n == 1 else 's are'} too few to claim it (p = {chance(one.adjusted)})"


def advice(trials: Sequence[Trial], pipeline: Pipeline, found: Sequence[Swap]) -> list[Advice]:
    """What each swap changes against the pipeline as it is. Tests are corrected for as many stages as there are."""
    quality = RIGHT if any(RIGHT in trial.scores for trial in trials) else SUPPORT
    arms = arms_of(trials, quality)
    base = arms.get(pipeline.name)
    made = []
    for swap in found:
        other = arms.get(swap.pipeline.name)
        changed = [
            None if base is None or other is None else difference(metric, base, other, quality)
            for metric in (quality, "usd", "seconds")
        ]
        made.append(Advice(swap.stage, pipeline.stages[swap.stage].model, swap.tier, *changed))
    adjusted = iter(corrected([one.quality for one in made]))
    return [replace(one, quality=next(adjusted)) for one in made]


def arms_of(trials: Sequence[Trial], quality: str) -> dict[str, Arm]:
    names = dict.fromkeys(trial.pipeline for trial in trials)
    return {name: arm([trial for trial in trials if trial.pipeline == name], quality) for name in names}


def corrected(differences: Sequence[Difference | None]) -> list[Difference | None]:
    """With the chance of each after all of them (Holm)."""
    adjusted = iter(holm([one.chance for one in differences if one is not None]))
    return [None if one is None else replace(one, adjusted=next(adjusted)) for one in differences]


def told(found: Sequence[Advice]) -> Iterator[str]:
    """The advice, stage by stage and then as a whole."""
    for one in found:
        parts = [
            change(name, each.interval.mean) for name, each in (("usd", one.usd), ("seconds", one.seconds)) if each
        ]
        beside = f"; {one.tier} takes {' and '.join(parts)} a question" if parts else ""
        yield f"{one.told}{beside}."
    known = [one for one in found if one.quality is not None]
    unclear = [one.stage for one in known if one.undecided]
    cheap = [one.stage for one in known if not one.needs_capable and not one.undecided]
    capable = [one.stage for one in known if one.needs_capable]
    if cheap:
        n = min(one.quality.interval.n for one in found if one.quality is not None)
        yield f"Cheap is enough for {listed(cheap)}: no loss shown (n = {n})."
    if unclear:
        yield f"More questions are needed to tell for {listed(unclear)}."
    if capable:
        yield f"The capable model is needed for {listed(capable)}."


def bought(trials: Sequence[Trial]) -> Iterator[str]:
    """What each stage of the fixed pipeline buys, at what price."""
    quality = RIGHT if any(RIGHT in trial.scores for trial in trials) else SUPPORT
    arms = arms_of(trials, quality)
    rows = [(what, arms[less], arms[more]) for what, less, more in LADDER if less in arms and more in arms]
    compared = corrected([difference(quality, less, more, quality) for _, less, more in rows])
    for (what, less, more), one in zip(rows, compared, strict=True):
        if one is None:
            yield f"{what}: nothing can be told ({more.pipeline} against {less.pipeline})."
            continue
        by = f"{change(quality, one.interval.mean)} ({within(quality, one.interval)}, n = {one.interval.n})"
        shown = f"buys {by}" if one.claimed else f"{by}" if is_too_few(one) else f"no difference shown, {by}"
        why = f"; {too_few(one)}" if is_too_few(one) else ""
        price = [
            change(metric, each.interval.mean)
            for metric in ("usd", "seconds")
            if (each := difference(metric, less, more, quality)) is not None
        ]
        yield (
            f"{what}: {shown} for {' and '.join(price) or 'an unknown price'} a question, {more.pipeline} against "
            f"{less.pipeline}{why}."
        )
