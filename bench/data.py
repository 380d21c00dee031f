"""Where the benchmarks find the shared data sets."""

from pathlib import Path

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def data(name: str) -> Path:
    """The folder of one data set.

    Raises: SystemExit where it is not on this machine.
    """
    path = DATA / name
    if not path.is_dir():
        raise SystemExit(f"{name} is not on this machine: it is expected in {DATA}")
    return path
