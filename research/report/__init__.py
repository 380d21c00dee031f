"""From runs to a report: figures, what they say, and how they are shown. Nothing is run here.

gathering    results files and run folders → trials
quality      one answer → scores
statistics   paired differences, intervals, exact tests
figures      trials → a row for each pipeline, and for each comparison
pricing      recorded tokens at other prices
units        figures as people read them
wording      the summary in words
charts, page, text, tables   HTML with pictures; Markdown; JSON and CSV
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .figures import Difference, Figures
from .gathering import Gathered, Trial, gather

__all__ = ["Difference", "Figures", "Gathered", "Report", "Trial", "gather"]


@dataclass
class Report:
    """`made` is the day (YYYY-MM-DD, UTC); `setup` what was run; `price_as` the models whose prices were taken."""

    figures: Figures
    made: str
    setup: Setup
    price_as: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Setup:
    """What is needed to repeat it. `notes` are what the comparison wrote down: its command, prices, width."""

    manifests: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    judge: Mapping[str, Any] = field(default_factory=dict)
