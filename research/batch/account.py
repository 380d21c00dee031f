"""What all commands of one batch share, from its first to its last: its dates, and the budget that they spend of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from research.app import Dates
from research.errors import StoreError
from research.results import Results
from research.store import key_of
from research.web.base import is_live

if TYPE_CHECKING:
    from research.web.base import Web


@dataclass(frozen=True)
class Account:
    """The folder of a batch, beside the runs: its dates, and what it has spent."""

    folder: Path

    @classmethod
    def of(cls, home: Path, results: Path) -> Account:
        return cls(home / "batches" / key_of(str(results.resolve()))[:24])

    @property
    def budget(self) -> Path:
        """The budget's file. All commands of a batch spend of one cap."""
        return self.folder / "budget.db"

    def forget(self) -> None:
        """A results file begins anew, and so does its account."""
        for file in (self._dates, *self.folder.glob("budget.db*")):
            file.unlink(missing_ok=True)

    def dates(self, results: Results, web: Web, as_of: str | None, web_date: str | None) -> Dates:
        """As the user says; else as they were when the batch began. A live web is always that of today.

        Raises: UsageError for what is no date; StoreError if they can't be kept.
        """
        before = {**self._kept(), **results.dates}
        earlier = None if is_live(web.source) else before.get("web_date")
        dates = Dates.resolve(as_of or before.get("as_of"), web_date or earlier, web.date)
        self._keep(dates)
        return dates

    @property
    def _dates(self) -> Path:
        return self.folder / "batch.json"

    def _kept(self) -> dict[str, str]:
        try:
            kept = json.loads(self._dates.read_bytes())
        except (OSError, ValueError):
            return {}
        return {str(name): str(value) for name, value in kept.items()} if isinstance(kept, dict) else {}

    def _keep(self, dates: Dates) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._dates.write_text(json.dumps(dates._asdict()), encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{self.folder} can't be written: {error}; check the disk's space") from error
