"""The batches of one account that are under way, on disk before anything is sent, with each reply as it came.

A request's name is the digest of what is sent and a number: the first that the same words are asked, the second, …
A process that takes the work up asks in the same order, and so finds every reply again. `use_up` ends that: what
was asked before the end of a command is asked anew by the next, should it be wanted again.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from research.errors import StoreError
from research.llm.batching.service import MISSING, Reply

SENDING, SENT, ENDED = "sending", "sent", "ended"
_TABLES = """
    CREATE TABLE IF NOT EXISTS batches
        (name TEXT PRIMARY KEY, model TEXT, id TEXT, state TEXT, begun REAL, stages TEXT, size INTEGER);
    CREATE TABLE IF NOT EXISTS requests
        (digest TEXT, number INTEGER, batch TEXT, reply TEXT, used INTEGER, PRIMARY KEY (digest, number));
    CREATE INDEX IF NOT EXISTS of_batch ON requests (batch);
"""


class Sent(NamedTuple):
    """A batch on record. `id` is the provider's, "" until it has told one; `begun` is Unix time."""

    name: str
    model: str
    id: str
    state: str
    begun: float
    stages: str
    size: int


class Kept:
    """Raises: StoreError from each method, where the file can't be read or written."""

    def __init__(self, file: Path) -> None:
        self.file = file
        with self._typed():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = sqlite3.connect(file, isolation_level=None, timeout=30)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.executescript(_TABLES)

    def used(self, digest: str) -> int:
        """The last number under which these words were asked by commands that have ended."""
        found = self._one("SELECT MAX(number) FROM requests WHERE digest = ? AND used", digest)
        return int(found[0] or 0) if found else 0

    def find(self, name: str) -> tuple[str, Reply | None] | None:
        """The batch that holds the request, and its reply if it has come."""
        found = self._one("SELECT batch, reply FROM requests WHERE digest = ? AND number = ?", *_parts(name))
        return None if found is None else (found[0], Reply(*json.loads(found[1])) if found[1] else None)

    def begin(self, batch: str, model: str, names: Iterable[str], stages: str) -> Sent:
        """To be called before a batch is sent."""
        rows = [(*_parts(name), batch) for name in names]
        sent = Sent(batch, model, "", SENDING, time.time(), stages, len(rows))
        with self._transaction() as db:
            db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)", sent)
            db.executemany("INSERT INTO requests VALUES (?, ?, ?, NULL, 0)", rows)
        return sent

    def created(self, batch: str, id: str) -> None:
        with self._transaction() as db:
            db.execute("UPDATE batches SET id = ?, state = ? WHERE name = ?", (id, SENT, batch))

    def drop(self, batch: str) -> None:
        """It surely never came to be."""
        with self._transaction() as db:
            db.execute("DELETE FROM requests WHERE batch = ?", (batch,))
            db.execute("DELETE FROM batches WHERE name = ?", (batch,))

    def keep(self, batch: str, replies: Iterable[tuple[str, Reply]]) -> int:
        """Replies of a batch, as they are read; names that are none of its requests are passed over. Gives how many
        are of it."""
        rows = [(json.dumps(reply), *_parts(name), batch) for name, reply in replies if "-" in name]
        with self._transaction() as db:
            return sum(
                db.execute("UPDATE requests SET reply = ? WHERE digest = ? AND number = ? AND batch = ?", row).rowcount
                for row in rows
            )

    def end(self, batch: str, gone: str = MISSING, reply: Reply | None = None) -> None:
        """No more will come of it: what has no reply has none, or `reply`."""
        told = json.dumps(reply or Reply(gone=gone))
        with self._transaction() as db:
            db.execute("UPDATE requests SET reply = ? WHERE batch = ? AND reply IS NULL", (told, batch))
            db.execute("UPDATE batches SET state = ? WHERE name = ?", (ENDED, batch))

    def open(self) -> list[Sent]:
        """The batches that have not ended, oldest first."""
        with self._typed():
            rows = self._db.execute("SELECT * FROM batches WHERE state != ? ORDER BY begun", (ENDED,)).fetchall()
        return [Sent(*row) for row in rows]

    def ids(self) -> set[str]:
        """The provider's ids of all batches on record."""
        with self._typed():
            return {id for (id,) in self._db.execute("SELECT id FROM batches WHERE id != ''")}

    def names(self, batch: str) -> list[str]:
        """Of its requests."""
        with self._typed():
            rows = self._db.execute("SELECT digest, number FROM requests WHERE batch = ?", (batch,)).fetchall()
        return [f"{digest}-{number}" for digest, number in rows]

    def unused(self) -> set[str]:
        """The names of all requests that are still to be used, replied to or not."""
        with self._typed():
            rows = self._db.execute("SELECT digest, number FROM requests WHERE NOT used").fetchall()
        return {f"{digest}-{number}" for digest, number in rows}

    def use_up(self, names: Iterable[str]) -> None:
        """These replies have been used, and their words will be asked anew."""
        rows = [_parts(name) for name in names]
        with self._transaction() as db:
            db.executemany("UPDATE requests SET used = 1, reply = NULL WHERE digest = ? AND number = ?", rows)

    def close(self) -> None:
        self._db.close()

    def _one(self, query: str, *values: object) -> tuple[str, ...] | None:
        with self._typed():
            found: tuple[str, ...] | None = self._db.execute(query, values).fetchone()
        return found

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._typed():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextlib.contextmanager
    def _typed(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"the record of batches {self.file} can't be kept: {error}; check the disk") from error


def _parts(name: str) -> tuple[str, int]:
    digest, _, number = name.rpartition("-")
    return digest, int(number) if number.isdecimal() else 0
