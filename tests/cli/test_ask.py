"""`research ask` as a user meets it: output, exit codes, refusals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import QUESTION, research


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


def test_a_cited_answer_on_stdout_and_the_account_on_stderr(home: Path) -> None:
    done = research(home, "ask", "--offline", QUESTION)
    assert done.returncode == 0
    assert "3.0 percent" in done.stdout
    assert "3.1 percent" in done.stdout
    assert "[1]" in done.stdout
    assert "https://www.labor-statistics.example/" in done.stdout
    assert "built-in extractive model" in done.stdout
    assert "sample web, as of 2025-03-01" in done.stderr
    assert "Paid now $0" in done.stderr
    assert "(no model was called)" in done.stderr  # all of it was reused


def test_json_has_both_spans_of_every_citation(home: Path) -> None:
    done = research(home, "ask", "--offline", "--json", QUESTION)
    answer = json.loads(done.stdout)
    assert answer["ending"] == "answered"
    assert answer["citations"]
    for citation in answer["citations"]:
        assert answer["text"][citation["start"] : citation["end"]].strip()
        fact = citation["fact"]
        assert fact["end"] - fact["start"] == len(fact["quote"])
        assert fact["url"].split("/")[2].endswith(".example")


def test_calls_of_the_built_in_model_are_counted_where_calls_are_capped(home: Path) -> None:
    done = research(home, "ask", "--offline", "--json", "--fresh", "--max-calls", "5", QUESTION)
    assert json.loads(done.stdout)["paid"]["models"] == 5  # of the seven that it would take
    done = research(home, "ask", "--offline", "--fresh", "--max-calls", "2", QUESTION)
    assert (done.returncode, done.stdout) == (5, "")
    assert "2 of --max-calls 2" in done.stderr


def test_from_standard_input(home: Path) -> None:
    assert research(home, "ask", "--offline", "-", stdin=QUESTION.encode()).returncode == 0
    done = research(home, "ask", "--offline", "-", stdin=b"\xff\xfe?")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no UTF-8 text" in done.stderr


@pytest.mark.parametrize(
    ("question", "told"),
    [("", "the question is empty"), (" \t", "the question is empty"), ("\u200b\u2060", "the question is empty"),
     ("?!", "the question is empty"), ("x" * 20_001, "at most 20,000")],
)  # fmt: skip
def test_what_is_no_question(home: Path, question: str, told: str) -> None:
    done = research(home, "ask", "--offline", question)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_bytes_that_are_no_text(home: Path) -> None:
    done = research(home, "ask", "--offline", "caf\udce9?")
    assert done.returncode == 2
    assert "not text" in done.stderr or "unicode" in done.stderr.lower()
    assert research(home, "ask", "--offline", "-", stdin=b"a\0b?").returncode == 2
    assert research(home, "ask", "--offline", "-", stdin=b"x" * (1 << 20)).returncode == 2


def test_the_two_unicode_forms_are_one_question(home: Path) -> None:
    first = research(home, "ask", "--offline", "Wie hoch ist die Inflation in München?")
    second = research(home, "ask", "--offline", "Wie hoch ist die Inflation in Mu\u0308nchen?")
    assert first.stdout == second.stdout
    assert "(no model was called)" in second.stderr


def test_unless_told_otherwise_the_live_web_is_asked_by_engines_without_a_key(home: Path) -> None:
    nobody = {f"{engine}_BASE_URL": "http://127.0.0.1:9/" for engine in ("DUCKDUCKGO", "MOJEEK", "WIKIPEDIA")}
    done = research(home, "ask", QUESTION, **nobody)
    assert (done.returncode, done.stdout) == (6, "")
    assert "fixed over the live web by duckduckgo@127.0.0.1:9,mojeek@127.0.0.1:9,wikipedia@127.0.0.1:9" in done.stderr
    told = "no search engine could be reached (duckduckgo@127.0.0.1:9, mojeek@127.0.0.1:9, wikipedia@127.0.0.1:9)"
    assert done.stderr.count("could be reached") == 1
    assert f"\nerror: {told}: is this machine online? `--offline` asks the bundled sample web\n" in done.stderr
    assert "skipped" not in done.stderr


@pytest.mark.parametrize(
    ("search", "told"),
    [("brave", "brave can't be asked: set BRAVE_API_KEY,"), ("searxng", "searxng can't be asked: set SEARXNG_URL,"),
     ("tavily,serper", "tavily, serper can't be asked: set TAVILY_API_KEY and SERPER_API_KEY,")],
)  # fmt: skip
def test_engines_without_their_keys_are_told_before_anything_is_run(home: Path, search: str, told: str) -> None:
    (home / "questions.txt").write_text(QUESTION)
    for command in (["ask", QUESTION], ["batch", "questions.txt", "-o", "out.jsonl"]):
        done = research(home, *command, "--search", search, BRAVE_API_KEY="  ")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"error: {told}" in done.stderr
    assert len(list((home / "runs").iterdir())) == 1


def test_a_web_that_is_not_there(home: Path) -> None:
    done = research(home, "ask", "--search", "local:none", QUESTION)
    assert done.returncode == 2
    assert "research index build" in done.stderr
    assert research(home, "ask", "--search", "local:../../x", QUESTION).returncode == 2


def test_out_writes_a_file_and_replaces_none_unasked(home: Path) -> None:
    out = home / "answer.md"
    done = research(home, "ask", "--offline", "-o", str(out), QUESTION)
    assert (done.returncode, done.stdout) == (0, "")
    assert out.read_text().startswith(f"# {QUESTION}")
    done = research(home, "ask", "--offline", "-o", str(out), QUESTION)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert research(home, "ask", "--offline", "-o", str(out), "--force", QUESTION).returncode == 0
    assert research(home, "ask", "--offline", "-o", str(home), "--force", QUESTION).returncode == 2
    assert research(home, "ask", "--offline", "-o", str(home / "no" / "x.md"), QUESTION).returncode == 2
    as_json = home / "answer.json"
    assert research(home, "ask", "--offline", "-o", str(as_json), QUESTION).returncode == 0
    assert json.loads(as_json.read_text())["ending"] == "answered"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-p", "fxied"], "there is no pipeline 'fxied'; shipped are"),
        (["-p", "none.toml"], "there is no such file"),
        (["--fresh", "rrank"], "fixed has no stage 'rrank'; it has plan, search, rerank, fetch, extract, synthesize"),
        (["--as-of", "tomorrow"], "--as-of 'tomorrow' is no date; write it as 2025-03-01"),
        (["--web-date", "2025-02-30"], "is no date"),
        (["--offlin"], "no such option"),
    ],
)
def test_mistakes_on_the_command_line(home: Path, arguments: list[str], told: str) -> None:
    done = research(home, "ask", "--offline", *arguments, QUESTION)
    assert (done.returncode, done.stdout) == (2, "")
    assert told.lower() in done.stderr.lower()


def test_fresh_makes_everything_or_one_stage_anew(home: Path) -> None:
    assert "no model was called" not in research(home, "ask", "--offline", "--fresh", QUESTION).stderr
    assert "(1 model call," in research(home, "ask", "--offline", "--fresh", "rerank", QUESTION).stderr
    why = research(home, "why").stdout
    assert "rerank      made: asked for anew" in why
    assert why.count("reused") == 5


def test_frozen_uses_what_is_recorded_and_names_what_is_missing(home: Path) -> None:
    assert research(home, "ask", "--offline", "--frozen", QUESTION).returncode == 0
    done = research(home, "ask", "--offline", "--frozen", "How many people live in Seoul?")
    assert done.returncode == 6
    assert "not recorded" in done.stderr
    assert "Seoul" in done.stderr


def test_what_cannot_be_answered_ends_so(home: Path) -> None:
    done = research(home, "ask", "--offline", "Who painted the ceiling of the opera house of Xanadu in 1703?")
    assert done.returncode == 4
    assert done.stdout.startswith("Not answered: ")


def test_show_runs_and_why(home: Path) -> None:
    run = research(home, "runs").stdout.split()[0]
    assert research(home, "show", run).stdout == research(home, "ask", "--offline", QUESTION).stdout
    plan = json.loads(research(home, "show", run, "--stage", "plan", "--json").stdout)
    assert plan["needs_search"] is True
    pages = json.loads(research(home, "show", run, "--stage", "fetch", "--json").stdout)
    assert len(pages) == 4
    assert {page["outcome"] for page in pages} == {"ok"}
    assert "── extract 1" in research(home, "show", run, "--stage", "extract").stdout
    assert "has nothing of a stage 'none'" in research(home, "show", run, "--stage", "none").stderr
    assert research(home, "why", run).stdout.startswith(f"run {run}")


@pytest.mark.parametrize(
    "run", ["../../x", "/etc/passwd", "20250301-101530.123-k7q2", "a\nb", "", "20250301-101530.123-k7q2/../x"]
)
def test_run_ids_are_checked_before_they_touch_a_path(home: Path, run: str) -> None:
    for command in ("show", "why"):
        done = research(home, command, run)
        assert (done.returncode, done.stdout) == (2, "")
        assert "`research runs` lists them" in done.stderr


def test_a_store_that_cannot_be_written_is_a_notice(home: Path) -> None:
    shutil.rmtree(home / "store")
    (home / "store").write_text("in the way")
    done = research(home, "ask", "--offline", QUESTION)
    assert done.returncode == 0
    assert "3.0 percent" in done.stdout
    assert "goes on without a store" in done.stderr


def test_a_damaged_value_is_reported_and_made_again(home: Path) -> None:
    import sqlite3

    database = sqlite3.connect(home / "store" / "cache.db")
    with database:
        database.execute(
            "UPDATE Cache SET value = substr(value, 1, length(value) - 1) || X'00' WHERE rowid ="
            " (SELECT rowid FROM Cache WHERE key LIKE 'value:%' AND CAST(value AS TEXT) LIKE '%needs_search%')"
        )
    database.close()
    done = research(home, "ask", "--offline", QUESTION)
    assert done.returncode == 0
    assert "is damaged and counts as missing" in done.stderr
    assert "(1 model call," in done.stderr


def test_a_reader_that_closes_early(home: Path) -> None:
    import subprocess

    from tests.commands import RUN, environment

    process = subprocess.Popen(
        [*RUN, "show", "--stage", "fetch"],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    process.wait(30)
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors
