"""Questions × pipelines × repeats as rows of a batch: interleaved, so that no side has the better hour."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from research.batch import LocalRows, Recipe, Selection
from research.questions import Row
from research.results import DONE
from research.results.file import question_digest

if TYPE_CHECKING:
    from research.app import Asked
    from research.journal import Listener
    from research.pipeline import Pipeline
    from research.records import Question

    Ask = Callable[[Question, int, tuple[Listener, ...]], Awaitable[Asked]]


@dataclass(frozen=True)
class Side:
    """One pipeline of a comparison. `ask` runs a question through it as the sample of that number."""

    pipeline: Pipeline
    recipe: Recipe
    ask: Ask

    @property
    def name(self) -> str:
        return self.pipeline.name


@dataclass(frozen=True)
class Turn(Row):
    """A question, for one side, once. `of` is the question's id in its file."""

    of: str = ""
    side: str = ""
    sample: int = 0


@dataclass
class Schedule(Selection):
    """The turns of all sides: question by question, repeat by repeat, each beginning with another side."""

    sides: Sequence[Side] = ()
    repeats: int = 1
    _recipes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._recipes = {side.name: side.recipe.digest for side in self.sides}

    def rows(self) -> Iterator[Turn]:
        position = 0
        for place, row in enumerate(super().rows()):
            for sample in range(self.repeats):
                for side in rotated(self.sides, place + sample):
                    position += 1
                    yield turn(row, side.name, sample, position)

    def is_done(self, row: Row) -> bool:
        assert isinstance(row, Turn)
        past = self.past.get(row.id)
        if past is None or past.state != DONE or past.question != question_digest(row.question.text):
            return False
        return past.recipe == self._recipes[row.side]


@dataclass
class Turns(LocalRows):
    """Hands out turns, and writes into each record whose turn it was."""

    recipes: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)  # about the comparison

    async def finish(self, row: Row, record: Mapping[str, Any]) -> None:
        assert isinstance(row, Turn)
        whose: dict[str, Any] = {
            "of": row.of,
            "pipeline": row.side,
            "sample": row.sample,
            "recipe": self.recipes[row.side],
        }
        whose["notes"] = dict(self.notes)
        await super().finish(row, {**record, **whose})


def rotated(sides: Sequence[Side], by: int) -> Iterator[Side]:
    return (sides[(place + by) % len(sides)] for place in range(len(sides)))


def turn(row: Row, side: str, sample: int, position: int) -> Turn:
    """
    >>> from research.records import Question
    >>> turn(Row(1, 1, "q1", Question(text="Why?"), columns={}), "fixed", 2, 9).id
    'q1 · fixed · 2'
    """
    given = {**vars(row), "id": f"{row.id} · {side} · {sample}", "position": position}
    return Turn(**given, of=row.id, side=side, sample=sample)


def distinct(pipelines: Iterable[Pipeline]) -> list[Pipeline]:
    """With a name each: of two files of one name, the second is called by a number too."""
    named: dict[str, Pipeline] = {}
    for pipeline in pipelines:
        name, number = pipeline.name, 1
        while name in named:
            number += 1
            name = f"{pipeline.name} ({number})"
        named[name] = pipeline._replace(name=name)
    return [*named.values()]
