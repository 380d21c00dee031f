"""The index file: an SQLite database with the pages' records and an FTS5 table of their words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from ...errors import StoreError, UsageError

APPLICATION = 0x52734978  # "RsIx": says in the file's header whose it is
VERSION = 1

TABLES = (
    "CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE documents(
        id INTEGER PRIMARY KEY,
        url TEXT NOT NULL UNIQUE,
        place TEXT NOT NULL,
        title TEXT NOT NULL,
        snippet TEXT NOT NULL,
        stamp TEXT NOT NULL,
        digest TEXT NOT NULL,
        content TEXT NOT NULL,
        reason TEXT NOT NULL
    )""",
    "CREATE TABLE pages(id INTEGER PRIMARY KEY, record TEXT NOT NULL)",
    "CREATE VIRTUAL TABLE words USING fts5(title, body, content='', tokenize='unicode61 remove_diacritics 2')",
)
# `digest` is of the source's bytes, `content` of what is stored; `reason` says why a
# document is not in `words`. The table is contentless: its entries are deleted by giving
# the same words again (`contentless_delete` would need SQLite 3.43).

AGAIN = "build it again with `research index build FOLDER --name NAME`"


def connect(path: Path, wait: float) -> sqlite3.Connection:
    """The database at `path`, which must be there; a locked one is waited for, in seconds.

    Transactions are the caller's, and so is using the connection in one thread at a time.

    Raises: StoreError, UsageError where the file is no index.
    """
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?mode=rw",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
    )
    with ExitStack() as otherwise:
        otherwise.callback(connection.close)
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION and _holds_something(connection):
            raise UsageError(f"{path} belongs to another program: choose another name for the index.")
        otherwise.pop_all()
    return connection


def _holds_something(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None


def about(connection: sqlite3.Connection, name: str) -> str | None:
    """What the index says of itself; None where it says nothing, or is empty."""
    if not _holds_something(connection):
        return None
    row = connection.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
    return row and str(row[0])


def is_locked(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into ours.

    Raises: StoreError.
    """
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # ours: a closed connection, a wrong statement
    except sqlite3.OperationalError as error:
        if is_locked(error):
            raise StoreError(
                f"The index {path} is being built by another process: try again when it is done."
            ) from None
        raise StoreError(f"The index {path} can't be used ({error}): check its folder and the disk's space.") from error
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path} is no index, or damaged ({error}): delete it and {AGAIN}.") from error


def documents(path: Path) -> int:
    """How many documents can be found in an index.

    Raises: StoreError, UsageError where the file is something else, or empty.
    """
    with told(path), closing(connect(path, wait=5.0)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM documents WHERE reason = ''").fetchone()[0])


def content_digest(title: str, snippet: str, record: str) -> str:
    """The digest of all that is stored of a document."""
    return sha256("\0".join((title, snippet, record)).encode()).hexdigest()
