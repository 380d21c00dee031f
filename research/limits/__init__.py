"""What may be spent, and how fast a provider may be asked. Numbers, SQLite and clocks; no HTTP, no models."""

from __future__ import annotations

from research.limits.budget import Budget, Caps, Hold, Purse
from research.limits.rates import Lane, Rates, Slot

__all__ = ["Budget", "Caps", "Hold", "Lane", "Purse", "Rates", "Slot"]
