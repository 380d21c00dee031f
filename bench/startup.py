"""How fast the command starts, and answers what it has answered before: `python -m bench.startup`.

Prints processor time as medians of interleaved pairs, against bare Python and against
the imports that any such program needs.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import research
from bench.pairs import ratio

QUESTION = "What is the US inflation rate, and how does it compare with a year ago?"
IMPORTS = "import asyncio, typer, diskcache; from pydantic import BaseModel"
RUN = "from research.cli import main; main()"


def main() -> None:
    # As an installed command is: compiled once, whatever PYTHONDONTWRITEBYTECODE says here.
    compileall.compile_dir(Path(research.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "RESEARCH_HOME": home}
        command = [sys.executable, "-c", RUN]
        ask = [*command, "ask", "--offline", QUESTION]
        subprocess.run(ask, env=environment, check=True, capture_output=True)
        rows = [
            ("research --help", [*command, "--help"], [sys.executable, "-c", "pass"], 10.0),
            ("research ask --help", [*command, "ask", "--help"], [sys.executable, "-c", "pass"], 20.0),
            ("a warm answer", ask, [sys.executable, "-c", IMPORTS], 1.4),
        ]
        for name, one, other, reach in rows:
            first, second, times = ratio(one, other, environment=environment)
            print(f"{name:<22} {first * 1000:4.0f} ms  ÷ {second * 1000:4.0f} ms = {times:5.2f}  (reach ≤ {reach:g})")


if __name__ == "__main__":
    main()
