"""How commands are run: what typer converts, paths of any bytes, and the forks in which tests call them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import research
from tests.conftest import PYTHONPATH
from tests.forks import Forks

OLDER = """
from typer import core
core.TyperOption.process_value = core.TyperArgument.process_value = own = lambda self, ctx, value: value
del core._TyperParameter.get_runtime_param
import research.cli.commands
assert core.TyperOption.process_value is core.TyperArgument.process_value is own
"""
STAND_IN = """
import os, sys, time
def main():
    match sys.argv[1:]:
        case ["sleep"]: time.sleep(60)
        case ["die"]: os.kill(os.getppid(), 9)
        case ["big"]: print("x" * 3_000_000, end="")
        case ["read"]: print(len(sys.stdin.buffer.read()), end="")
        case ["fall"]: os.kill(os.getpid(), 9)
"""


def test_an_older_typer_converts_all_by_itself() -> None:
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    subprocess.run([sys.executable, "-c", OLDER], env=environment, check=True, timeout=60)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a path is text")
def test_paths_may_hold_bytes_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff")
    home = tmp_path / name
    home.mkdir()
    (home / f"{name}.txt").write_text("What is the US inflation rate?\n")
    options = ("--offline", "-p", "top-n", "-p", "snippets", "-o", f"{name}.json")
    done = research(home, "compare", f"{name}.txt", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads((home / f"{name}.json").read_text())["setup"]["questions"] == f"{name}.txt"


@pytest.mark.parametrize(
    "words",
    [
        ("report", "{}", "-o", "x.html"),
        ("ask", "-o", "{}", "Q"),
        ("index", "build", "{}"),
    ],
)
def test_a_name_that_no_file_can_have_is_told(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = research(tmp_path, *(word.format("x" * 300) for word in words))
    assert done.returncode == 2
    assert "too long for a file" in done.stderr


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"ending": 1}'])
def test_a_damaged_run_is_told_and_hides_no_other(tmp_path: Path, text: str) -> None:
    ids = [f"20250301-12000{number}.000-abcd" for number in range(3)]
    for run in (tmp_path / "runs" / id for id in ids):
        run.mkdir(parents=True)
        (run / "journal.jsonl").write_text('{"event": "began"}\n' + "[" * 100_000 + "\n")
        (run / "manifest.json").write_text('{"question": "Q", "pipeline": "fixed"}')
    (tmp_path / "runs" / ids[1] / "manifest.json").write_text(text)
    (tmp_path / "runs" / ids[2] / "answer.json").write_text(text)
    assert f"{ids[2]}/answer.json can't be read" in research(tmp_path, "show").stderr
    assert f"{ids[1]}/manifest.json can't be read" in research(tmp_path, "why", ids[1]).stderr
    assert f"against {ids[0]}" in research(tmp_path, "why", ids[2]).stdout
    listed = research(tmp_path, "runs")
    assert listed.returncode == 0
    assert [line.split()[1] for line in listed.stdout.splitlines() if "-abcd " in line] == ["fixed", "damaged", "fixed"]


def test_forks_outlive_commands_that_hang_or_fall(tmp_path: Path) -> None:
    (tmp_path / "research").mkdir()
    (tmp_path / "research" / "__init__.py").touch()
    (tmp_path / "research" / "cli.py").write_text(STAND_IN)
    forks = Forks(str(tmp_path))
    with pytest.raises(TimeoutError):
        forks.run(["sleep"], {}, tmp_path, seconds=0.01)
    assert forks.run(["fall"], {}, tmp_path) == (-9, b"", b"")
    assert forks.run(["read"], {}, tmp_path, stdin=b"z" * 2_000_000) == (0, b"2000000", b"")
    with pytest.raises(EOFError):
        forks.run(["die"], {}, tmp_path)
    assert forks.run(["big"], {}, tmp_path) == (0, b"x" * 3_000_000, b"")
