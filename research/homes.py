"""The folder in which files are kept, and what takes its place where it can't be written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .settings import Settings


def refusal(folder: Path) -> str:
    """Why no file can be made in `folder`, or where it would be made itself; "" where one can."""
    probe = Path()
    try:
        while not folder.exists():
            folder = folder.parent
        probe = folder / f".research-{os.getpid()}"
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        probe.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


@contextmanager
def housed(settings: Settings, notice: Callable[[str], None]) -> Iterator[Settings]:
    """Settings with a home that can be written: where theirs can't, one that lasts as long as the block."""
    why = refusal(settings.runs) or refusal(settings.index_of("x").parent)
    if not why:
        yield settings
        return
    from tempfile import TemporaryDirectory

    notice(
        f"{settings.home} can't be written ({why}). This run goes on without a store: nothing is reused, and nothing "
        "is kept of it. Set RESEARCH_HOME to another folder."
    )
    with TemporaryDirectory(prefix="research-") as folder:
        yield settings._replace(home=Path(folder))
