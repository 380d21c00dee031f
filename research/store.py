"""Where artifacts are kept: trace → ref, ref → bytes, on diskcache.

A *trace* says which work (its key, a digest of recipe and inputs) gave which value (its
ref, the digest of the bytes), with the receipt of what that took. All is held as bytes,
inline in SQLite; nothing is ever pickled. What does not match its digest counts as
missing and is reported. One process at a time makes what a key stands for: `claim` holds
a byte-range lock, which the kernel drops when its owner dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import sqlite3
import time
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import diskcache

from .errors import StoreError

PAGE = "page"  # the tag of what can be had again for nothing
LIMIT = 2 << 30  # bytes
_NOTED = 1_000  # values whose use is noted at once: diskcache itself would write at each read
_POLL = 0.02  # seconds between looks at a claim that another process holds


def digest(content: bytes | str) -> str:
    """SHA-256, in hexadecimal; also of a path's name whose bytes are no text."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content).hexdigest()


def key_of(parts: Any) -> str:
    """The digest of plain JSON data, the same for NFC and NFD and for any order of keys."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return digest(unicodedata.normalize("NFC", text))


class InlineDisk(diskcache.Disk):  # type: ignore[misc]
    """Bytes inline and nothing else: no pickle, no files, in either direction.

    A planted row (a pickle, a file name that leads elsewhere) reads as damaged, and
    nothing outside the database is opened or deleted.
    """

    def hash(self, key: str) -> int:
        return int(digest(key)[:8], 16)

    def put(self, key: str) -> tuple[str, bool]:
        if not isinstance(key, str):
            raise TypeError(f"store keys are text, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: bool) -> object:
        return key if raw and isinstance(key, str) else None

    def store(self, value: bytes, read: bool, key: object = None) -> tuple[int, int, None, bytes]:
        if read or not isinstance(value, bytes):
            raise TypeError(f"the store holds bytes, not {type(value).__name__}")
        return len(value), diskcache.core.MODE_RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: object, read: bool) -> bytes:
        plain = mode == diskcache.core.MODE_RAW and filename is None and not read and isinstance(value, bytes)
        return value if plain else b""  # type: ignore[return-value]

    def remove(self, file_path: str) -> None:
        """Nothing of ours lies in a file, so nothing is removed."""


class Stored(NamedTuple):
    """A value found in the store, with the receipt of what making it took."""

    ref: str
    data: bytes
    receipt: dict[str, Any]


class Store:
    """An open store. Without a folder it lives in this process only.

    Several processes may use one folder at once; within a process, open a folder once.
    `report` is called with a sentence for each damaged entry that is met.
    """

    def __init__(self, folder: Path | None, report: Callable[[str], None] = lambda _: None) -> None:
        self.folder = folder
        self.report = report
        self._used: set[str] = set()
        self._secret: bytes | None = None
        self._shelf: Any = _Memory() if folder is None else _open(folder)
        self._claims = None if folder is None else os.open(folder / "claims", os.O_RDWR | os.O_CREAT, 0o600)

    def find(self, key: str) -> Stored | None:
        """What was made for `key`, if it is there and whole."""
        trace = self._get(f"trace:{key}")
        if trace is None:
            return None
        entry = _checked(trace, key)
        if entry is None:
            self.report(f"the trace {key[:12]} is damaged and counts as missing")
            return None
        ref, receipt = entry
        data = self.value(ref)
        return None if data is None else Stored(ref, data, receipt)

    def value(self, ref: str) -> bytes | None:
        """The bytes whose digest is `ref`; None if they are missing or damaged."""
        data = self._get(f"value:{ref}")
        if data is None:
            return None
        if digest(data) != ref:
            self.report(f"the value {ref[:12]} is damaged and counts as missing")
            return None
        self._used.add(ref)
        if len(self._used) >= _NOTED:
            self._note_uses()
        return data

    def _note_uses(self) -> None:
        if self.folder is not None and self._used:
            with contextlib.suppress(StoreError):  # who can't write it down reads all the same
                _touch(self.folder, self._used)
        self._used.clear()

    def put(self, key: str, data: bytes, receipt: dict[str, Any], tag: str | None = None) -> str:
        """Keep what was made for `key`; gives its ref.

        Raises: StoreError if it can't be written; what was there before is intact.
        """
        ref = digest(data)
        body = json.dumps([ref, receipt], separators=(",", ":"))
        with _typed("write"), self._shelf.transact():
            self._shelf.set(f"value:{ref}", data, tag=tag)
            self._shelf.set(f"trace:{key}", f"{_seal(key, body)}{body}".encode())
        return ref

    def _get(self, name: str) -> bytes | None:
        """An entry as it is; b"" for one that SQLite itself can't make sense of."""
        with _typed("read"):
            try:
                entry: bytes | None = self._shelf.get(name)
            except sqlite3.OperationalError as error:
                if "decode" not in str(error):
                    raise
                entry = b""
        return entry

    @contextlib.asynccontextmanager
    async def claim(self, key: str) -> AsyncIterator[None]:
        """Be the only process that makes what `key` stands for, while the block runs."""
        if self._claims is None:
            yield
            return
        place = int(key[:15], 16)
        while not _locked(self._claims, place):  # noqa: ASYNC110 - it depends on another process
            await asyncio.sleep(_POLL)
        try:
            yield
        finally:
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, place)

    def secret(self) -> bytes:
        """32 bytes that only this store knows; the same for as long as it lasts."""
        if self._secret is None:
            with _typed("write"):
                self._shelf.add("secret", secrets.token_bytes(32))
                self._secret = bytes(self._shelf.get("secret"))
        return self._secret

    def close(self, limit: int = LIMIT) -> None:
        """Note what was used, let go of the oldest pages beyond `limit` bytes, and close."""
        if self.folder is not None:
            self._note_uses()
            with _typed("write"):
                if self._shelf.reset("size") > limit:
                    prune(self.folder, limit)
            self._shelf.close()
        if self._claims is not None:
            os.close(self._claims)
            self._claims = None


def prune(folder: Path, limit: int, everything: bool = False) -> int:
    """Drop pages, least recently used first, until the store is within `limit` bytes.

    With `everything`, all values may go, not pages only. Gives how many went.
    """
    with _connected(folder) as connection, connection:
        total = connection.execute("SELECT COALESCE(SUM(size), 0) FROM Cache").fetchone()[0]
        which = "key LIKE 'value:%'" if everything else f"tag = '{PAGE}'"
        rows = connection.execute(f"SELECT rowid, size FROM Cache WHERE {which} ORDER BY access_time").fetchall()
        gone = []
        for rowid, size in rows:
            if total <= limit:
                break
            gone.append((rowid,))
            total -= size
        connection.executemany("DELETE FROM Cache WHERE rowid = ?", gone)
    return len(gone)


def clear(folder: Path) -> None:
    """Drop everything but the store's secret."""
    with _connected(folder) as connection:
        connection.executescript("DELETE FROM Cache WHERE key != 'secret'; VACUUM")


def stats(folder: Path) -> dict[str, tuple[int, int]]:
    """What the store holds: name → (how many, bytes)."""
    with _connected(folder) as connection:
        rows = connection.execute(
            "SELECT CASE WHEN key LIKE 'trace:%' THEN 'traces' WHEN tag = ? THEN 'pages' ELSE 'other values' END,"
            " COUNT(*), SUM(size) FROM Cache WHERE key != 'secret' GROUP BY 1 ORDER BY 1",
            (PAGE,),
        ).fetchall()
    return {name: (count, size) for name, count, size in rows}


def _open(folder: Path) -> Any:
    with _typed("open"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        shelf = diskcache.Cache(
            str(folder), disk=InlineDisk, timeout=30, cull_limit=0, eviction_policy="none", disk_min_file_size=1 << 62,
            sqlite_auto_vacuum=0, sqlite_cache_size=250, sqlite_mmap_size=0,
        )  # fmt: skip
        for file in folder.glob("cache.db*"):
            file.chmod(0o600)
        return shelf


def _seal(key: str, body: str) -> str:
    return digest(f"{key}{body}")[:16]


def _checked(trace: bytes, key: str) -> tuple[str, dict[str, Any]] | None:
    """The ref and receipt of a trace whose seal is whole."""
    text = trace.decode(errors="replace")
    if text[:16] != _seal(key, text[16:]):
        return None
    ref, receipt = json.loads(text[16:])
    return ref, receipt


@contextlib.contextmanager
def _typed(doing: str) -> Iterator[None]:
    """Failures of the disk and of SQLite as StoreError."""
    try:
        yield
    except (OSError, sqlite3.Error, diskcache.Timeout) as error:
        remedy = "check the disk's space and the folder's rights, or move the broken store away"
        raise StoreError(f"the store can't {doing}: {error or type(error).__name__}; {remedy}") from error


def _locked(file: int, place: int) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _connected(folder: Path) -> Iterator[sqlite3.Connection]:
    with _typed("be used"), contextlib.closing(sqlite3.connect(folder / "cache.db", timeout=30)) as connection:
        yield connection


def _touch(folder: Path, refs: set[str]) -> None:
    with _connected(folder) as connection, connection:
        rows = [(time.time(), f"value:{ref}") for ref in refs]
        connection.executemany("UPDATE Cache SET access_time = ? WHERE key = ? AND tag IS NOT NULL", rows)


class _Memory:
    """The part of diskcache.Cache that Store uses, over a dict."""

    def __init__(self) -> None:
        self._rows: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self._rows.get(key)

    def set(self, key: str, value: bytes, tag: str | None = None) -> None:
        self._rows[key] = value

    def add(self, key: str, value: bytes) -> None:
        self._rows.setdefault(key, value)

    @contextlib.contextmanager
    def transact(self) -> Iterator[None]:
        yield
