"""Comparisons in one process: questions with scripted models and the small web, through the parts that the command uses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research.app import App
from research.batch import Batch, Choice, Tally, recipe_of
from research.compare import Schedule, Side, Turns
from research.llm.messages import Request
from research.llm.scripted import ScriptedModel
from research.pipeline import Pipeline
from research.questions import Questions
from research.report import Gathered, gather
from research.results import Results
from research.settings import Settings
from tests.shipped import DATES, SmallWeb, reply


@dataclass
class Comparison:
    """Runs what is left of its questions, as one command would; `calls` counts what that asked of models and web."""

    folder: Path
    pipelines: Sequence[Pipeline]
    questions: Sequence[dict[str, Any]]
    repeats: int = 1
    cheap: Callable[[Request], Any] = reply
    capable: Callable[[Request], Any] = reply
    calls: Counter[str] = field(default_factory=Counter)
    asked: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.folder / "report.runs.jsonl"

    async def run(self, force: bool = False) -> Tally:
        path = self.folder / "questions.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in self.questions), encoding="utf-8")
        web = SmallWeb()
        models = {
            "cheap": ScriptedModel(self.cheap, "scripted:cheap"),
            "capable": ScriptedModel(self.capable, "scripted:capable"),
        }
        app = App(
            Settings(self.folder / "home"),
            models,
            price=lambda name, usage: usage.input * (9 if "capable" in name else 1),
        )
        results = Results(self.file)
        try:
            turns = self._turns(app, web, results)
            turns.survey()
            sides = {side.name: side for side in turns.selection.sides}  # type: ignore[attr-defined]

            async def ask(row: Any, listen: Any) -> Any:
                self.asked.append((row.of, row.side, row.sample))
                return await sides[row.side].ask(row.question, row.sample, (listen,))

            return await Batch(turns, ask, {"pipeline": "", "recipe": "", **DATES._asdict()}, most=1).run()
        finally:
            asked = [request.purpose for model in models.values() for request in model.requests]
            self.calls = Counter(asked) + web.calls
            results.close()
            app.close()

    def _turns(self, app: App, web: SmallWeb, results: Results) -> Turns:
        sides = [self._side(app, web, pipeline) for pipeline in self.pipelines]
        questions = Questions(self.folder / "questions.jsonl")
        schedule = Schedule(questions, Choice(), results.past, sides=sides, repeats=self.repeats)
        return Turns(
            schedule,
            results,
            recipes={side.name: side.recipe.digest for side in sides},
            notes={"command": "research compare"},
        )

    def _side(self, app: App, web: SmallWeb, pipeline: Pipeline) -> Side:
        async def ask(question: Any, sample: int, listeners: Any) -> Any:
            return await app.ask(question, pipeline, web, DATES, sample=sample, listeners=listeners)

        return Side(pipeline, recipe_of(app, pipeline, web, DATES), ask)

    def gathered(self) -> Gathered:
        from research.runs import Runs

        return gather([str(self.file)], Runs(self.folder / "home" / "runs"))


def towers(count: int, right: str = "161 metres") -> list[dict[str, Any]]:
    return [
        {"id": f"q{n}", "question": f"How tall is tower {n} of Ulm?", "answers": [right], "class": "single fact"}
        for n in range(count)
    ]
