"""A report, made of what was gathered and written in the format that its file's name tells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from ..errors import StoreError
from . import Report, Setup
from .figures import Figures
from .gathering import Gathered
from .pricing import Price, repriced
from .verdicts import compared


def made(gathered: Gathered, price: Price, priced: Mapping[str, str], today: str = "") -> Report:
    """`priced` are the models at whose prices recorded tokens are taken, by tier.

    Raises: UsageError for a model without a known price.
    """
    trials = repriced(gathered.trials, priced, price) if priced else gathered.trials
    setup = Setup(gathered.manifests, gathered.notes)
    if gathered.verdicts:
        setup.judge = {
            "model": gathered.verdicts[0]["judge"]["model"],
            "usd": sum(verdict["judge"]["usd"] or 0 for verdict in gathered.verdicts),
            "verdicts": len(gathered.verdicts),
            "swayed": sum(verdict["judge"]["swayed"] for verdict in gathered.verdicts),
        }
    day = today or datetime.now(UTC).date().isoformat()
    return Report(Figures.of(trials, compared(gathered.verdicts)), day, setup, priced)


def written(report: Report, out: Path) -> None:
    """Raises: StoreError if it can't be written; what was there before is intact."""
    text = rendered(report, out.suffix.lower())
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")  # of a path: as JSON escapes it
        draft.replace(out)
    except OSError as error:
        raise StoreError(f"{out}: the report can't be written: {error.strerror or error}; choose another") from error


def rendered(report: Report, suffix: str) -> str:
    if suffix == ".html":
        from .page import page

        return page(report)
    if suffix == ".md":
        from .text import markdown

        return markdown(report)
    from .tables import as_csv, as_json

    return as_csv(report) if suffix == ".csv" else as_json(report)
