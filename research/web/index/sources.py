"""What an index is made from: the documents of a folder, or the lines of a JSONL file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from ...errors import UsageError
from ...records import Outcome, Page
from ..urls import canonical, site

TYPES = {
    ".htm": "text/html",
    ".html": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".text": "text/plain",
    ".txt": "text/plain",
    ".pdf": "application/pdf",
}
LARGEST_FILE = 32 << 20  # bytes
LONGEST_LINE = 64 << 20  # bytes


class Entry(BaseModel):
    """A line of a JSONL file: an address with its `text`, or with the `file` that holds its page.

    `file` is relative to the JSONL's folder. `title` and `snippet` are what a search
    engine shows; `status` and `content_type` are what the server said. Other keys are ignored.
    """

    url: str
    title: str | None = None
    text: str | None = None
    file: str | None = None
    snippet: str | None = None
    status: int = 200
    content_type: str | None = None
    date: str | None = Field(None, pattern=r"^\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True)
class Unreadable:
    """A file or line that can't be searched: where, and why."""

    place: str
    reason: str


@dataclass(frozen=True)
class Document:
    """Something to index: `page` if there is nothing to read, else the file at `path`.

    `stamp` changes whenever the content may have; `salt` is what shapes the page besides the file's bytes.
    """

    place: str
    url: str
    stamp: str
    title: str = ""
    snippet: str = ""
    page: Page | None = None
    path: Path = Path()
    content_type: str = ""
    status: int = 200
    salt: str = ""


def scan(sources: Path) -> Iterator[Document | Unreadable]:
    """The documents of a folder (below it, too), or of a JSONL file, in a fixed order.

    Hidden files, other kinds of files, and links that lead out of the folder are passed over.

    Raises: UsageError where `sources` is neither.
    """
    with _readable(sources):
        kind = sources.stat().st_mode
    if stat.S_ISDIR(kind):
        return _folder(sources.resolve())
    if stat.S_ISREG(kind) and sources.suffix.lower() in (".jsonl", ".ndjson"):
        return _lines(sources)
    raise UsageError(f"{sources} is neither a folder nor a .jsonl file: give one of them to build an index from.")


def count(sources: Path) -> int:
    """How many documents `scan` will give, apart from folders that can't be listed."""
    if sources.is_dir():
        return sum(1 for _ in _paths(sources.resolve(), []))
    with _readable(sources), sources.open("rb") as file:
        return sum(1 for line in file if line.strip())


@contextmanager
def _readable(sources: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"{sources} can't be read ({reason}): give a folder of documents, or a .jsonl file, to build an index from."
        ) from None


def _folder(root: Path) -> Iterator[Document | Unreadable]:
    failed: list[OSError] = []
    for path in _paths(root, failed):
        yield _file(root, path)
    for error in failed:
        yield Unreadable(printable(error.filename), error.strerror or str(error))


def _paths(root: Path, failed: list[OSError]) -> Iterator[Path]:
    for folder, below, names in os.walk(root, onerror=failed.append):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if path.suffix.lower() in TYPES and not name.startswith("."):
                yield path


def _file(root: Path, path: Path) -> Document | Unreadable:
    place = printable(path.relative_to(root))
    try:
        stamp = _stamp(path, root)
    except (OSError, ValueError) as error:
        return Unreadable(place, _reason(error))
    return Document(place, canonical(path.as_uri()), stamp, path=path, content_type=TYPES[path.suffix.lower()])


def _stamp(path: Path, root: Path) -> str:
    """Size and time of change of a regular file under `root`.

    Raises: OSError; ValueError with the reason for which the file is not read.
    """
    if not Path(os.path.realpath(path)).is_relative_to(root):
        raise ValueError("it lies outside the folder")
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no regular file")
    if found.st_size > LARGEST_FILE:
        raise ValueError(f"it is larger than {LARGEST_FILE >> 20} MiB")
    return f"{found.st_size} {found.st_mtime_ns}"


def _lines(path: Path) -> Iterator[Document | Unreadable]:
    first: dict[str, int] = {}
    root = path.resolve().parent
    with _readable(path), path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
            if len(line) > LONGEST_LINE:
                raise UsageError(f"{path}: line {number} is longer than {LONGEST_LINE >> 20} MiB: split it.")
            line = line.removeprefix(b"\xef\xbb\xbf" if number == 1 else b"").strip()
            if not line:
                continue
            place = f"{printable(path.name)} line {number}"
            found = _document(line, place, root)
            if isinstance(found, Document) and first.setdefault(found.url, number) != number:
                found = Unreadable(place, f"its address stands in line {first[found.url]} already: {found.url}")
            yield found


def _document(line: bytes, place: str, root: Path) -> Document | Unreadable:
    try:
        entry = Entry.model_validate_json(line)
        url = canonical(entry.url)
        if (entry.text is None) == (entry.file is None):
            return Unreadable(place, 'it needs either "text" or "file"')
        return (
            _text_entry(entry, url, place, line) if entry.file is None else _file_entry(entry, url, place, line, root)
        )
    except (OSError, ValueError) as error:
        return Unreadable(place, _reason(error))


def _text_entry(entry: Entry, url: str, place: str, line: bytes) -> Document:
    text = entry.text or ""
    page = Page(
        url=url,
        outcome=Outcome.OK if text.strip() else Outcome.EMPTY,
        title=entry.title or "",
        site=site(url),
        text=text,
        date=entry.date,
        date_origin="index source" if entry.date else "",
        media_type="text/plain",
        detail="" if text.strip() else "the text is empty",
    )
    return Document(place, url, sha256(line).hexdigest(), entry.title or "", entry.snippet or "", page)


def _file_entry(entry: Entry, url: str, place: str, line: bytes, root: Path) -> Document:
    path = root / (entry.file or "")
    digest = sha256(line).hexdigest()
    return Document(
        place=place,
        url=url,
        stamp=f"{digest} {_stamp(path, root)}",
        title=entry.title or "",
        snippet=entry.snippet or "",
        path=path,
        content_type=entry.content_type or TYPES.get(path.suffix.lower(), ""),
        status=entry.status,
        salt=digest,
    )


def printable(name: object) -> str:
    """A file's name as text, whatever bytes it is made of."""
    return str(name).encode("utf-8", "backslashreplace").decode()


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        return f"{key}: {first['msg']}" if key else first["msg"]
    return getattr(error, "strerror", None) or str(error)
