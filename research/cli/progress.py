"""What a run is doing, on stderr: a live view in a terminal, plain lines elsewhere, and the account at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from ..output import clean, counted
from ..web.base import is_live
from .columns import columns, hung

if TYPE_CHECKING:
    from ..app import App, Asked, Dates
    from ..pipeline import Pipeline
    from ..records import Answer
    from ..web.base import Web


WIDEST = 100  # columns of text
UNREAD = 10  # pages that are named, of those that were not read


@dataclass(eq=False, repr=False)
class Row:
    """One stage, as it goes on. Times are seconds since the run began."""

    running: set[Any] = field(default_factory=set)  # ranks of the items at work
    ahead: set[str] = field(default_factory=set)  # keys of what was made before it was asked for
    made: int = 0
    reused: int = 0
    dropped: int = 0
    began: float | None = None
    ended: float = 0.0

    def told(self, idle: str = "waiting") -> str:
        counts = {"running": len(self.running), "made": self.made, "reused": self.reused, "dropped": self.dropped}
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or idle

    @property
    def seconds(self) -> float:
        return 0.0 if self.began is None else max(0.0, self.ended - self.began)


@dataclass(eq=False, repr=False)
class Progress:
    """Listens to a journal and tells how it goes on. Nothing heavy is imported unless a terminal is watching
    and something has to be made."""

    stream: TextIO
    terminal: bool
    rows: dict[str, Row] = field(default_factory=dict)
    live: Any = None
    written: str = ""  # of the answer, as far as it is checked
    _dropped: dict[str, str] = field(default_factory=dict)  # reasons, with the stage while they are untold
    _began: float = field(default_factory=time.monotonic)

    @classmethod
    def on(cls, stream: TextIO) -> Progress:
        return cls(stream, stream.isatty())

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def line(self, text: str) -> None:
        print(hung(clean(text), columns(self.stream) if self.terminal else None), file=self.stream, flush=True)

    def notice(self, text: str) -> None:
        if self.live is not None:
            self.live.console.print(clean(text), markup=False, highlight=False)
        else:
            self.line(text)

    def begins(self, app: App, pipeline: Pipeline, web: Web, dates: Dates) -> None:
        """One line that says what is asked of whom."""
        self.rows = {name: Row() for name in pipeline.stages}
        tiers = sorted({stage.model for stage in pipeline.stages.values() if stage.model})
        bound = {tier: app.models[tier].name for tier in tiers if tier in app.models}
        if len(set(bound.values())) == 1:
            models = next(iter(bound.values()))
        else:
            models = ", ".join(f"{tier} {name}" for tier, name in bound.items())
        self.line(f"{pipeline.name} over {place(web)}, as of {dates.as_of}, with {models or 'no model'}")

    def listen(self, line: Mapping[str, Any]) -> None:
        if not self.terminal:
            self._tell(line)
        row = self.rows.get(line.get("stage", ""))
        if row is None:
            return
        event, item = line["event"], line.get("item")
        row.began = line["at"] if row.began is None else row.began
        row.ended = line["at"]
        if event == "making":
            row.running.add(item)
            self._open()
        else:
            row.running.discard(item)
        if event == "made" and item is None:
            row.ahead.add(line["key"])
        elif event in ("made", "reused") and item is not None:
            counted = "made" if line["key"] in row.ahead else event
            setattr(row, counted, getattr(row, counted) + 1)
        row.dropped += event == "dropped"

    def hear(self, answer: Answer | None) -> None:
        """The answer as far as it is written and checked; None where it begins anew."""
        from ..rendering import told

        self.written = "" if answer is None else clean(told(answer, {}))

    def _tell(self, line: Mapping[str, Any]) -> None:
        """A plain line for what a log's reader wants to know: each reason once, and not if the run ends with it."""
        if line["event"] == "dropped":
            self._dropped.setdefault(line["reason"], line["stage"])
            return
        for reason, stage in self._dropped.items():
            if stage and reason != line.get("error"):
                self.line(f"  {stage}: dropped: {reason}")
            self._dropped[reason] = ""
        if line["event"] == "made" and line["item"] is not None:
            self.line(f"  {line['stage']}: made in {line['receipt']['seconds']:.2f} s")

    def _open(self) -> None:
        if not self.terminal or self.live is not None:
            return
        from rich.console import Console
        from rich.live import Live

        self.live = Live(
            get_renderable=self._shown, console=Console(file=self.stream), transient=True, refresh_per_second=8
        )
        self.live.start()

    def _shown(self) -> Any:
        """The stages, and under them what there is of the answer: its end, where it is higher than the screen."""
        from rich.console import Group
        from rich.text import Text

        if not self.written:
            return self._table()
        console = self.live.console
        lines = Text(self.written).wrap(console, min(console.width, WIDEST))
        room = max(0, console.height - len(self.rows) - 2)
        return Group(self._table(), "", *lines[max(0, len(lines) - room) :])

    def _table(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        now = time.monotonic() - self._began
        for name, row in self.rows.items():
            style = "bold" if row.running else "" if row.began is not None else "dim"
            seconds = "" if row.began is None else f"{(now if row.running else row.ended) - row.began:.1f} s"
            table.add_row(Text(name, style), Text(row.told(), style), Text(seconds, "dim"))
        return table

    def summary(self, result: Asked) -> None:
        """What was found and read, how long each stage took, and what it cost."""
        for text in account(result, self.rows, columns(self.stream) if self.terminal else None):
            self.line(text)


def account(result: Asked, rows: Mapping[str, Row], width: int | None = None) -> list[str]:
    """The lines under an answer, for a terminal of that width."""
    from ..ledger import as_if_cold, dollars, paid, seconds_as_if_cold

    spent, cold = paid(result.lines), as_if_cold(result.lines)
    took = result.lines[-1]["at"]
    wide = max(map(len, rows), default=0)
    table = [f"  {name:<{wide}}  {row.seconds:6.2f} s  {row.told('nothing to do')}" for name, row in rows.items()]
    cached = f" ({spent.cached / spent.input:.0%} from cache)" if spent.cached else ""
    tokens = "no model was called"
    if spent.models:
        tokens = f"{counted(spent.models, 'model call')}, {spent.input:,} tokens in{cached}, {spent.output:,} out"
    if spent.estimated:
        tokens += f", {spent.estimated} of them at the most they can have cost: their usage was not told"
    if spent.waited >= 0.05:
        tokens += f"; calls waited {spent.waited:.1f} s in all for rate limits and further tries"
    return [
        "",
        *table,
        *found(result),
        f"Paid now {dollars(spent.usd, spent.unknown)} in {took:.2f} s ({tokens}); "
        f"as if cold {dollars(cold.usd, cold.unknown)} in {seconds_as_if_cold(result.lines):.2f} s.",
        *kept(result, width),
    ]


def kept(result: Asked, width: int | None) -> list[str]:
    """How to see the run again, where it is kept; no command is broken in two."""
    run = result.run
    if not run.folder.is_dir():
        return []
    commands = [f"research show {run.id}", f"research why {run.id}"]
    beside = " · ".join(commands)
    return [f"Run {run.id}", *(commands if width is not None and len(beside) > width else [beside])]


def found(result: Asked) -> list[str]:
    """What became of the search, which pages were not read, and which engines did not answer."""
    from ..tally import tally

    counted = tally(result.lines, result.answer)
    unread = [f"Not read: {told}" for told in counted.unread]
    more = [f"Not read: {len(unread) - UNREAD} more"] if len(unread) > UNREAD else []
    return [f"{counted}.", *unread[:UNREAD], *more, *(f"{told[0].upper()}{told[1:]}" for told in counted.skipped)]


def place(web: Web) -> str:
    """The web as it is called where a run begins."""
    if is_live(web.source):
        return f"the live web by {web.name}"
    if web.source.startswith("world "):
        return f"a recording of {web.name}"
    return web.name if web.name.startswith("local:") else f"the {web.name}"
