"""The rows of a batch on one machine: taken from a question file, their results in a results file."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research.errors import UsageError
from research.questions import Questions, Row
from research.results import DONE, FAILED, NOT_STARTED, Results
from research.results.file import Past, how, question_digest
from research.store import digest


@dataclass(frozen=True)
class Choice:
    """Which rows: the first `limit`, a `sample` drawn by `seed`, those that `failed`; with `force` also what is
    answered by another recipe."""

    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    failed: bool = False
    force: bool = False


@dataclass
class Counts:
    """Rows: of `total`, so many are done and so many failed; the others have not been started.

    `endings` are those of the done ones, `errors` the kinds of the failed ones, whichever command ran them.
    """

    total: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> int:
        return self.endings.total()

    @property
    def failed(self) -> int:
        return self.errors.total()

    @property
    def not_started(self) -> int:
        return self.total - self.done - self.failed


@dataclass
class Selection:
    """The wanted rows of a question file, given what is there of them. Without a `recipe` any answer counts.

    `count`, where it is known already, is how many rows the file has.
    """

    questions: Questions
    choice: Choice
    past: Mapping[str, Past]
    recipe: str | None = None
    count: int | None = None
    _sample: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.choice.sample is not None:
            self._sample = frozenset(_sample((row.id for row in self.questions.rows()), self.choice))

    def rows(self) -> Iterator[Row]:
        """Those that the choice names, done or not."""
        count = 0
        for row in self.questions.rows():
            if self._sample is None or row.id in self._sample:
                count += 1
                if self.choice.limit is not None and count > self.choice.limit:
                    return
                yield row

    def left(self) -> Iterator[Row]:
        """Those of them that are to be run."""
        return (row for row in self.rows() if self.is_wanted(row))

    def untouched(self) -> int | None:
        """How many rows there are, where none has a record and nobody need look at them to know."""
        if self.count is None or self.past or self.choice.failed:
            return None
        caps = (self.choice.limit, self.choice.sample)
        return min([self.count, *(cap for cap in caps if cap is not None)])

    def is_done(self, row: Row) -> bool:
        past = self.past.get(row.id)
        if past is None or past.state != DONE or past.question != question_digest(row.question.text):
            return False
        return self.recipe is None or past.recipe == self.recipe

    def is_wanted(self, row: Row) -> bool:
        if self.choice.failed:
            past = self.past.get(row.id)
            return past is not None and past.state == FAILED
        return not self.is_done(row)


@dataclass
class LocalRows:
    """The rows of one question file, in its order, without those that are done.

    `survey` comes first. With `ordered`, results are written in the order of the rows: each waits for those before.
    """

    selection: Selection
    results: Results
    ordered: bool = False
    counts: Counts = field(default_factory=Counts)
    earlier: int = 0  # rows that were done before
    left: int = 0  # rows that are to be run
    strangers: int = 0  # records of rows that are not among the selected
    _left: Iterator[Row] = field(default_factory=lambda: iter(()))
    _taken: int = 0
    _places: dict[str, int] = field(default_factory=dict)  # id → its place among those taken
    _held: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    _written: int = 0

    def survey(self) -> None:
        """Count what there is and what is left.

        Raises: OtherRecipeError for answers by another recipe, unless they may be replaced.
        """
        selection, past = self.selection, self.selection.past
        self._left = selection.left()
        if (total := selection.untouched()) is not None:
            self.counts.total = self.left = total
            return
        self.strangers = len(past)
        others: Counter[str] = Counter()
        for row in selection.rows():
            was = past.get(row.id)
            self.counts.total += 1
            self.strangers -= was is not None
            self.left += selection.is_wanted(row)
            if selection.is_done(row):
                self.counts.endings[past[row.id].how] += 1
            elif was is not None and was.state == FAILED:
                self.counts.errors[was.how] += 1
            elif was is not None and was.state == DONE and was.recipe != selection.recipe:
                others[was.recipe] += 1
        if others and not selection.choice.force:
            raise OtherRecipeError(self.results.path, others)
        self.earlier = self.counts.done

    async def take(self) -> Row | None:
        """The next row to be run; None when all are taken."""
        row = next(self._left, None)
        if row is not None:
            self._places[row.id] = self._taken
            self._taken += 1
        return row

    async def finish(self, row: Row, record: Mapping[str, Any]) -> None:
        """Keep what became of a row that was taken.

        Raises: StoreError if it can't be kept.
        """
        place = self._places.pop(row.id)
        if record["state"] == NOT_STARTED and row.id in self.results.past:
            return  # what is there tells more
        self._count(row, str(record["state"]), how(record))
        if not self.ordered:
            self.results.append(record)
            return
        heapq.heappush(self._held, (place, dict(record)))
        while self._held and self._held[0][0] == self._written:
            self.results.append(heapq.heappop(self._held)[1])
            self._written += 1

    def flush(self) -> None:
        """Write what still waits for rows before it, which will not come."""
        while self._held:
            self.results.append(heapq.heappop(self._held)[1])

    def _count(self, row: Row, state: str, ended: str) -> None:
        past = self.selection.past.get(row.id)
        if past is not None and past.state == FAILED:
            self.counts.errors[past.how] -= 1
        self.counts.endings[ended] += state == DONE
        self.counts.errors[ended] += state == FAILED


class OtherRecipeError(UsageError):
    """Rows are answered by other recipes: `others` tells how many by each."""

    def __init__(self, path: Path, others: Mapping[str, int]) -> None:
        self.others = dict(others)
        rows = sum(others.values())
        super().__init__(
            f"{path}: {rows:,} row{'s are' if rows > 1 else ' is'} answered by another recipe; choose another --out, "
            "or add --force to run them again and replace them"
        )


def _sample(ids: Iterator[str], choice: Choice) -> list[str]:
    """The ids whose digests under the seed are lowest: the same for the same seed, whatever the order of the rows."""
    assert choice.sample is not None
    return heapq.nsmallest(choice.sample, ids, key=lambda one: digest(f"{choice.seed} {one}"))
