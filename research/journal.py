"""What a run did, line by line: an append-only JSONL file, and whoever listens.

Every line has `event` and `at` (seconds since the run began, by the monotonic clock):

    began      run, pipeline, question, when (UTC)
    making     stage, item                         work has started
    made       stage, item, key, ref, parts, needs, receipt
    reused     the same; the receipt tells what it took when it was made
               (both, for a part of other work: within, that work's key; where an item could begin before
               what chose it had ended: ahead, the keys that it had to wait for; where it was chosen from a list:
               after, the keys of what made that, and of what it came in place of)
    step       stage, …                            how work that is made of parts went on
    dropped    stage, item, reason, cause          left out, and why; cause: "budget" if that was it
    selected   stage, chosen, of, left, passed, late
                                                   the ranks that were taken, of how many; why others were not, the
                                                   work on those that were of no use, and who came in their place
    in_vain    stage, receipt                      paid for, and of no use
    ended      ending, reason or error, kind; paid, as_if_cold
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .errors import StoreError
from .output import escaped_json

Listener = Callable[[dict[str, Any]], None]


class Journal:
    """The journal of one run. Without a path it is only listened to."""

    def __init__(self, path: Path | None = None, listeners: tuple[Listener, ...] = ()) -> None:
        self.path = path
        self.lines: list[dict[str, Any]] = []
        self._listeners = listeners
        self._began = time.monotonic()
        self._file = None if path is None else open(path, "a", encoding="utf-8")  # noqa: SIM115 - until close()

    def write(self, event: str, **what: Any) -> None:
        """Append one line, on the disk before this returns to the event loop.

        Raises: StoreError if the file can't be written.
        """
        line = {"event": event, "at": round(time.monotonic() - self._began, 4), **what}
        self.lines.append(line)
        if self._file is not None:
            try:
                self._file.write(escaped_json(json.dumps(line, ensure_ascii=False, separators=(",", ":"))) + "\n")
                self._file.flush()
            except OSError as error:
                raise StoreError(
                    f"the journal {self.path} can't be written: {error}; check the disk's space"
                ) from error
        for listener in self._listeners:
            listener(line)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a journal. A last line cut short by a crash is left out.

    Raises: StoreError if there is none.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for text in file:
                try:
                    line = json.loads(text)
                except (ValueError, RecursionError):
                    continue
                if isinstance(line, dict) and "event" in line:
                    yield line
    except OSError as error:
        raise StoreError(f"the journal {path} can't be read: {error}; `research runs` lists what is there") from error
