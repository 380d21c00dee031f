"""How a batch goes on, on stderr: a live line in a terminal, a plain one every few seconds elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import words
from ..ledger import dollars
from ..output import clean, counted, on_one_line, span
from .columns import columns, hung

if TYPE_CHECKING:
    from ..batch import Batch, LocalRows
    from ..questions import Row

EVERY = 10.0  # seconds between plain lines, unless it is said otherwise
RECENT = 60.0  # seconds over which the rate is taken
TOLD = 20  # failed rows that are told one by one


@dataclass
class View:
    """Draws what `batch` and `rows` hold, from `begins` on."""

    stream: TextIO
    terminal: bool
    batch: Batch | None = None
    rows: LocalRows | None = None
    live: Any = None
    every: float = EVERY  # seconds between plain lines
    _ends: deque[float] = field(default_factory=deque)  # when the last rows ended
    _failures: int = 0

    @classmethod
    def on(cls, stream: TextIO) -> View:
        return cls(stream, stream.isatty())

    def line(self, text: str) -> None:
        """One line that stays."""
        if self.live is not None:
            self.live.console.print(clean(text), markup=False, highlight=False, soft_wrap=True)
        else:
            print(hung(clean(text), columns(self.stream) if self.terminal else None), file=self.stream, flush=True)

    def begins(self, batch: Batch, rows: LocalRows) -> None:
        self.batch, self.rows = batch, rows
        if self.terminal:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self.stream)
            self.live = Live(get_renderable=self._drawn, console=console, transient=True, refresh_per_second=4)
            self.live.start()

    def ends(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    async def goes_on(self) -> None:
        """Tells every few seconds, until it is cancelled."""
        while not self.terminal:
            await asyncio.sleep(self.every)
            self.line("  " + " · ".join(self.figures()))

    def tell(self, row: Row, record: Mapping[str, Any]) -> None:
        """A row has come to an end."""
        now = time.monotonic()
        self._ends.append(now)
        while len(self._ends) > 2 and self._ends[0] < now - RECENT:
            self._ends.popleft()
        if (error := record.get("error")) is not None:
            self._failures += 1
            if self._failures <= TOLD:
                self.line(f"  line {row.line}, {row.id}: {words(error['kind'])}: {on_one_line(error['message'])[:300]}")
            elif self._failures == TOLD + 1:
                self.line("  further rows that fail are not told here; their records hold why")

    @property
    def rate(self) -> float:
        """Rows a second, of late."""
        assert self.batch is not None
        now, began = time.monotonic(), self.batch.tally.began
        since = max(began, now - RECENT)
        recent = sum(at >= since for at in self._ends)
        return recent / (now - since) if now > since else 0.0

    def figures(self) -> list[str]:
        """Done, failed, rate, dollars so far and projected, time left, calls out and waiting, share reused."""
        assert self.batch is not None
        assert self.rows is not None
        tally, counts, gauge, rate = self.batch.tally, self.rows.counts, self.batch.gauge, self.rate
        told = [f"{counts.done + counts.failed:,} of {counts.total:,}", f"{counts.failed:,} failed"]
        told.append(f"{rate * 60:.3g} rows/min")
        ahead = max(0, self.rows.left - tally.ended)
        spent = dollars(tally.usd, tally.unknown)
        if tally.ended and tally.usd:
            projected = tally.usd + round(tally.usd / tally.ended * ahead)
            spent += f", {dollars(projected, tally.unknown)} projected"
        told.append(spent)
        if rate and ahead:
            told.append(f"{span(ahead / rate)} left")
        told.append(f"{gauge.sent} calls out, {gauge.waiting} waiting")
        told.append(f"{tally.reuse:.0%} reused")
        return told

    def _drawn(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        assert self.rows is not None
        counts = self.rows.counts
        table = Table.grid(expand=True)
        table.add_row(ProgressBar(max(1, counts.total), counts.done + counts.failed))
        table.add_row(Text(" · ".join(self.figures())))
        return table

    def summary(self, left_out: int) -> None:
        """The account at the end: rows, endings, errors, money, time."""
        assert self.batch is not None
        assert self.rows is not None
        tally, counts, stop = self.batch.tally, self.rows.counts, self.batch.stop
        bad = f" ({left_out:,} bad row{'s' if left_out > 1 else ''} left out)" if left_out else ""
        before = f", {self.rows.earlier:,} of them before" if self.rows.earlier else ""
        unstarted = f" + {counts.not_started:,} not started" if counts.not_started else ""
        lines = [
            f"{counts.done:,} done{before} + {counts.failed:,} failed{unstarted} = {counted(counts.total, 'row')}{bad}",
            *(f"  {told}" for told in (listed(counts.endings), listed(counts.errors)) if told),
        ]
        if tally.ended and tally.ended < counts.done + counts.failed:
            now = ", ".join(filter(None, (listed(tally.endings), listed(tally.errors))))
            lines.append(f"  by this command: {now}")
        took = span(time.monotonic() - tally.began)
        called = counted(tally.calls, "model call") if tally.calls else "no model was called"
        reused = f", {tally.reuse:.0%} of the work reused" if tally.endings else ""  # what failed has made little
        lines.append(
            f"Paid now {dollars(tally.usd, tally.unknown)} in {took} ({called}{reused}); "
            f"as if cold {dollars(tally.cold_usd)}"
        )
        if stop is not None:
            lines.append(f"It stopped early: {stop.reason}")
        for text in lines:
            self.line(text)


def listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {words(name)}" for name, count in counts.most_common() if count)
