"""What recorded tokens would have cost with other models: an estimate, since another model writes other texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import UsageError
from ..llm.messages import Usage
from ..pipeline import TIERS
from .gathering import Took, Trial

Price = Callable[[str, Usage], int | None]


def parse(text: str) -> dict[str, str]:
    """From "cheap=provider:model,capable=provider:model".

    Raises: UsageError for anything else.
    """
    chosen: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        tier, _, model = (piece.strip() for piece in part.partition("="))
        if tier not in TIERS or ":" not in model:
            raise UsageError(f"--price-as {part!r}: write cheap=PROVIDER:MODEL,capable=PROVIDER:MODEL, or one of them")
        chosen[tier] = model
    if not chosen:
        raise UsageError("--price-as is empty: write cheap=PROVIDER:MODEL,capable=PROVIDER:MODEL, or one of them")
    return chosen


def repriced(trials: Iterable[Trial], models: Mapping[str, str], price: Price) -> list[Trial]:
    """The trials with their tokens at the prices of `models` (tier → "provider:model"); what was paid stays.

    Raises: UsageError for a model without a known price.
    """
    for model in models.values():
        if price(model, Usage(input=1_000, output=1_000)) is None:
            raise UsageError(f"--price-as: the price of {model} is unknown; set it in the user's config, [prices]")
    return [trial if trial.took is None else replace(trial, took=_took(trial.took, models, price)) for trial in trials]


def _took(took: Took, models: Mapping[str, str], price: Price) -> Took:
    parts = tuple(replace(part, usd=_usd(part.calls, models, price)) for part in took.parts)
    known = [part.usd for part in parts if part.usd is not None]
    tiers = {tier: replace(tokens, model=models.get(tier, tokens.model)) for tier, tokens in took.tiers.items()}
    usd = sum(known) if len(known) == len(parts) else None
    return replace(took, usd=usd, least=sum(known), parts=parts, tiers=tiers)


def _usd(calls: Iterable[Mapping[str, Any]], models: Mapping[str, str], price: Price) -> int | None:
    total = 0
    for call in calls:
        usd = call.get("usd", 0)
        if call["what"] == "model" and call.get("tier") in models:
            usage = Usage(*(call.get(name, 0) for name in ("input", "cache_read", "cache_write", "output")))
            usd = price(models[call["tier"]], usage)
        if usd is None:
            return None
        total += usd
    return total
