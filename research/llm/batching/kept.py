"""The batches of one account that are under way, on disk before anything is sent, with each reply as it came.

A request's name is the digest of what is sent and a number: the first that the same words are asked, the second, …
A process that takes the work up asks in the same order, and so finds every reply again. `use_up` ends that: what
was asked before the end of a command is asked anew by the next, should it be wanted again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from research.errors import StoreError
from research.llm.batching.service import MISSING, Reply

SENDING, SENT, ENDED = "sending", "sent", "ended"
PRESUMED = "presumed"  # as SENT, but by its time and size alone: it may be a stranger's
SEAL = 16  # letters
_TABLES = """
    CREATE TABLE IF NOT EXISTS batches
        (name TEXT PRIMARY KEY, model TEXT, id TEXT, state TEXT, begun REAL, stages TEXT, size INTEGER);
    CREATE TABLE IF NOT EXISTS requests
        (digest TEXT, number INTEGER, batch TEXT, reply TEXT, used INTEGER, PRIMARY KEY (digest, number));
    CREATE INDEX IF NOT EXISTS of_batch ON requests (batch);
"""
_PAID = "COALESCE(substr(reply, 1, 5) = '[200,', 0)"  # whether a reply is one: `Reply` as JSON begins so


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
    """`tell` gets what is found broken.

    Raises: StoreError from each method, where the file can't be read or written.
    """

    def __init__(self, file: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        self.file = file
        self.tell = tell
        with self._typed():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.touch(mode=0o600)
            file.chmod(0o600)
            self._db = sqlite3.connect(file, isolation_level=None, timeout=30)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.executescript(_TABLES)
        self._give_up_strays()

    def used(self, digest: str) -> int:
        """The last number under which these words were asked by commands that have ended."""
        found = self._one("SELECT MAX(number) FROM requests WHERE digest = ? AND used", digest)
        return int(found[0] or 0) if found else 0

    def find(self, name: str) -> tuple[str, Reply | None] | None:
        """The batch that holds the request, and its reply if it has come. Where that is broken, it is as if it had
        not come, and its batch as if it had not ended."""
        found = self._one("SELECT batch, reply FROM requests WHERE digest = ? AND number = ?", *_parts(name))
        if found is not None and found[1] is not None and _reply(found[1]) is None:
            self._mend(found[0])
            return self.find(name)
        return None if found is None else (found[0], _reply(found[1]))

    def begin(self, batch: str, model: str, names: Iterable[str], stages: str) -> Sent:
        """To be called before a batch is sent."""
        rows = [(*_parts(name), batch) for name in names]
        sent = Sent(batch, model, "", SENDING, time.time(), stages, len(rows))
        with self._transaction() as db:
            db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)", sent)
            db.executemany("INSERT INTO requests VALUES (?, ?, ?, NULL, 0)", rows)
        return sent

    def created(self, batch: str, id: str, *, sure: bool = True) -> None:
        """It is at the provider under this id; or, if that is not `sure`, is presumed to be."""
        with self._transaction() as db:
            db.execute("UPDATE batches SET id = ?, state = ? WHERE name = ?", (id, SENT if sure else PRESUMED, batch))

    def drop(self, batch: str) -> None:
        """It surely never came to be."""
        with self._transaction() as db:
            db.execute("DELETE FROM requests WHERE batch = ?", (batch,))
            db.execute("DELETE FROM batches WHERE name = ?", (batch,))

    def keep(self, batch: str, replies: Iterable[tuple[str, Reply]]) -> None:
        """Replies to requests of a batch, as they are read. The first stays, but for an error before what is paid."""
        rows = [(_sealed(reply), *_parts(name), batch, reply.status) for name, reply in replies]
        with self._transaction() as db:
            db.executemany(
                "UPDATE requests SET reply = ? WHERE digest = ? AND number = ? AND batch = ?"
                f" AND (reply IS NULL OR (? = 200 AND NOT {_PAID}))",
                rows,
            )

    def tally(self, batch: str) -> tuple[int, int]:
        """How many of its requests have no reply, and how many have one that is paid."""
        found = self._one(f"SELECT COUNT(*) - COUNT(reply), SUM({_PAID}) FROM requests WHERE batch = ?", batch)
        assert found is not None
        return int(found[0]), int(found[1] or 0)

    def end(self, batch: str, gone: str = MISSING, reply: Reply | None = None) -> None:
        """No more will come of it: what has no reply has none, or `reply`."""
        told = _sealed(reply or Reply(gone=gone))
        with self._transaction() as db:
            db.execute("UPDATE requests SET reply = ? WHERE batch = ? AND reply IS NULL", (told, batch))
            db.execute("UPDATE batches SET state = ? WHERE name = ?", (ENDED, batch))

    def open(self) -> list[Sent]:
        """The batches that have not ended, oldest first."""
        with self._typed():
            rows = self._db.execute("SELECT * FROM batches WHERE state IS NOT ? ORDER BY begun", (ENDED,)).fetchall()
        return [_sent(*row) for row in rows]

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

    def _mend(self, batch: str) -> None:
        """Forget the replies of a batch that are broken, so that it is read again."""
        with self._transaction() as db:
            rows = db.execute(
                "SELECT digest, number, reply FROM requests WHERE batch IS ? AND reply IS NOT NULL", (batch,)
            ).fetchall()
            broken = [(digest, number) for digest, number, reply in rows if _reply(reply) is None]
            db.executemany("UPDATE requests SET reply = NULL WHERE digest = ? AND number = ?", broken)
            db.execute("UPDATE batches SET state = ? WHERE name = ? AND state = ?", (SENT, batch, ENDED))
        self.tell(f"{self.file}: {len(broken):,} replies of {batch} are broken. They are read from its provider again")
        self._give_up_strays()

    def _give_up_strays(self) -> None:
        """Of requests whose batch is not on record nobody will hear."""
        with self._transaction() as db:
            db.execute(
                "UPDATE requests SET reply = ? WHERE reply IS NULL AND NOT used"
                " AND NOT EXISTS (SELECT 1 FROM batches WHERE name = batch)",
                (_sealed(Reply(gone=MISSING)),),
            )

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        with self._typed():
            found: tuple[Any, ...] | None = self._db.execute(query, values).fetchone()
        return found

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._typed():
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:  # commits, or rolls back
                yield self._db

    @contextlib.contextmanager
    def _typed(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            remedy = "check the disk"
            if "malformed" in str(error) or "not a database" in str(error):
                remedy = "it is broken. Move it away to go on; what providers still have for it is then asked anew"
            raise StoreError(f"the record of batches {self.file} can't be kept: {error}; {remedy}") from error


def _parts(name: str) -> tuple[str, int]:
    digest, _, number = name.rpartition("-")
    return digest, int(number) if number.isdecimal() else 0


def _sealed(reply: Reply) -> str:
    """As JSON, and behind it the beginning of its digest."""
    text = json.dumps(reply)
    return text + _seal(text)


def _seal(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:SEAL]


def _reply(kept: object) -> Reply | None:
    """None if it has not come, or is none."""
    if not isinstance(kept, str) or _seal(kept[:-SEAL]) != kept[-SEAL:]:
        return None
    return Reply(*json.loads(kept[:-SEAL]))


def _sent(name: str, model: str, id: str | None, state: str | None, begun: float | None, *more: Any) -> Sent:
    """From the record; of what is missing there, the provider is asked again."""
    return Sent(name, model, id or "", state or SENT, begun or 0.0, *more)
