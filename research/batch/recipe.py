"""What shapes the answers of a batch, and what has changed since some of them were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from research.app import App, Dates
from research.errors import StoreError, UsageError
from research.results import Results
from research.store import key_of

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
