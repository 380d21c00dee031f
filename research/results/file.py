"""A results file: locked by the process that writes it, mended after a crash, rewritten in order at the end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from research.errors import StoreError, UsageError
from research.output import escaped_json
from research.results.record import DONE
from research.store import digest

_FIELDS = ("id", "state", "recipe", "question")


class Past(NamedTuple):
    """What a file holds of a row: its newest record. `question` is a digest of its text, `how` its ending or the
    kind of its error."""

    state: str
    recipe: str
    question: str
    how: str


def how(record: Mapping[str, Any]) -> str:
    """How a row ended: its ending, or the kind of its error."""
    error = record.get("error")
    return str(error.get("kind", "")) if isinstance(error, dict) else str(record.get("ending", ""))


def question_digest(text: str) -> str:
    return digest(text)[:16]


class Results:
    """An open results file. `past` maps ids to what the file held when it was opened.

    `runs` has a run for each recipe with answers in it, `dates` the as_of of its first record,
    `notices` what was mended.
    """

    def __init__(self, path: Path) -> None:
        """Raises: UsageError if it is no results file, or another process writes it; StoreError if it can't be had."""
        self.path = path
        self.past: dict[str, Past] = {}
        self.runs: dict[str, str] = {}
        self.dates: dict[str, str] = {}
        self.notices: list[str] = []
        self._superseded = 0
        self.is_new = not path.exists()
        with _typed(path):
            self._file = _locked(path)
            with contextlib.ExitStack() as otherwise:
                otherwise.callback(os.close, self._file)
                self._end = self._read()
                otherwise.pop_all()

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record, whole or not at all; it is with the operating system when this returns.

        Raises: StoreError if it can't be written.
        """
        data = encoded(record)
        with _typed(self.path):
            try:
                written = os.write(self._file, data)
                while written < len(data):
                    written += os.write(self._file, data[written:])
            except OSError:
                os.ftruncate(self._file, self._end)
                raise
        self._end += len(data)
        self._superseded += record["id"] in self.past

    def records(self, in_order: bool = False) -> Iterator[dict[str, Any]]:
        """The newest record of each row, in the order of the file or, if asked for, in that of the questions."""
        places = sorted(self._newest().values())
        if in_order:
            places.sort(key=lambda entry: entry[1])
        with open(self.path, "rb") as file:
            for place, _ in places:
                file.seek(place)
                yield json.loads(file.readline())

    def settle(self, in_order: bool = False) -> None:
        """Rewrite the file with the newest record of each row only, in the order of the questions if asked for.

        Does nothing where that would change nothing. Raises: StoreError; the file is as it was then.
        """
        newest = self._newest()
        places = sorted(newest.values())
        if in_order:
            places.sort(key=lambda entry: (entry[1], entry[0]))
        if not self._superseded and not (in_order and places != sorted(places)):
            return
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with _typed(self.path), open(self.path, "rb") as source, open(draft, "wb") as target:
            self._copy(source, target, [place for place, _ in places])
            new = os.open(draft, os.O_RDWR | os.O_APPEND)
            fcntl.flock(new, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.chmod(os.fstat(self._file).st_mode & 0o777)
            draft.replace(self.path)
        os.close(self._file)
        self._file, self._superseded = new, 0

    def _copy(self, source: IO[bytes], target: IO[bytes], places: list[int]) -> None:
        for place in places:
            source.seek(place)
            target.write(source.readline())
        target.flush()
        os.fsync(target.fileno())
        self._end = target.tell()

    def close(self) -> None:
        """Let others write it. A file that was made for nothing goes."""
        if self.is_new and not self._end:
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def _newest(self) -> dict[str, tuple[int, int]]:
        """For each id the place of its newest record in the file, and its row."""
        newest: dict[str, tuple[int, int]] = {}
        for place, line in self._lines():
            record = _parsed(line)
            if record is not None:
                newest[record["id"]] = (place, int(record.get("row", 0)))
        return newest

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        place = 0
        with open(self.path, "rb") as file:
            for line in file:
                yield place, line
                place += len(line)

    def _read(self) -> int:
        """Take in what is there, and mend its end; gives where that is."""
        end = 0
        shared: dict[str, str] = {}  # one object for each text that comes again and again
        for number, (place, line) in enumerate(self._lines(), start=1):
            record = _parsed(line)
            if record is None and number == 1 and line.endswith(b"\n"):
                raise UsageError(f"{self.path}: that is no results file; choose another for --out")
            if record is None and not line.endswith(b"\n"):
                os.ftruncate(self._file, place)
                self.notices.append(f"{self.path}: its last line was cut short and is dropped; its row is run again")
                return place
            end = place + len(line)
            if record is None:
                self.notices.append(f"{self.path}: line {number} is damaged; its row is run again")
                self._superseded += 1
                continue
            self._take(record, shared)
            if not line.endswith(b"\n"):
                return end + os.write(self._file, b"\n")
        return end

    def _take(self, record: dict[str, Any], shared: dict[str, str]) -> None:
        told = (record["state"], record["recipe"], how(record))
        state, recipe, ended = (shared.setdefault(text, text) for text in told)
        self._superseded += record["id"] in self.past
        self.past[record["id"]] = Past(state, recipe, question_digest(record["question"]), ended)
        if state == DONE and record.get("run"):
            self.runs.setdefault(recipe, record["run"])
        for name in ("as_of", "web_date"):
            if record.get(name):
                self.dates.setdefault(name, record[name])


def encoded(record: Mapping[str, Any]) -> bytes:
    """A record as its line: one line for every reader, whatever is in it."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"{escaped_json(text)}\n".encode("utf-8", "backslashreplace")


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    sound = isinstance(record, dict) and all(isinstance(record.get(name), str) for name in _FIELDS)
    return record if sound else None


def _locked(path: Path) -> int:
    """The file, open and ours.

    Raises: UsageError if another process has it.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise UsageError(f"{path}: another process writes it; wait for that, or choose another --out") from None
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(file).st_ino == path.stat().st_ino:
                return file
        os.close(file)  # it was replaced in between


@contextlib.contextmanager
def _typed(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path}: the results can't be written: {error.strerror or error}; check the disk's space and the "
            "folder's rights. What is finished is kept: run it again"
        ) from error
