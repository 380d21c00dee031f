"""How recent evidence must be for a question."""

from __future__ import annotations

from datetime import date

import pytest

from research.evidence.freshness import implied, newest, warning

TODAY = date(2025, 3, 1)


@pytest.mark.parametrize(
    ("question", "since"),
    [
        ("What is the current US inflation rate?", date(2024, 12, 1)),
        ("Who is the latest winner?", date(2024, 12, 1)),
        ("What happened today?", date(2025, 2, 28)),
        ("How much rain fell this month?", date(2025, 3, 1)),
        ("How many films came out this year?", date(2025, 1, 1)),
        ("What was it in February 2025?", date(2025, 2, 1)),
        ("Who won in 2024, and who wins in 2025?", date(2025, 1, 1)),
        ("What will it be in 2030?", None),
        ("Wie hoch ist die aktuelle Inflation?", date(2024, 12, 1)),
        ("Quel est le taux actuel ?", date(2024, 12, 1)),
        ("今年の出生数は?", date(2025, 1, 1)),
        ("Какая сейчас ключевая ставка?", date(2024, 12, 1)),
        ("How tall is the tower of Ulm?", None),
        ("Who knows the answer?", None),
    ],
)
def test_what_a_question_implies(question: str, since: date | None) -> None:
    found = implied(question, TODAY)
    assert (found and found[0]) == since


def test_the_newest_date_is_none_of_the_future() -> None:
    assert newest(["2024-05-01", None, "2025-02-12", "2099-01-01", "soon"], "2025-03-01") == "2025-02-12"
    assert newest(["2025-03-02"], "2025-03-01") == "2025-03-02"  # it is tomorrow somewhere
    assert newest([None], "2025-03-01") == ""


def test_warnings() -> None:
    assert warning("What is the current rate?", "2025-02-12", "2025-03-01") == ""
    assert "2024-07-11" in warning("What is the current rate?", "2024-07-11", "2025-03-01")
    assert "no cited source has a date" in warning("What is the current rate?", "", "2025-03-01")
    assert warning("How tall is it?", "", "2025-03-01") == ""
    assert warning("What is the current rate?", "2020-01-01", "") == ""
