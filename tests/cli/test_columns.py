"""Narrow terminals: nothing is wider than they are but for what can't be broken, and no id is broken."""

from __future__ import annotations

import io
import os
import termios
from pathlib import Path

import pytest

from research.cli.columns import columns
from research.cli.progress import Progress, Row, account
from research.records import Answer, Ending
from research.tally import Tally
from tests.commands import QUESTION, research


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    assert research(home, "ask", "--offline", QUESTION).returncode == 0
    return home


@pytest.mark.parametrize(
    "arguments",
    [
        ["show"], ["show", "--evidence"], ["runs"], ["pipelines", "list"], ["models"],
        ["ask", "--offline", "--dry-run", QUESTION],
    ],
)  # fmt: skip
def test_what_is_listed_fits_into_forty_columns(home: Path, arguments: list[str]) -> None:
    done = research(home, *arguments, COLUMNS="40")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if len(line) > 40 and len(line.split()) > 1 and "://" not in line] == []
    wide = research(home, *arguments, COLUMNS="400")
    assert "".join(wide.stdout.split()) == "".join(done.stdout.split()) or arguments[0] in ("models", "ask")


def test_without_a_terminal_a_list_has_a_line_for_each(home: Path) -> None:
    [line] = research(home, "runs", COLUMNS="").stdout.splitlines()
    assert line.endswith(QUESTION)


@pytest.mark.parametrize(("width", "told"), [(None, 1), (78, 1), (77, 2), (40, 2)])
def test_commands_are_whole(width: int | None, told: int, tmp_path: Path) -> None:
    from research.app import Asked
    from research.runs import Run

    run = Run(tmp_path / "20250301-101530.123-k7q2")
    run.folder.mkdir()
    result = Asked(run, Answer(ending=Ending.NOT, text="", reason="nothing"), [{"event": "ended", "at": 0.5}])
    lines = account(result, {"plan": Row(began=0.0, made=1, ended=0.25), "fetch": Row()}, width)
    assert lines[1:3] == ["  plan     0.25 s  1 made", "  fetch    0.00 s  nothing to do"]
    assert "Paid now $0 in 0.50 s (no model was called); as if cold $0 in 0.00 s." in lines
    whole = [f"research show {run.id}", f"research why {run.id}"]
    assert lines[lines.index(f"Run {run.id}") + 1 :] == ([" · ".join(whole)] if told == 1 else whole)


def test_one_of_anything_is_told_as_one() -> None:
    assert str(Tally(cited=4, snippets=4)) == "4 cited (4 by their snippets only)"
    assert str(Tally(cited=4, snippets=1)) == "4 cited (1 by its snippet only)"


def test_notes_stand_together() -> None:
    from research.rendering import plain

    told = plain(Answer(ending=Ending.ANSWERED, text="It is.", notes=("One.", "Two.")))
    assert "Note: One.\nNote: Two.\n" in told


def test_the_store_in_sizes_that_tell_something(home: Path, tmp_path: Path) -> None:
    lines = research(home, "cache", "stats").stdout.splitlines()
    rows = {line[2:16].strip(): line[16:].split() for line in lines[1:]}
    assert list(rows) == ["other values", "pages", "traces", "in all"]
    assert "kB" in {size[2] for size in rows.values()} | {"MB"}
    counts = [int(row[0].replace(",", "")) for row in rows.values()]
    assert counts[-1] == sum(counts[:-1])
    assert research(home, "cache", "clear", "--yes").returncode == 0
    assert research(home, "cache", "stats").stdout.strip().endswith(": nothing is in it")


def test_what_goes_to_a_terminal_is_as_wide_as_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    ours, theirs = os.openpty()
    termios.tcsetwinsize(ours, (24, 46))
    with open(theirs, "w", encoding="utf-8") as stream:
        assert columns(stream) == 46
        Progress.on(stream).line("Paid now $0 in 0.24 s (7 model calls, 5,034 tokens in, 1,075 out).")
        told = os.read(ours, 1000).decode().splitlines()
    os.close(ours)
    assert told == ["Paid now $0 in 0.24 s (7 model calls, 5,034", "  tokens in, 1,075 out)."]
    assert columns(io.StringIO()) == 88
