"""The conversation so far: it only ever grows at its end, until its older part is told shorter.

Between two shortenings every request begins with the whole of the one before, so that a
provider's prompt cache serves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...llm.messages import Message

BYTES_PER_TOKEN = 3  # an estimate on the safe side; never what the provider reports, so that it is the same each time
LONGEST_RESULT = 3_000  # characters of one result, as it is told to whoever shortens the history


@dataclass(frozen=True)
class Exchange:
    """One turn of the model with what it was told to it: calls and their results are never parted."""

    turn: Message
    told: tuple[Message, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        return (self.turn, *self.told)


@dataclass
class History:
    """`first` asks the question; `notes` stand for exchanges that are told no longer."""

    system: str
    first: Message
    exchanges: list[Exchange] = field(default_factory=list)
    notes: str = ""

    @property
    def messages(self) -> tuple[Message, ...]:
        text = f"{self.first.text}\n\n{self.notes}" if self.notes else self.first.text
        return (replace(self.first, text=text), *(one for exchange in self.exchanges for one in exchange.messages))

    @property
    def tokens(self) -> int:
        """An estimate for the whole."""
        size = len(self.system.encode()) + sum(
            len(one.text.encode()) + len(one.replay) + sum(len(call.arguments.encode()) for call in one.calls)
            for one in self.messages
        )
        return size // BYTES_PER_TOKEN

    def add(self, turn: Message, told: Sequence[Message]) -> None:
        self.exchanges.append(Exchange(turn, tuple(told)))

    def older(self, keep: int) -> str:
        """What is to be shortened, as text: the notes so far, and all exchanges but the newest `keep`."""
        parts = [self.notes] if self.notes else []
        for exchange in self.exchanges[: len(self.exchanges) - keep]:
            calls = [f"→ {call.name} {call.arguments}" for call in exchange.turn.calls]
            told = [one.text[:LONGEST_RESULT] for one in exchange.told]
            parts.append("\n".join([*filter(None, [exchange.turn.text]), *calls, *told]))
        return "\n\n".join(parts)

    def shorten(self, notes: str, keep: int) -> None:
        self.notes = notes
        self.exchanges = self.exchanges[len(self.exchanges) - keep :]
