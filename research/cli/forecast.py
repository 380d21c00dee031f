"""`research ask --dry-run`: what each stage is expected to take, and what it takes at worst."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..bounds import Range
    from ..forecast import Row
    from ..pipeline import Pipeline
    from ..tiers import Tiers

UNBOUNDED = "unbounded"


def tell(pipeline: Pipeline, question: str, tiers: Tiers, recorded: bool, json: bool) -> None:
    """Print it. `recorded`: no live web is asked. Nothing is sent, and no key is needed."""
    from ..forecast import Terms, forecast, total

    models = {name: tiers.named(name) for stage in pipeline.stages.values() for name in stage.models}
    engines = fees(tiers, recorded)
    rows = forecast(pipeline, question, Terms(models, tiers.prices.price, tiers.thinking, engines))
    if json:
        import json as encoder

        print(encoder.dumps({"stages": [plain(row) for row in rows], "total": plain_total(total(rows))}, indent=1))
        return
    from .columns import printed, room

    printed(table(rows, total(rows), room()))


def fees(tiers: Tiers, recorded: bool) -> dict[str, int | None]:
    """Whom a search asks, each with its fee."""
    from ..webs import KEYLESS

    if recorded:
        return {"recorded pages": 0}
    names = [name.strip() for name in (tiers.settings.search or KEYLESS).split(",") if name.strip()]
    return {name: tiers.prices.search_fee(name) for name in names}


def table(rows: list[Row], sums: dict[str, Any], width: int | None = None) -> list[str]:
    """Aligned columns; each figure as "expected … worst"."""
    from ..ledger import dollars
    from .columns import aligned

    cells = [("stage", "asks", "calls", "tokens in", "tokens out", "dollars")]
    cells += [
        (
            row.stage,
            row.asks,
            counted(row.calls),
            counted(row.input),
            counted(row.output),
            money(row.usd, row.worst_usd),
        )
        for row in rows
    ]
    lines = [*aligned(cells, width)]
    unknown = sums["unknown"]
    worst = UNBOUNDED if sums["worst_usd"] == math.inf else dollars(math.ceil(sums["worst_usd"]), unknown)
    lines += [
        "",
        f"Expected {dollars(math.ceil(sums['usd']), unknown)} for {sums['calls'].expected:,.0f} model calls; "
        f"at worst {worst} for {figure(sums['calls'].most)}. What the store holds already costs nothing.",
        "Nothing was sent, and nothing spent.",
    ]
    if unknown:
        lines.append('A price is unknown: set it in the user\'s config, [prices."PROVIDER:MODEL"] input, output.')
    return lines


def counted(numbers: Range) -> str:
    if not numbers.most:
        return "–"
    return f"{math.ceil(numbers.expected):,} … {figure(numbers.most)}"


def figure(number: float) -> str:
    return UNBOUNDED if number == math.inf else f"{math.ceil(number):,}"


def money(expected: float | None, worst: float | None) -> str:
    from ..ledger import dollars

    if expected is None or worst is None:
        return "unknown"
    if worst == math.inf:
        return UNBOUNDED
    return dollars(math.ceil(expected)) + (f" … {dollars(math.ceil(worst))}" if worst else "")


def plain(row: Row) -> dict[str, Any]:
    """As JSON data: null for a price that is not known, and for what nothing bounds."""
    return {
        "stage": row.stage,
        "asks": row.asks,
        "calls": plain_range(row.calls),
        "input": plain_range(row.input),
        "output": plain_range(row.output),
        "usd": {"expected": usd(row.usd), "worst": usd(row.worst_usd)},
    }


def plain_total(sums: dict[str, Any]) -> dict[str, Any]:
    return {
        "calls": plain_range(sums["calls"]),
        "tokens": plain_range(sums["tokens"]),
        "usd": {"expected": usd(sums["usd"]), "worst": usd(sums["worst_usd"])},
        "unknown_prices": sums["unknown"],
    }


def plain_range(numbers: Range) -> dict[str, int | None]:
    most = None if numbers.most == math.inf else math.ceil(numbers.most)
    return {"expected": math.ceil(numbers.expected), "worst": most}


def usd(nano: float | None) -> float | None:
    return None if nano is None or nano == math.inf else math.ceil(nano) / 1e9
