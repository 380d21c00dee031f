"""CPU time of commands against each other, in interleaved pairs: single pairs mean nothing on a shared machine."""

from __future__ import annotations

import os
import statistics
import subprocess
from collections.abc import Sequence


def cpu(command: Sequence[str], environment: dict[str, str] | None = None) -> float:
    """Seconds of processor time, user and system, of a command and all its children."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} exited with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def ratio(
    one: Sequence[str], other: Sequence[str], pairs: int = 11, environment: dict[str, str] | None = None
) -> tuple[float, float, float]:
    """Median seconds of both commands, and the median of the ratios of `pairs` interleaved pairs."""
    cpu(one, environment), cpu(other, environment)
    rows = [(cpu(one, environment), cpu(other, environment)) for _ in range(pairs)]
    first, second = (statistics.median(column) for column in zip(*rows, strict=True))
    return first, second, statistics.median(a / b for a, b in rows)
