"""`research models`: what each tier means, what it costs, and whom else one could ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import options

if TYPE_CHECKING:
    from ..tiers import Tiers


def models(cheap: options.Cheap = None, capable: options.Capable = None) -> None:
    """Tell what the tiers mean, what they cost, and which providers there are."""
    from ..output import clean
    from ..settings import Settings
    from ..tiers import Tiers
    from .columns import aligned, printed, room

    tiers = Tiers(Settings.read({"cheap": cheap, "capable": capable}))
    printed(map(clean, tier_lines(tiers)), 11)
    printed(map(clean, ["", *aligned(provider_rows(tiers), room())]))


def tier_lines(tiers: Tiers) -> list[str]:
    from ..pipeline import TIERS

    lines = []
    for tier in TIERS:
        choice = tiers.choice(tier)
        window = tiers.prices.window(choice.model)
        price = tiers.prices.told(choice.model)
        unit = " per million tokens" if price.startswith("$") else ""
        lines += [
            f"{tier:<8} {choice.model}",
            f"         because: {choice.origin}",
            f"         price: {price}{unit} ({tiers.prices.origin(choice.model)})",
        ]
        lines += [f"         takes: {window:,} tokens"] if window else []
    return lines


def provider_rows(tiers: Tiers) -> list[tuple[str, ...]]:
    """Each provider with the state of its key, its address and its models of the two tiers."""
    from ..llm.providers import PROVIDERS

    names = dict.fromkeys((*tiers.settings.providers, *PROVIDERS))
    return [("provider", "key", "cheap", "capable", "address"), *(provider_row(tiers, name) for name in names)]


def provider_row(tiers: Tiers, name: str) -> tuple[str, str, str, str, str]:
    from ..errors import UsageError
    from ..llm.providers import PROVIDERS, key_of, provider

    try:
        row = provider(name, tiers.settings, tiers.environment)
        address = row.base_url
    except UsageError:
        row = PROVIDERS[name]
        address = f"set {row.url_variable}"
    variable = key_of(row, tiers.environment)
    absent = "needs none" if row.local or not row.key_variables else f"{row.key_variables[0]} is not set"
    own = "as installed" if row.local else "as deployed"
    return name, f"{variable} is set" if variable else absent, row.cheap or own, row.capable or own, address
