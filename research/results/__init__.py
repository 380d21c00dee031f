"""The results of a batch: one JSON record a row, appended as rows finish, taken up again by the next command."""

from __future__ import annotations

from research.results.file import Past, Results
from research.results.record import DONE, FAILED, NOT_STARTED, answered, failed, not_started
from research.results.sheet import write_sheet

__all__ = [
    "DONE",
    "FAILED",
    "NOT_STARTED",
    "Past",
    "Results",
    "answered",
    "failed",
    "not_started",
    "write_sheet",
]
