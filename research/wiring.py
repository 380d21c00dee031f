"""Whether the stages of a pipeline fit together: names, types and order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from .kinds import INPUTS, attribute, element, fits, shown
from .pipeline import Source, Stage
from .records import Answer
from .values import near

Wrong = Callable[[str, str, str, str], None]  # takes table, key, what, remedy


@dataclass(eq=False, repr=False)
class Wiring:
    """The stages of one file. Unless they are `whole`, a name that nobody gives may be a broken stage's."""

    stages: dict[str, Stage]
    answer: Any
    whole: bool
    wrong: Wrong
    given: dict[str, Any] = field(default_factory=lambda: dict(INPUTS))
    sound: bool = True

    def checked(self) -> dict[str, Stage]:
        """The stages that lead to the answer, each after what it takes; as they are where something is wrong."""
        for stage in self.stages.values():
            if stage.gives in self.given and stage.gives not in INPUTS:
                self.tell(stage, "gives", f"another stage gives {stage.gives!r} too", "Choose another name")
            self.given[stage.gives] = stage.type
        for stage in self.stages.values():
            self.check_types(stage)
        self.check_answer()
        return self.ordered() if self.whole and self.sound else self.stages

    def tell(self, stage: Stage | None, key: str, what: str, remedy: str) -> None:
        self.sound = False
        self.wrong("" if stage is None else f"stage.{stage.name}", key, what, remedy)

    def check_answer(self) -> None:
        answer, names = self.answer, [stage.gives for stage in self.stages.values()]
        if not isinstance(answer, str) or (self.whole and answer not in self.given):
            hint = near(answer, names) if isinstance(answer, str) else ""
            remedy = f'Write answer = "{(names or ["answer"])[-1]}"{hint}'
            self.tell(None, "answer", "it must name the result that is the answer", remedy)
        elif self.whole and not fits(self.given[answer], Answer):
            what = f"{answer!r} is a {shown(self.given[answer])}, not an Answer"
            self.tell(None, "answer", what, "Name a result of synthesize")

    def check_types(self, stage: Stage) -> None:
        known = {**stage.kind.takes, **stage.kind.optional}
        for name, source in stage.takes.items():
            kind = self.type_of(stage, "takes", source)
            if kind is not None and not fits(kind, known.get(name, Any)):
                what = f"{source} is a {shown(kind)}; {name!r} must be a {shown(known[name])}"
                self.tell(stage, "takes", what, "Take another result")
        if stage.each is not None:
            self.check_items(stage, "each", stage.each, known.get(stage.item, Any))
        if stage.prefetch is not None:
            self.check_items(stage, "prefetch", stage.prefetch.source, known.get(stage.item, Any))

    def check_items(self, stage: Stage, key: str, listed: Source, wanted: Any) -> None:
        kind = self.type_of(stage, key, listed)
        if kind is None:
            return
        inner = kind if key == "prefetch" and kind is str else element(kind)
        if inner is None:
            self.tell(stage, key, f"{listed} is a {shown(kind)}, no list to fan out over", "Name a list")
        elif not fits(inner, wanted):
            what = f"{listed} holds {shown(inner)}; {stage.item!r} must be {shown(wanted)}"
            self.tell(stage, key, what, "Fan out over another list")

    def type_of(self, stage: Stage, key: str, source: Source) -> Any | None:
        if source.name not in self.given:
            if self.whole:
                remedy = f"There are {', '.join(self.given)}{near(source.name, self.given)}"
                self.tell(stage, key, f"nobody gives {source.name!r}", remedy)
            return None
        kind = attribute(self.given[source.name], source.path)
        if kind is None:
            record: Any = element(self.given[source.name]) or self.given[source.name]
            fields = list(record.model_fields) if isinstance(record, type) and issubclass(record, BaseModel) else []
            remedy = f"It has {', '.join(fields)}{near(source.path[0], fields)}" if fields else "Take it whole"
            self.tell(stage, key, f"{source}: {shown(record)} has no such attribute", remedy)
        return kind

    def ordered(self) -> dict[str, Stage]:
        by_result = {stage.gives: stage for stage in self.stages.values()}
        ordered: dict[str, Stage] = {}

        def visit(result: str, path: tuple[str, ...]) -> None:
            stage = by_result.get(result)
            if stage is None or stage.name in ordered:
                return
            if stage.name in path:
                circle = " → ".join((*path[path.index(stage.name) :], stage.name))
                self.tell(stage, "takes", f"it waits for itself: {circle}", "Break the circle")
                return
            for source in stage.sources:
                visit(source.name, (*path, stage.name))
            ordered[stage.name] = stage

        visit(self.answer, ())
        if self.sound:
            for name, stage in self.stages.items():
                if name not in ordered:
                    self.tell(stage, "gives", f"nobody takes {stage.gives!r}", "Take it somewhere, or remove the stage")
        return ordered
