"""Where a model is served, and how it is to be talked to: what a tier resolves to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ..errors import AuthError
from .messages import Usage
from .wires import Dialect
from .wires.base import Json

ALLOWANCES = ("max_tokens", "max_completion_tokens", "max_output_tokens")
BYTES_PER_TOKEN = 3  # of a request as it is sent, for reserving


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


def authorization(endpoint: Endpoint) -> dict[str, str]:
    """The header that holds the key. Raises: AuthError for a key that no header can hold."""
    key = endpoint.key
    if not key:
        return {}
    if not key.isascii() or not key.isprintable() or " " in key:
        where = endpoint.key_name or "its key"
        raise AuthError(f"{endpoint.name}: {where} holds a space, a line break or the like. Set it to a valid key.")
    return {"x-api-key": key} if endpoint.wire == "anthropic" else {"authorization": f"Bearer {key}"}


def most(body: Json) -> Usage:
    """The most that a request with this body can take."""
    size = len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
    return Usage(input=-(-size // BYTES_PER_TOKEN), output=max(body.get(name, 0) for name in ALLOWANCES))
