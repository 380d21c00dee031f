"""Run folders: one for each run, always kept.

    runs/20250301-101530.123-k7q2/
      manifest.json    question, dates, source, models, versions; the pipeline file and its prompts as they were run
      journal.jsonl    what happened (journal.py)
      answer.json      the answer with all its citations, quotes and their surroundings
      answer.md        the same to read

Ids sort by time, in UTC, and are checked before they touch a path.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from . import journal
from .errors import StoreError, UsageError
from .output import escaped_json
from .records import Answer

_ID = r"\d{8}-\d{6}\.\d{3}-[a-z2-7]{4}"
_STAMP = "%Y%m%d-%H%M%S.%f"
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


class Run(NamedTuple):
    """A run's folder."""

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    def manifest(self) -> dict[str, Any]:
        """Raises: StoreError where it is damaged."""
        return _json(self.folder / "manifest.json", ("question", "pipeline"))

    def journal(self) -> list[dict[str, Any]]:
        return list(journal.read(self.folder / "journal.jsonl"))

    def answer(self) -> Answer | None:
        """The answer, if the run came to one.

        Raises: StoreError where it is damaged.
        """
        file = self.folder / "answer.json"
        try:
            return Answer.model_validate_json(file.read_bytes()) if file.exists() else None
        except (OSError, ValueError) as error:
            raise StoreError(f"{file} can't be read: {_first_line(error)}; the run is damaged") from error

    def keep_answer(self, answer: Answer, markdown: str) -> None:
        (self.folder / "answer.json").write_bytes(escaped_json(answer.model_dump_json(indent=1)).encode())
        (self.folder / "answer.md").write_text(markdown, encoding="utf-8")


class Runs:
    """The folder of all runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._last: datetime | None = None

    def start(self, manifest: dict[str, Any]) -> Run:
        """A new run, later in order than all that are there, whatever the clock says.

        Raises: StoreError if its folder can't be written.
        """
        now = datetime.now(UTC)
        if self._last is None:
            self._last = self._newest()
        if self._last is not None and now <= self._last:
            now = self._last + timedelta(milliseconds=1)
        self._last = now
        tail = "".join(secrets.choice(_ALPHABET) for _ in range(4))
        run = Run(self.folder / f"{now.strftime(_STAMP)[:-3]}-{tail}")
        try:
            run.folder.mkdir(mode=0o700, parents=True)
            text = escaped_json(json.dumps({"run": run.id, **manifest}, ensure_ascii=False, indent=1))
            (run.folder / "manifest.json").write_text(text, encoding="utf-8")
        except OSError as error:
            raise StoreError(
                f"the run's folder {run.folder} can't be written: {error}; check the disk's space"
            ) from error
        return run

    def open(self, run: str) -> Run:
        """The run of that id; `last` is the newest.

        Raises: UsageError for what is no id, or names no run.
        """
        if run == "last":
            return next(self.newest_first(), None) or _raise(
                UsageError("there are no runs yet; `research ask` makes one")
            )
        if not re.fullmatch(_ID, run):
            raise UsageError(f"{run!r} is no run's id; `research runs` lists them")
        if not (self.folder / run / "manifest.json").is_file():
            raise UsageError(f"there is no run {run}; `research runs` lists them")
        return Run(self.folder / run)

    def newest_first(self) -> Iterator[Run]:
        if self.folder.is_dir():
            names = (path.name for path in self.folder.iterdir() if re.fullmatch(_ID, path.name))
            for name in sorted(names, reverse=True):
                if (self.folder / name / "manifest.json").is_file():
                    yield Run(self.folder / name)

    def before(self, run: Run) -> Run | None:
        """The run before this one with the same question and pipeline."""
        same = ("question", "pipeline")
        manifest = run.manifest()
        for earlier in self.newest_first():
            if earlier.id < run.id:
                with suppress(StoreError):  # one that is damaged is none to hold against
                    other = earlier.manifest()
                    if all(other[name] == manifest[name] for name in same):
                        return earlier
        return None

    def _newest(self) -> datetime | None:
        if not self.folder.is_dir():
            return None
        newest = max((path.name for path in self.folder.iterdir() if re.fullmatch(_ID, path.name)), default=None)
        return None if newest is None else _time_of(newest)


def _time_of(run: str) -> datetime:
    """When a run began, from its id. (`strptime` would import a calendar for it.)"""
    day, clock = run[:8], run[9:19]
    return datetime.fromisoformat(f"{day[:4]}-{day[4:6]}-{day[6:]}T{clock[:2]}:{clock[2:4]}:{clock[4:]}+00:00")


def _json(file: Path, texts: tuple[str, ...]) -> dict[str, Any]:
    """An object that has at least those texts."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{file} can't be read: {_first_line(error)}; the run is damaged") from error
    if not isinstance(content, dict) or not all(isinstance(content.get(name), str) for name in texts):
        raise StoreError(f"{file} can't be read: it lacks {' or '.join(texts)}; the run is damaged")
    return content


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _raise(error: Exception) -> Any:
    raise error
