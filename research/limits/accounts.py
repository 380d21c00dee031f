"""The account of a budget, in SQLite: what is settled, what processes hold, what is entrusted to providers.

What a process that died had reserved counts as spent, since it may have been. What is entrusted has a name and
belongs to no process: it is settled once, by whichever comes to know what it cost.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection
from pathlib import Path

TRANSACTION = 60.0  # seconds that a transaction waits for those of other processes


def opened(file: Path | None) -> sqlite3.Connection:
    if file is not None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.chmod(0o600)
    connection = sqlite3.connect(":memory:" if file is None else file, timeout=TRANSACTION, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE IF NOT EXISTS settled (usd INTEGER, calls INTEGER)")
    connection.execute("INSERT INTO settled SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM settled)")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS held (row INTEGER PRIMARY KEY, process INTEGER, usd INTEGER, calls INTEGER, sent)"
    )
    connection.execute(
        "CREATE TABLE IF NOT EXISTS entrusted (name TEXT PRIMARY KEY, usd INTEGER, open INTEGER) WITHOUT ROWID"
    )
    _bury(connection)
    connection.execute("COMMIT")
    return connection


def _bury(connection: sqlite3.Connection) -> None:
    """Settle what processes that died had reserved, and give back what they only kept for later."""
    for row, process, usd, calls, sent in connection.execute("SELECT * FROM held").fetchall():
        if not _alive(process):
            connection.execute("DELETE FROM held WHERE row = ?", (row,))
            if sent:
                settle(connection, usd, calls)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def hold(connection: sqlite3.Connection, usd: int, calls: int, *, sent: bool) -> int:
    made = connection.execute(
        "INSERT INTO held (process, usd, calls, sent) VALUES (?, ?, ?, ?)", (os.getpid(), usd, calls, sent)
    )
    assert made.lastrowid is not None
    return made.lastrowid


def totals(connection: sqlite3.Connection) -> tuple[int, int]:
    """Nano-dollars and calls: settled, held and entrusted."""
    usd, calls = settled(connection)
    held = connection.execute("SELECT COALESCE(SUM(usd), 0), COALESCE(SUM(calls), 0) FROM held").fetchone()
    out = connection.execute("SELECT COALESCE(SUM(usd), 0), COUNT(*) FROM entrusted WHERE open").fetchone()
    return usd + held[0] + out[0], calls + held[1] + out[1]


def settled(connection: sqlite3.Connection) -> tuple[int, int]:
    usd, calls = connection.execute("SELECT usd, calls FROM settled").fetchone()
    return usd, calls


def settle(connection: sqlite3.Connection, usd: int, calls: int) -> None:
    if usd or calls:
        connection.execute("UPDATE settled SET usd = usd + ?, calls = calls + ?", (usd, calls))


def out(connection: sqlite3.Connection) -> bool:
    """Whether calls are on their way."""
    held = connection.execute("SELECT EXISTS (SELECT 1 FROM held WHERE sent)").fetchone()[0]
    return bool(held or connection.execute("SELECT EXISTS (SELECT 1 FROM entrusted WHERE open)").fetchone()[0])


def is_entrusted(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a call of that name is on its way, or is settled."""
    return connection.execute("SELECT 1 FROM entrusted WHERE name = ?", (name,)).fetchone() is not None


def entrust(connection: sqlite3.Connection, name: str, usd: int) -> None:
    connection.execute("INSERT INTO entrusted VALUES (?, ?, 1)", (name, usd))


def end(connection: sqlite3.Connection, name: str, usd: int, calls: int) -> None:
    """What was entrusted cost so much; nothing, if it was settled before. Without `calls` it was not sent."""
    found = connection.execute("SELECT open FROM entrusted WHERE name = ?", (name,)).fetchone()
    if found is None or not found[0]:
        return
    if calls:
        connection.execute("UPDATE entrusted SET open = 0 WHERE name = ?", (name,))
    else:
        connection.execute("DELETE FROM entrusted WHERE name = ?", (name,))
    settle(connection, usd, calls)


def tidy(connection: sqlite3.Connection, names: Collection[str]) -> None:
    """Only what is entrusted under these names may still be asked for, or be on its way."""
    known = [name for (name,) in connection.execute("SELECT name FROM entrusted")]
    gone = [(name,) for name in known if name not in names]
    connection.executemany("DELETE FROM entrusted WHERE name = ?", gone)
