"""Where a model is served, and how it is to be talked to: what a tier resolves to."""

from __future__ import annotations

from dataclasses import dataclass, field

from .wires import Dialect


@dataclass(frozen=True)
class Limits:
    """What a provider allows; None where nothing is known but what its replies tell."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    at_once: int | None = None


@dataclass(frozen=True)
class Endpoint:
    """One model of one provider. `name` is `provider:model`, and part of every key; the rest is in none."""

    provider: str
    model: str
    wire: str  # of wires.WIRES
    base_url: str
    dialect: Dialect = Dialect()
    key: str = field(default="", repr=False)
    key_name: str = ""  # the variable or setting that the key came from, for messages
    local: bool = False  # served by the user's own machine: costs nothing, and its addresses are allowed
    limits: Limits = Limits()
    thinking: int = 0  # tokens that it may think even where a request allows none, since it thinks unasked

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"
