"""Writing to an index file: one transaction, in one thread."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from ...errors import StoreError, UsageError
from ...records import Outcome, Page
from . import schema
from .sources import TYPES, Document, Unreadable, printable
from .terms import ANALYSIS, searchable


@dataclass
class BuildReport:
    """Counts of documents that can be searched, and what can't be. `source` is the digest of the index's content."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    source: str = ""


class Writer:
    """A build's hold on the index file, from `open` to `finish`; `close` without `finish` changes nothing.

    Not for two threads at a time. Raises sqlite3.Error, which `schema.told` translates.
    """

    def __init__(self, path: Path) -> None:
        self.report = BuildReport()
        self._path = path
        self._seen: set[int] = set()
        self._connection: sqlite3.Connection | None = None

    @property
    def _db(self) -> sqlite3.Connection:
        assert self._connection is not None, "the writer is not open"
        return self._connection

    def open(self, wait: float) -> None:
        """Raises: sqlite3.OperationalError where another build holds the index for longer than `wait` seconds."""
        _create(self._path)
        self._connection = schema.connect(self._path, wait)
        with suppress(PermissionError):  # another user's, who decides
            self._path.chmod(0o600)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("BEGIN IMMEDIATE")
        if self._about("version") != str(schema.VERSION):
            self._start_anew()
        elif self._about("analysis") != ANALYSIS:
            self._fill_words()
        self._tell("analysis", ANALYSIS)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()  # rolls an open transaction back
            self._connection = None

    def take(self, batch: Iterable[Document | Unreadable]) -> list[Document]:
        """Deals with what needs no reading, and returns the rest: files that are new or may have changed."""
        to_read = []
        for item in batch:
            if isinstance(item, Unreadable):
                self.report.unreadable.append(item)
            elif self._known(item.url, "stamp") == item.stamp:
                self._keep(item)
            elif item.page is not None:
                self.put(item, item.stamp, item.page)
            else:
                to_read.append(item)
        return to_read

    def load(self, document: Document) -> tuple[bytes, str] | None:
        """The file's bytes and their digest; None where they are as they were, or can't be had."""
        try:
            body = document.path.read_bytes()
        except OSError as error:
            self.report.unreadable.append(Unreadable(document.place, error.strerror or str(error)))
            return None
        digest = sha256(document.salt.encode() + body).hexdigest()
        if self._known(document.url, "digest") != digest:
            return body, digest
        self._db.execute("UPDATE documents SET stamp = ? WHERE url = ?", (document.stamp, document.url))
        self._keep(document)
        return None

    def put(self, document: Document, digest: str, page: Page) -> None:
        """Stores a document that is new or has changed."""
        known = self._db.execute("SELECT id, reason FROM documents WHERE url = ?", (document.url,)).fetchone()
        if known is not None:
            self._delete(known[0])
        title, snippet, reason = _shown(document, page)
        record = page.model_dump_json()
        row = (document.url, document.place, title, snippet, document.stamp, digest,
               schema.content_digest(title, snippet, record), reason)  # fmt: skip
        number = self._db.execute(
            "INSERT INTO documents(url, place, title, snippet, stamp, digest, content, reason) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        ).lastrowid
        assert number is not None
        self._db.execute("INSERT INTO pages(id, record) VALUES (?, ?)", (number, record))
        self._seen.add(number)
        if reason:
            self.report.unreadable.append(Unreadable(document.place, reason))
            return
        self._words("INSERT INTO words(rowid, title, body) VALUES (?, ?, ?)", number, title, snippet, page)
        if known is None or known[1]:
            self.report.added += 1
        else:
            self.report.changed += 1

    def finish(self, sources: Path) -> BuildReport:
        """Removes what `sources` no longer holds, and commits.

        Raises: UsageError where nothing is left that can be searched.
        """
        for number, reason in self._db.execute("SELECT id, reason FROM documents").fetchall():
            if number not in self._seen:
                self._delete(number)
                self.report.removed += not reason
        report = self.report
        total = self._db.execute("SELECT count(*) FROM documents WHERE reason = ''").fetchone()[0]
        if not total:
            raise UsageError(_nothing(sources, report.unreadable))
        if 10 * (report.added + report.changed + report.removed) > total:
            self._db.execute("INSERT INTO words(words) VALUES ('optimize')")
        report.source = self._digest()
        self._tell("source", report.source)
        self._db.execute("COMMIT")
        return report

    def _keep(self, document: Document) -> None:
        """Counts a document that is as it was."""
        number, reason = self._db.execute(
            "SELECT id, reason FROM documents WHERE url = ?", (document.url,)
        ).fetchone()  # fmt: skip
        self._seen.add(number)
        if reason:
            self.report.unreadable.append(Unreadable(document.place, reason))
        else:
            self.report.unchanged += 1

    def _known(self, url: str, column: str) -> str | None:
        row = self._db.execute(f"SELECT {column} FROM documents WHERE url = ?", (url,)).fetchone()
        return row and str(row[0])

    def _delete(self, number: int) -> None:
        title, snippet, reason, record = self._db.execute(
            "SELECT title, snippet, reason, record FROM documents JOIN pages USING (id) WHERE id = ?", (number,)
        ).fetchone()
        if not reason:
            page = Page.model_validate_json(record)
            statement = "INSERT INTO words(words, rowid, title, body) VALUES ('delete', ?, ?, ?)"
            self._words(statement, number, title, snippet, page)
        self._db.execute("DELETE FROM pages WHERE id = ?", (number,))
        self._db.execute("DELETE FROM documents WHERE id = ?", (number,))

    def _words(self, statement: str, number: int, title: str, snippet: str, page: Page) -> None:
        body = page.text if page.outcome is Outcome.OK else snippet
        self._db.execute(statement, (number, searchable(title), searchable(body)))

    def _fill_words(self) -> None:
        self._db.execute("INSERT INTO words(words) VALUES ('delete-all')")
        rows = self._db.execute(
            "SELECT id, title, snippet, record FROM documents JOIN pages USING (id) WHERE reason = ''"
        )
        for number, title, snippet, record in rows:
            page = Page.model_validate_json(record)
            self._words("INSERT INTO words(rowid, title, body) VALUES (?, ?, ?)", number, title, snippet, page)

    def _start_anew(self) -> None:
        for name in ("words", "about", "documents", "pages"):
            self._db.execute(f"DROP TABLE IF EXISTS {name}")
        for statement in schema.TABLES:
            self._db.execute(statement)
        self._db.execute(f"PRAGMA application_id = {schema.APPLICATION}")
        self._tell("version", str(schema.VERSION))

    def _about(self, name: str) -> str | None:
        return schema.about(self._db, name)

    def _tell(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO about(name, value) VALUES (?, ?)", (name, value))

    def _digest(self) -> str:
        digest = sha256(f"research index {schema.VERSION}\n".encode())
        for url, content in self._db.execute("SELECT url, content FROM documents ORDER BY url"):
            digest.update(f"{url} {content}\n".encode())
        return digest.hexdigest()


def _shown(document: Document, page: Page) -> tuple[str, str, str]:
    """Title and snippet to search by, and why it can't be searched, if so.

    A page that can't be read is shown by what the source says of it, as a search engine would.
    """
    if page.outcome is Outcome.OK:
        return document.title or page.title or printable(document.path.stem), document.snippet, ""
    told = bool(document.title or document.snippet)
    return document.title, document.snippet, "" if told else ": ".join(filter(None, (page.outcome, page.detail)))


def _create(path: Path) -> None:
    """An empty file for the owner alone, where there is none.

    An existing one isn't even opened: closing it would drop SQLite's locks on it (in this process).
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(f"The index {path} can't be written ({error.strerror}): check its folder.") from error


def _nothing(sources: Path, unreadable: list[Unreadable]) -> str:
    kinds = ", ".join(TYPES)
    found = "".join(f"\n  {item.place}: {item.reason}" for item in unreadable[:5])
    return (
        f"Nothing in {sources} can be searched: give a folder with files of the kinds {kinds}, or a .jsonl file.{found}"
    )
