"""The command, run as a user runs it: another process, a home of its own."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import PYTHONPATH
from tests.forks import Forks

RUN = [sys.executable, "-c", "from research.cli import main; main()"]
FORKS = Forks(PYTHONPATH)
QUESTION = "What is the US inflation rate, and how does it compare with a year ago?"


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    return {**kept, "RESEARCH_HOME": str(home), "PYTHONPATH": PYTHONPATH, "COLUMNS": "88", **more}


def research(home: Path, *arguments: str, stdin: bytes = b"", **more: str) -> subprocess.CompletedProcess[str]:
    if "--offline" in arguments:
        with_sample_web(home)
    code, out, err = FORKS.run(list(arguments), environment(home, **more), home, stdin)
    assert b"Traceback" not in err, err.decode()
    return subprocess.CompletedProcess(arguments, code, out.decode(), err.decode())


def with_sample_web(home: Path) -> None:
    """Puts the sample web's index there, as after a first question: to read its pages takes a second."""
    index = _sample_index()
    folder = home / "index"
    if home.is_dir() and not folder.exists():
        folder.mkdir(mode=0o700)
        shutil.copy(index, folder)


@functools.cache
def _sample_index() -> Path:
    home = Path(tempfile.mkdtemp(prefix="research-sample-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    FORKS.run(["ask", "--offline", QUESTION], environment(home), home)
    (index,) = (home / "index").glob("sample-*.db")
    return index
