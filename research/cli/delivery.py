"""Where an answer goes: standard output, or a file that is there whole or not at all."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..app import Asked


class CiteBy(StrEnum):
    """How an answer's sentences tell their sources."""

    number = "number"
    name = "name"


WRITTEN = {"": "text", ".txt": "text", ".text": "text", ".md": "markdown", ".markdown": "markdown", ".json": "json"}


def check_out(out: Path | None, json: bool, force: bool) -> None:
    """Before anything is spent.

    Raises: UsageError if --out can't be written, or would replace a file unasked.
    """
    from ..errors import UsageError
    from ..homes import refusal

    if out is None or (out.exists() and not out.is_file() and not out.is_dir()):
        return  # a device or a pipe is written as it is
    if out.is_dir():
        raise UsageError(f"--out {out}: that is a folder; name a file in it, like {out / 'answer.md'}")
    if out.suffix.lower() not in WRITTEN:
        raise UsageError(f"--out {out}: an answer is written as .md, .json or .txt; choose one of these names")
    if json and WRITTEN[out.suffix.lower()] != "json" and out.suffix:
        raise UsageError(f"--out {out}: --json writes JSON; name the file .json, or leave --json out")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {out.absolute().parent}; make it, or choose another")
    if out.exists() and not force:
        raise UsageError(f"--out {out}: there is such a file; choose another, or add --force to replace it")
    if why := refusal(out.absolute().parent):
        raise UsageError(f"--out {out}: no file can be made there: {why}; choose another folder")


def draft(out: Path) -> Path:
    """The file that an answer is written to before it takes its place."""
    import os

    return out.with_name(f".{out.name}.{os.getpid()}")


def deliver(result: Asked, out: Path | None, json: bool, cite: CiteBy) -> None:
    """The answer to stdout, or to the file that was asked for.

    Raises: StoreError if it can't be written; a note tells how to have it all the same.
    """
    from ..errors import StoreError

    form = "text" if out is None else WRITTEN.get(out.suffix.lower(), "text")
    text = shown(result, cite, "json" if json else form)
    try:
        if out is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            _write(out, text)
    except StoreError as error:
        error.add_note(f"`research show {result.run.id}` still has the answer")
        raise


def _write(out: Path, text: str) -> None:
    """Raises: StoreError."""
    from ..errors import StoreError

    whole = draft(out)
    try:
        if out.exists() and not out.is_file():
            out.write_text(text, encoding="utf-8")
            return
        whole.write_text(text, encoding="utf-8")
        whole.replace(out)
    except OSError as error:
        if whole.exists():
            whole.unlink()
        raise StoreError(f"--out {out}: it can't be written: {error.strerror}; check the disk's space") from None


def shown(result: Asked, cite: CiteBy, form: str) -> str:
    from .. import output, rendering

    by_name = cite is CiteBy.name
    if form == "json":
        from ..app import as_json

        return output.as_json(as_json(result)) + "\n"
    if form == "markdown":
        return rendering.markdown(str(result.lines[0]["question"]), result.answer, by_name)
    from .columns import columns

    return rendering.plain(result.answer, columns(), by_name)
