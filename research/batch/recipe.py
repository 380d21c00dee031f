"""What the batch of one results file is made by, from its first command to its last: dates, recipe, account."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.app import App, Dates
from research.errors import StoreError, UsageError
from research.results import Results
from research.store import key_of
from research.web.base import is_live

if TYPE_CHECKING:
    from research.pipeline import Pipeline
    from research.web.base import Web


@dataclass(frozen=True)
class Recipe:
    """All that shapes the answers of a batch: for each stage its recipe, and the date that prompts are told."""

    stages: Mapping[str, Mapping[str, str]]
    as_of: str

    @property
    def digest(self) -> str:
        return key_of({"stages": self.stages, "as_of": self.as_of})[:32]

    def differences(self, manifest: Mapping[str, Any]) -> list[str]:
        """What is not as it was in a run with that manifest: "extract: prompt"."""
        before: Mapping[str, Mapping[str, str]] = manifest.get("recipes", {})
        told = [f"stage {name} is gone" for name in before if name not in self.stages]
        for name, recipe in self.stages.items():
            old = before.get(name)
            if old is None:
                told.append(f"stage {name} is new")
                continue
            parts = [part for part in dict.fromkeys([*old, *recipe]) if old.get(part) != recipe.get(part)]
            told += [f"{name}: {', '.join(parts)}"] if parts else []
        if manifest.get("as_of") != self.as_of:
            told.append(f"as of {manifest.get('as_of')}, now {self.as_of}")
        return told


def recipe_of(app: App, pipeline: Pipeline, web: Web, dates: Dates) -> Recipe:
    """The servers of the pipeline's tools must be running. Raises: UsageError if a stage is bound to no model."""
    steps = {name: app.step(stage, web, 0, False) for name, stage in pipeline.stages.items()}
    return Recipe({name: dict(step.recipe) for name, step in steps.items()}, dates.as_of)


@dataclass(frozen=True)
class Account:
    """The folder of a batch, beside the runs: its dates, and what it has spent."""

    folder: Path

    @classmethod
    def of(cls, home: Path, results: Path) -> Account:
        return cls(home / "batches" / key_of(str(results.resolve()))[:24])

    @property
    def budget(self) -> Path:
        """The budget's file. All commands of a batch spend of one cap."""
        return self.folder / "budget.db"

    def forget(self) -> None:
        """A results file begins anew, and so does its account."""
        for file in (self._dates, *self.folder.glob("budget.db*")):
            file.unlink(missing_ok=True)

    def dates(self, results: Results, web: Web, as_of: str | None, web_date: str | None) -> Dates:
        """As the user says; else as they were when the batch began. A live web is always that of today.

        Raises: UsageError for what is no date; StoreError if they can't be kept.
        """
        before = {**self._kept(), **results.dates}
        earlier = None if is_live(web.source) else before.get("web_date")
        dates = Dates.resolve(as_of or before.get("as_of"), web_date or earlier, web.date)
        self._keep(dates)
        return dates

    @property
    def _dates(self) -> Path:
        return self.folder / "batch.json"

    def _kept(self) -> dict[str, str]:
        try:
            kept = json.loads(self._dates.read_bytes())
        except (OSError, ValueError):
            return {}
        return {str(name): str(value) for name, value in kept.items()} if isinstance(kept, dict) else {}

    def _keep(self, dates: Dates) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._dates.write_text(json.dumps(dates._asdict()), encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{self.folder} can't be written: {error}; check the disk's space") from error


def explained(app: App, recipe: Recipe, results: Results, others: Mapping[str, int]) -> str:
    """What changed since the answers in a results file were made, as far as their runs are still there."""
    for other in others:
        try:
            manifest = app.runs.open(results.runs[other]).manifest()
        except (KeyError, UsageError, StoreError):
            continue
        if told := recipe.differences(manifest):
            return f"What differs: {'; '.join(told)}"
    return ""
