"""How long a provider is not believed that says what can hardly be so: that it does not know its batch, that a batch
which it counts as done has no results."""

from __future__ import annotations

from collections.abc import Callable

DOUBT = 300.0  # seconds, at the least
LOOKS = 5  # times that it is said, at the least


class Doubt:
    """Whether it was said often enough, and for long enough. `clock` tells seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.until, self.times = clock, clock() + DOUBT, 0

    def settled(self) -> bool:
        """To be asked each time that it is said."""
        self.times += 1
        return self.times >= LOOKS and self.clock() >= self.until
