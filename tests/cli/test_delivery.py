"""Where an answer goes, and what happens where it can't go there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands import QUESTION, RUN, environment, research

FULL = Path("/dev/full")  # whoever writes it meets a full disk
NO_NETWORK = {f"{engine}_BASE_URL": "http://127.0.0.1:9" for engine in ("DUCKDUCKGO", "MOJEEK", "WIKIPEDIA")}
NOWHERE = Path("/proc/nowhere")  # no file can be made there, not even by root


@pytest.fixture(scope="module")
def warmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the question has been asked once."""
    home = tmp_path_factory.mktemp("warmed")
    assert research(home, "ask", "--offline", QUESTION).returncode == 0
    return home


@pytest.fixture
def home(warmed: Path, tmp_path: Path) -> Path:
    shutil.copytree(warmed, tmp_path / "home")
    return tmp_path / "home"


def runs(home: Path) -> int:
    return len(list((home / "runs").iterdir()))


def into(target: Path, home: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and standard error, with standard output going into `target`."""
    with open(target, "wb") as out:
        done = subprocess.run(
            [*RUN, *arguments], env=environment(home), stdout=out, stderr=subprocess.PIPE, cwd=home, timeout=60
        )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-o", "/proc/answer.md"], "no file can be made there"),
        (["-o", "answer.pdf"], "an answer is written as .md, .json or .txt"),
        (["-o", "answer.md", "--json"], "--json writes JSON"),
        (["-o", "."], "that is a folder"),
        (["-o", "none/answer.md"], "there is no folder"),
    ],
)
def test_a_file_that_can_not_be_written_is_told_before_anything_is_run(
    home: Path, arguments: list[str], told: str
) -> None:
    done = research(home, "ask", "--offline", *arguments, QUESTION)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert runs(home) == 1


def test_a_report_that_can_not_be_written_is_told_before_anything_is_run(home: Path) -> None:
    (home / "questions.txt").write_text(QUESTION)
    compare = ["compare", "questions.txt", "-p", "fixed", "-p", "top-n", "--offline", "-o", "r.md"]
    for command in (compare, ["report", "last"]):
        done = research(home, *command, "-o", "/proc/r.html")
        assert (done.returncode, done.stdout) == (2, "")
        assert "--out /proc/r.html: no file can be made there" in done.stderr
    assert runs(home) == 1


@pytest.mark.parametrize(("name", "begins"), [("a.md", "# What"), ("a.JSON", "{"), ("a.txt", "Acc"), ("a", "Acc")])
def test_the_name_of_the_file_says_how_it_is_written(home: Path, name: str, begins: str) -> None:
    done = research(home, "ask", "--offline", "-o", name, QUESTION)
    assert (done.returncode, done.stdout) == (0, "")
    assert (home / name).read_text().startswith(begins)
    assert done.stderr.endswith(f"\nAnswer: {name}\n")


def test_a_device_is_written_and_not_replaced(home: Path) -> None:
    command = [*RUN, "ask", "--offline", "-o", "/dev/stdout", QUESTION]
    assert subprocess.run(command, env=environment(home), capture_output=True, cwd=home).stdout[:9] == b"According"
    done = research(home, "ask", "--offline", "-o", str(FULL), QUESTION)
    assert done.returncode == 8
    assert "error: --out /dev/full: it can't be written: No space left on device" in done.stderr
    assert FULL.is_char_device()


def test_a_full_disk_is_no_bug_and_the_run_still_has_the_answer(home: Path) -> None:
    code, told = into(FULL, home, "ask", "--offline", "--json", QUESTION)
    [newest] = {path.name for path in (home / "runs").iterdir()} - {
        min(path.name for path in (home / "runs").iterdir())
    }
    assert code == 8
    assert told.endswith(
        "error: the output can't be written: No space left on device; check where it goes\n"
        f"       `research show {newest}` still has the answer\n"
    )
    assert into(FULL, home, "show")[0] == 8
    assert into(FULL, home, "pipelines", "list")[0] == 8


@pytest.mark.parametrize("arguments", [["runs"], ["show", "--json"], ["ask", "--offline", QUESTION], ["--help"]])
@pytest.mark.parametrize("pipe", ["stdout", "both"])
def test_a_reader_that_has_what_it_wants(home: Path, arguments: list[str], pipe: str) -> None:
    process = subprocess.Popen(
        [*RUN, *arguments],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if pipe == "both" else subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    told = "" if process.stderr is None else process.stderr.read().decode()
    assert process.wait(60) == 0
    assert "error" not in told
    assert "Traceback" not in told
    assert "Exception" not in told
    if process.stderr is not None:
        process.stderr.close()


def test_standard_streams_that_are_closed(home: Path) -> None:
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *RUN, "ask", "--offline", QUESTION]
    assert subprocess.run(command, env=environment(home), cwd=home, timeout=60).returncode == 0
    assert runs(home) == 2


def test_a_home_that_can_not_be_written(home: Path) -> None:
    nowhere = {"RESEARCH_HOME": str(NOWHERE)}
    done = research(home, "ask", "--offline", QUESTION, **nowhere)
    assert done.returncode == 0
    assert "3.0 percent" in done.stdout
    assert "/proc/nowhere can't be written (No such file or directory)" in done.stderr
    assert "Set RESEARCH_HOME" in done.stderr
    assert "research show" not in done.stderr  # there is no such run any more
    (home / "questions.txt").write_text(QUESTION)
    done = research(home, "batch", "questions.txt", "-o", "out.jsonl", "--offline", **nowhere)
    assert done.returncode == 8
    assert "Set RESEARCH_HOME" in done.stderr
    done = research(home, "index", "build", str(home), **nowhere)
    assert done.returncode == 8
    assert "set RESEARCH_HOME" in done.stderr
    done = research(home, "doctor", **nowhere, **NO_NETWORK)
    assert "not writable (No such file or directory)" in done.stdout


def test_a_run_is_shown_as_it_was_printed(home: Path) -> None:
    asked = json.loads(research(home, "ask", "--offline", "--json", QUESTION).stdout)
    assert json.loads(research(home, "show", "--json").stdout) == asked
    assert {"run", "paid", "as_if_cold", "outcomes", "citation_recall", "citation_precision"} <= {*asked}


@pytest.mark.parametrize(("said", "code"), [(b"n\n", 0), (b"", 130)])
def test_who_does_not_agree_keeps_the_store(home: Path, said: bytes, code: int) -> None:
    done = research(home, "cache", "clear", stdin=said)
    assert done.returncode == code
    assert "Nothing was cleared." in done.stdout
    assert "takes it up again" not in done.stderr
    assert "no model was called" in research(home, "ask", "--offline", QUESTION).stderr


def test_what_a_stage_made_may_be_gone(home: Path) -> None:
    assert research(home, "cache", "clear", "--yes").returncode == 0
    for more in ([], ["--json"]):
        done = research(home, "show", "--stage", "extract", *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert "gone from the store" in done.stderr


def test_the_list_of_runs(home: Path, tmp_path: Path) -> None:
    [run] = (path.name for path in (home / "runs").iterdir())
    listed = research(home, "runs").stdout
    assert listed.split() == [run, "fixed", "answered", "$0", "sample", "web", *QUESTION.split()]
    (tmp_path / "other").mkdir()
    done = research(tmp_path / "other", "runs")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no runs yet" in done.stderr
