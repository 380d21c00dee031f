"""`research batch` as a user meets it: files in, records out, exit codes, refusals, signals."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from research import errors
from tests.cli.test_doctor import CANARY, provider
from tests.commands import RUN, environment, research

INFLATION = "What is the US inflation rate, and how does it compare with a year ago?"
UNKNOWN = "How tall is the tower of Ulm?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the sample web read already."""
    folder = tmp_path_factory.mktemp("home")
    assert research(folder, "ask", "--offline", INFLATION).returncode == 0
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "questions.csv"
    with open(path, "w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([["question", "note"], [INFLATION, '=HYPERLINK("x")'], [UNKNOWN, "-1"]])
    return path


def batch(home: Path, file: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return research(home, "batch", str(file), "-o", str(file.with_suffix(".jsonl")), "--offline", *more, **variables)


def records(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]


def test_records_totals_and_a_table_beside(home: Path, file: Path) -> None:
    file = file.rename(file.with_name("mine.csv"))
    out = file.with_name("out.jsonl")
    done = research(home, "batch", str(file), "-o", str(out), "--offline", "--csv", "--ordered", "--json")
    assert done.returncode == 0, done.stderr
    totals = json.loads(done.stdout)
    assert (totals["total"], totals["done"], totals["failed"], totals["not_started"]) == (2, 2, 0, 0)
    assert totals["endings"] == {"answered": 1, "not answered": 1}
    assert "2 questions, of column question" in done.stderr
    assert "2 done + 0 failed = 2 rows" in done.stderr
    assert "Paid now $0" in done.stderr
    with open(out.with_suffix(".csv"), encoding="utf-8-sig", newline="") as table:
        rows = list(csv.DictReader(table))
    assert [row["question"] for row in rows] == [INFLATION, UNKNOWN]
    assert [row["note"] for row in rows] == ['\'=HYPERLINK("x")', "'-1"]
    assert [row["ending"] for row in rows] == ["answered", "not answered"]
    assert rows[0]["sources"].startswith("https://")
    assert float(rows[0]["paid_usd"]) == 0.0
    again = research(home, "batch", str(file), "-o", str(out), "--offline")
    assert again.returncode == 0
    assert "2 rows are done; 0 are to be run" in again.stderr
    assert "2 done, 2 of them before" in again.stderr
    assert "(no model was called" in again.stderr


def test_another_recipe_says_what_changed(home: Path, file: Path) -> None:
    out = file.with_name("out.jsonl")
    command = ["batch", str(file), "-o", str(out), "--offline"]
    assert research(home, *command).returncode == 0
    done = research(home, *command, "-p", "top-n")
    assert done.returncode == 2
    assert "2 rows are answered by another recipe" in done.stderr
    assert "stage rerank is gone" in done.stderr or "rerank: " in done.stderr
    done = research(home, *command, "--as-of", "2025-02-01")
    assert (done.returncode, "as of 2025-03-01, now 2025-02-01" in done.stderr) == (2, True)
    assert research(home, *command, "-p", "top-n", "--force").returncode == 0
    assert {json.loads(line)["pipeline"] for line in out.read_text().splitlines()} == {"top-n"}


def test_bad_rows_are_told_before_anything_is_run(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(
        f'\ufeff{{"question": "{UNKNOWN}"}}\r\n\r\n{{"question": \r\n{{"question": " "}}\r\n', encoding="utf-8"
    )
    out = tmp_path / "out.jsonl"
    command = ["batch", str(file), "-o", str(out), "--offline"]
    done = research(home, *command)
    assert done.returncode == 2
    assert "2 of 3 rows can't be run" in done.stderr
    assert "line 3: no JSON" in done.stderr
    assert "line 4: the question is empty" in done.stderr
    assert not out.exists()
    done = research(home, *command, "--skip-bad")
    assert done.returncode == 0
    assert "1 done + 0 failed = 1 row (2 bad rows left out)" in done.stderr


def test_refusals(home: Path, file: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out.jsonl")
    cases = [
        ([str(tmp_path / "none.csv"), "-o", out, "--offline"], "can't be read"),
        ([str(file), "--offline"], "--out"),
        ([str(file), "-o", str(file), "--offline"], "the file of the questions"),
        ([str(file), "-o", str(tmp_path / "x" / "out.jsonl"), "--offline"], "no file in a folder that exists"),
        ([str(file), "-o", str(tmp_path), "--offline"], "no file in a folder that exists"),
        ([str(file), "-o", str(tmp_path / "out.csv"), "--offline"], "results are JSON lines"),
        ([str(file), "-o", out, "--offline", "--limit", "0"], "limit"),
        ([str(file), "-o", out, "--offline", "--max-usd", "1,50"], "max"),
        ([str(file), "-o", out, "--offline", "--column", "nothing"], "no column 'nothing'"),
        ([str(file), "-o", out, "--sort"], "there is no"),
    ]
    for arguments, told in cases:
        done = research(home, "batch", *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert told in done.stderr, arguments
    assert not Path(out).exists()


def test_a_paid_batch_wants_a_cap_or_a_yes(home: Path, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    paid = {"ANTHROPIC_API_KEY": "canary-key-0123456789", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    done = research(home, "batch", str(file), "-o", str(out), "--offline", **paid)
    assert done.returncode == 2
    assert "2 rows: expected $" in done.stderr
    assert "--max-usd" in done.stderr
    assert "--yes" in done.stderr
    assert not out.exists()
    dry = research(home, "batch", str(file), "-o", str(out), "--offline", "--dry-run", **paid)
    assert dry.returncode == 0
    assert "2 rows: expected $" in dry.stdout
    assert not out.exists()
    assert "canary" not in done.stderr + dry.stderr + dry.stdout


def test_a_sample_is_run_and_projected(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.txt"
    file.write_text("".join(f"How tall is tower {number}?\n" for number in range(30)))
    out = tmp_path / "out.jsonl"
    done = research(home, "batch", str(file), "-o", str(out), "--offline", "--dry-run", "--sample", "5")
    assert done.returncode == 0, done.stderr
    assert len(out.read_text().splitlines()) == 5
    assert "From 5 rows at $0 each, as if cold: 25 further rows are expected to cost $0" in done.stdout


def test_sorting_runs_nothing(home: Path, file: Path) -> None:
    out = file.with_name("out.jsonl")
    assert research(home, "batch", str(file), "-o", str(out), "--offline").returncode == 0
    lines = sorted(out.read_text().splitlines(keepends=True), key=lambda line: -json.loads(line)["row"])
    out.write_text("".join(lines))
    done = research(home, "batch", str(file), "-o", str(out), "--sort")
    assert done.returncode == 0
    assert [json.loads(line)["row"] for line in out.read_text().splitlines()] == [1, 2]


SLOW = "import asyncio, research.web.index.local as local\nasync def never(*_): await asyncio.sleep(60)\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_keep_what_is_finished(home: Path, tmp_path: Path, number: int, code: int) -> None:
    file, out = tmp_path / "questions.txt", tmp_path / "out.jsonl"
    file.write_text(f"What did signal {number} do?\nWho sent signal {number}?\n")  # nobody has asked this before
    command = [
        *RUN[:2],
        f"{SLOW}local.LocalWeb.search = never\n{RUN[2]}",
        "batch",
        str(file),
        "-o",
        str(out),
        "--offline",
    ]
    with subprocess.Popen(command, env=environment(home), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "fixed over" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(0.5)
        other = research(home, "batch", str(file), "-o", str(out), "--offline")
        os.kill(process.pid, number)
        _, told = process.communicate(timeout=20)
    assert (other.returncode, "another process writes it" in other.stderr) == (2, True)
    assert process.returncode == code, told
    assert "Traceback" not in told
    assert "0 done + 0 failed + 2 not started = 2 rows" in told
    assert "takes it up again" in told
    assert research(home, "batch", str(file), "-o", str(out), "--offline").returncode == 0
    assert len(out.read_text().splitlines()) == 2


def test_the_summary_counts_all_rows_whichever_command_ran_them(home: Path, file: Path) -> None:
    first = batch(home, file, "--limit", "1", "--json")
    assert json.loads(first.stdout)["endings"] == {"answered": 1}
    assert "by this command" not in first.stderr
    then = batch(home, file, "--json")
    totals = json.loads(then.stdout)
    assert totals["endings"] == {"answered": 1, "not answered": 1}
    assert totals["this_command"] == {"endings": {"not answered": 1}, "errors": {}}
    assert "2 done, 1 of them before" in then.stderr
    assert "  1 answered, 1 not answered\n  by this command: 1 not answered\n" in then.stderr
    last = batch(home, file, "--json")
    assert json.loads(last.stdout)["endings"] == {"answered": 1, "not answered": 1}
    assert json.loads(last.stdout)["this_command"] == {"endings": {}, "errors": {}}
    assert "of the work reused" not in last.stderr


def test_the_report_of_a_batch(home: Path, file: Path) -> None:
    assert batch(home, file).returncode == 0
    done = research(home, "report", str(file.with_suffix(".jsonl")), "-o", str(home / "report.md"))
    assert done.returncode == 0, done.stderr
    assert "fixed" in (home / "report.md").read_text()
    assert str(home / "report.md") in done.stderr


def test_a_refused_key_stops_a_batch_as_it_stops_a_question(home: Path, file: Path) -> None:
    with provider(401) as (url, keys):
        own = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": CANARY}
        models = ["--cheap", "openai:small", "--capable", "openai:small"]
        done = batch(home, file, *models, "--yes", "--json", **own)
        asked = research(home, "ask", "--offline", *models, "--max-usd", "none", "Who refuses it?", **own)
    assert keys
    assert (done.returncode, asked.returncode) == (2, 2)
    assert json.loads(done.stdout)["errors"] == {"AuthError": 2}
    assert "  2 key missing or refused\n" in done.stderr
    assert "AuthError" not in done.stderr
    assert "of the work reused" not in done.stderr
    assert "It stopped early" in done.stderr


def test_every_error_has_words() -> None:
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert {*errors.WORDS} == kinds - {"ResearchError", "PipelineError"}
