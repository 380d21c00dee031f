"""What a user sees of the evidence: names for numbers, checks, exit codes, `show --evidence`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import QUESTION, research


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the question has been asked once."""
    folder = tmp_path_factory.mktemp("evidence")
    assert research(folder, "ask", "--offline", QUESTION).returncode == 0
    return folder


def test_sources_by_name(home: Path) -> None:
    told = research(home, "ask", "--offline", "--cite", "name", QUESTION)
    assert told.returncode == 0
    assert "[1]" not in told.stdout
    assert "labor-statistics.example: Consumer Price Index" in told.stdout
    assert research(home, "ask", "--offline", "--cite", "colour", QUESTION).returncode == 2


def test_strict_and_verify(home: Path) -> None:
    told = research(home, "ask", "--offline", "--strict", "--verify", "--json", QUESTION)
    assert told.returncode == 0
    answer = json.loads(told.stdout)
    assert answer["verification"] == "failed"  # the built-in model does not check sentences, and says so
    assert any(note.startswith("Not checked by a model") for note in answer["notes"])
    assert answer["citation_recall"] == 1.0
    assert {value["fact"]["site"] for value in answer["disagreements"][0]["values"]} == {
        "labor-statistics.example",
        "moneybrief.example",
    }


def test_each_sentence_with_its_quotes(home: Path) -> None:
    research(home, "ask", "--offline", QUESTION)
    plain = research(home, "show", "--evidence").stdout
    assert "  supported\n" in plain
    assert "«The US inflation rate was 3.0 percent in" in plain
    assert "\x1b" not in plain
    linked = research(home, "show", "--evidence", FORCE_HYPERLINK="1").stdout
    assert "\x1b]8;;https://www.labor-statistics.example/news/cpi-january-2025#:~:text=The%20US%20inflation" in linked
