"""What mistakes on the command line are answered with: one line that says what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import QUESTION, research
from tests.test_docs import NOTE


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ask", "what", "is", "the", "rate"], "(is the rate); put the question in quotes"),
        (["aks", "it"], "there is no command 'aks'. Did you mean 'ask'?"),
        (["zzzz"], "there is no command 'zzzz'; `research --help` lists them"),
        (["pipelines", "shwo"], "Did you mean 'show'?"),
        (["runs", "-n", "abc"], "error: --limit: it must be a whole number"),
        (["runs", "-n", "0"], "error: --limit: it must be at least 1"),
        (["ask", "--tools", "both", QUESTION], "error: --tools: 'both' is not one of 'native', 'schema'"),
        (["ask", "-p", "fixd", QUESTION], "or give a file's path. Did you mean 'fixed'?"),
        (["ask", "--cheap", "gpt-4", QUESTION], "'gpt-4' is no provider; a model is written PROVIDER:MODEL, like"),
        (["ask", "--cheap", "antropic", QUESTION], "llama.cpp. Did you mean 'anthropic'?"),
        (["ask", "--cheap", "antropic:x", QUESTION], "in the user's config. Did you mean 'anthropic'?"),
        (["ask", "--search", "duckduck", QUESTION], "and local:NAME. Did you mean 'duckduckgo'?"),
        (["ask", "--search", "local:none", QUESTION], "there is no index 'none'"),
        (["ask", "--offline", "--as-of", "now", QUESTION], "'now' is no date"),
        (["batch", "questions.txt", "-o", "x.jsonl", "--search", "local:none"], "there is no index 'none'"),
        (["index", "remove", "none"], "there is no index 'none'; `research index list` lists them"),
    ],
)
def test_a_mistake_is_told_alone(tmp_path: Path, arguments: list[str], told: str) -> None:
    (tmp_path / "questions.txt").write_text(QUESTION)
    done = research(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "?." not in done.stderr
    assert "No model is set up" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_key_of_spaces_is_none(tmp_path: Path) -> None:
    done = research(tmp_path, "models", ANTHROPIC_API_KEY="  ", OLLAMA_HOST="127.0.0.1:9")
    assert "builtin:extractive" in done.stdout
    assert "ANTHROPIC_API_KEY is set" not in done.stdout


def test_indexes_are_listed_and_removed(tmp_path: Path) -> None:
    done = research(tmp_path, "index", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no indexes yet" in done.stderr
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ulm.md").write_text(NOTE)
    assert research(tmp_path, "index", "build", "notes", "--name", "mine").returncode == 0
    assert research(tmp_path, "index", "list").stdout.startswith("mine  1 document, 0.")
    (tmp_path / "index" / "other.db").write_text("no database at all, but text that is long enough to be none" * 20)
    assert "\nother" in research(tmp_path, "index", "list").stdout
    assert research(tmp_path, "index", "remove", "mine").returncode == 0
    assert [path.name for path in (tmp_path / "index").iterdir()] == ["other.db"]
    assert (tmp_path / "notes" / "ulm.md").exists()
    assert research(tmp_path, "index", "remove", "../notes").returncode == 2
