"""Results as a table for spreadsheets, which compute nothing of what is in it."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from research.errors import StoreError
from research.output import csv_cell
from research.results.file import Results

BEFORE = ("id", "question")


def write_sheet(results: Results, path: Path) -> None:
    """The newest record of each row as a line of CSV, in the order of the questions.

    In UTF-8 with the mark that spreadsheets look for.

    Raises: StoreError if it can't be written; what was there before is intact.
    """
    carried = list(dict.fromkeys(name for record in results.records() for name in record["columns"]))
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(draft, "w", encoding="utf-8-sig", newline="") as file:
            writer = csv.writer(file)
            names = [f"column {name}" if name in (*BEFORE, *_after({})) else name for name in carried]
            writer.writerow(map(csv_cell, (*BEFORE, *names, *_after({}))))
            for record in results.records(in_order=True):
                own = [_plain(record["columns"].get(name)) for name in carried]
                writer.writerow(map(csv_cell, (*(record[name] for name in BEFORE), *own, *_after(record).values())))
        draft.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: the table can't be written: {error.strerror or error}; choose another") from error


def _after(record: Mapping[str, Any]) -> dict[str, Any]:
    """The cells behind the question's own columns, by their heads; empty where the record doesn't tell."""
    error = record.get("error") or {}
    return {
        **{name: record.get(name) or "" for name in ("state", "ending", "reason", "answer")},
        "sources": " ".join(dict.fromkeys(citation["url"] for citation in record.get("citations", ()))),
        "error": error.get("kind", ""),
        "message": error.get("message", ""),
        **{f"{ledger}_usd": record.get(ledger, {}).get("usd", "") for ledger in ("paid", "as_if_cold")},
        **{name: _plain(record.get(name)) for name in ("seconds", "seconds_as_if_cold", "run")},
    }


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return "" if value is None else value
    return json.dumps(value, ensure_ascii=False)
