"""What calls cost: the bundled price list of genai-prices, with the user's own prices above it.

Money is integer nano-dollars. Cached tokens cost what the provider asks for them, reasoning tokens are output.
What nobody knows the price of is None, never 0. The list is loaded (half a second) when the first price is
asked that needs it; built-in and local models never do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..settings import KEYED, Settings
from .providers import PROVIDERS, provider

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ModelInfo, Provider

    from .messages import Usage

NANO = 1_000_000_000
THEIR_NAMES = {"gemini": "google", "xai": "x-ai"}  # where the list calls a provider otherwise than we do
_VERIFIED = r"verified on (\d{4}-\d\d-\d\d)"


class Prices:
    """Prices under one user's settings. `environment` is what provider addresses are read from.

    With `batch`, they are those of the providers' batch interfaces: as the list has them, else half the price, as
    Anthropic and OpenAI document it.
    Raises: UsageError for a price of the user's that is half told.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str], batch: bool = False) -> None:
        self.batch = batch
        self._settings = settings
        self._environment = environment
        self._found: dict[str, tuple[Provider, ModelInfo] | None] = {}
        for name, prices in settings.prices.items():
            if missing := {"input", "output"} - {*prices}:
                place = settings.origin(f"prices.{name}.{next(iter(prices), '')}")
                raise UsageError(
                    f"{place}: [prices.{name}]: add {' and '.join(sorted(missing))}, in dollars per million tokens"
                )

    def price(self, model_name: str, usage: Usage) -> int | None:
        """Nano-dollars of one call of "provider:model", rounded up; None if nobody knows."""
        if model_name in self._settings.prices:
            return self._halved(self._own(self._settings.prices[model_name], usage))
        if self.free(model_name):
            return 0
        found = self._listed(model_name)
        if found is None:
            return None
        their_provider, info = found
        known = self.batch and _has_batch_price(info)
        context = {"processing": "batch"} if known else None
        cost = info.calc_price(_theirs(usage), their_provider, price_context=context).total_price
        return math.ceil(cost * NANO) if known else self._halved(math.ceil(cost * NANO))

    def _halved(self, full: int) -> int:
        return math.ceil(full / 2) if self.batch else full

    def free(self, model_name: str) -> bool:
        """Whether it is served by the program itself, or by the user's own machine."""
        name = model_name.partition(":")[0]
        if name == "builtin":
            return True
        try:
            return provider(name, self._settings, self._environment).local
        except UsageError:
            return False

    def search_fee(self, engine: str) -> int | None:
        """Nano-dollars of one search ("brave", "brave@host"), as the user's config tells; None for an engine with a
        key and no price."""
        engine = engine.partition("@")[0]
        told = self._settings.engines.get(engine, {}).get("usd_per_search")
        if told is not None:
            return math.ceil(_exact(told) * NANO)
        return None if engine in KEYED else 0

    def told(self, model_name: str) -> str:
        """Dollars per million tokens as people read them: "$0.1 in, $0.5 out"; "free", "unknown"."""
        from .messages import Usage

        one = Usage(input=1), Usage(output=1)
        nano = [self.price(model_name, usage) for usage in one]
        if self.free(model_name) and model_name not in self._settings.prices:
            return "free"
        return "unknown" if None in nano else "${:g} in, ${:g} out".format(*((each or 0) / 1000 for each in nano))

    def origin(self, model_name: str) -> str:
        """Where its price comes from."""
        if model_name in self._settings.prices:
            return self._settings.origin(f"prices.{model_name}.input")
        if self.free(model_name):
            return "it runs on this machine"
        return self.list_name if self._listed(model_name) else "no list has it"

    def window(self, model_name: str) -> int | None:
        """The tokens that the model takes at most, where the list knows."""
        found = None if self.free(model_name) else self._listed(model_name)
        return found[1].context_window if found else None

    @cached_property
    def list_name(self) -> str:
        """For manifests: the price list, its version, and the last day on which its makers verified a price."""
        import re

        import genai_prices

        providers = genai_prices.data_snapshot.get_snapshot().providers
        days = [
            day for one in providers for info in one.models for day in re.findall(_VERIFIED, info.price_comments or "")
        ]
        return f"genai-prices {genai_prices.__version__}" + (f", last verified {max(days)}" if days else "")

    @staticmethod
    def _own(prices: Mapping[str, float], usage: Usage) -> int:
        """At the user's prices; cached tokens cost what fresh ones do unless they say otherwise."""
        fresh = prices["input"]
        parts = (
            (usage.input, fresh),
            (usage.cache_read, prices.get("cache_read", fresh)),
            (usage.cache_write, prices.get("cache_write", fresh)),
            (usage.output, prices["output"]),
        )
        return math.ceil(sum(tokens * _exact(price) * 1_000 for tokens, price in parts))

    def _listed(self, model_name: str) -> tuple[Provider, ModelInfo] | None:
        if model_name not in self._found:
            self._found[model_name] = self._look_up(*model_name.partition(":")[::2])
        return self._found[model_name]

    def _look_up(self, name: str, model: str) -> tuple[Provider, ModelInfo] | None:
        """By the address that is asked, where the list knows it; else by the provider's name."""
        from genai_prices.data_snapshot import get_snapshot

        snapshot = get_snapshot()
        try:
            url: str | None = provider(name, self._settings, self._environment).base_url
        except UsageError:
            url = None
        for their_id, their_url in ((None, url), (THEIR_NAMES.get(name, name) if name in PROVIDERS else None, None)):
            try:
                if their_id or their_url:
                    return snapshot.find_provider_model(model, None, their_id, their_url)
            except LookupError:
                continue
        return None


def _has_batch_price(info: ModelInfo) -> bool:
    """Whether the list knows what the model costs in a batch today."""
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    known = (one for one in info.price_variants or () if one.when == {"processing": "batch"})
    return any(one.constraint is None or one.constraint.active(now) for one in known)


def _exact(number: float) -> Decimal:
    """0.1 as a tenth, not as the nearest binary fraction."""
    from decimal import Decimal

    return Decimal(str(number))


def _theirs(usage: Usage) -> object:
    """Our usage in the list's words: its input tokens include the cached ones."""
    from genai_prices import Usage as Theirs

    return Theirs(
        input_tokens=usage.input + usage.cache_read + usage.cache_write,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        output_tokens=usage.output,
    )
