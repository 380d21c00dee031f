"""The command, run as a user runs it: another process, a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import PYTHONPATH

RUN = [sys.executable, "-c", "from research.cli import main; main()"]
QUESTION = "What is the US inflation rate, and how does it compare with a year ago?"


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    return {**kept, "RESEARCH_HOME": str(home), "PYTHONPATH": PYTHONPATH, "COLUMNS": "88", **more}


def research(home: Path, *arguments: str, stdin: bytes = b"", **more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*RUN, *arguments], env=environment(home, **more), input=stdin, capture_output=True, cwd=home, timeout=60
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
