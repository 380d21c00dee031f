"""What counts as right, and what a figure of quality says, worked out by hand."""

from __future__ import annotations

import pytest

from research.records import Answer, Ending, Sentence
from research.report.quality import contains, f1, is_unanswerable, says, score
from tests.report.trials import answer, fact


@pytest.mark.parametrize(
    ("text", "reference", "right"),
    [
        ("The rate was 3.0 percent in January.", "3.0 percent", True),
        ("The rate was 3.0% in January.", "3.0 percent", False),
        ("It was founded by Ada Lovelace.", "ada lovelace", True),
        ("It was founded by Ada.", "Ada Lovelace", False),
        ("It is the tower of Ulm.", "The tower of Ulm", True),
        ("Yes, it has.", "Yes", True),
        ("He said yes to it.", "yes", False),
        ("It is nothing of the kind.", "no", False),
        ("No. It is not.", "No.", True),
        ("Anything", "", False),
    ],
)
def test_a_reference_stands_in_an_answer_word_for_word(text: str, reference: str, right: bool) -> None:
    assert contains(text, reference) is right


@pytest.mark.parametrize(
    ("text", "reference", "right"),
    [
        ("The rate was 3.0% in January.", "3.0 percent", True),
        ("It costs about $4.95.", "4.95", True),
        ("It is 161.53 metres tall.", "161.5 metres", True),
        ("It is 162 metres tall.", "161.53 m", True),
        ("It is 161 metres tall.", "161.53 m", False),
        ("It is 164 metres tall.", "161.5 metres", False),
        ("It is 3 euros.", "3 percent", False),
        ("On 3 May 2021 it opened.", "May 2021", True),
        ("In May it opened.", "May 2021", False),
        ("1.2 million people live there.", "1,204,000", True),
        ("It has 12 floors and 161.5 metres.", "it is 161.5 metres tall and has 12 floors", False),
    ],
)
def test_a_number_or_date_may_be_rounded_and_not_otherwise_wrong(text: str, reference: str, right: bool) -> None:
    assert says(text, reference) is right


def test_token_f1_by_hand() -> None:
    """Four tokens against three (articles do not count), two of them common: 2 · 2 / (4 + 3)."""
    assert f1("The tall tower of Ulm", "a tower in Ulm") == pytest.approx(4 / 7)
    assert f1("", "Ulm") == 0.0


def test_scores_of_an_answer() -> None:
    found = score("How tall is it?", answer("It is 3 m tall [1]."), ["3 m", "three metres"])
    assert found["right"] == found["contains"] == 1.0
    assert found["exact"] == 0.0
    assert found["f1"] == pytest.approx(2 * 2 / (5 + 2)), "markers are no tokens"
    assert found["recall"] == 1.0
    assert score("Who?", answer("Ada Lovelace [1]."), ["Ada Lovelace"])["exact"] == 1.0


def test_what_is_not_answered_is_not_right() -> None:
    nothing = Answer(text="The sources speak of 3 m [1].", ending=Ending.NOT, reason="no")
    found = score("How tall is it?", nothing, ["3 m"])
    assert found["right"] == found["contains"] == found["f1"] == 0.0
    assert "recall" not in found


def test_not_to_answer_is_right_where_there_is_no_answer() -> None:
    nothing = Answer(text="", ending=Ending.NOT, reason="no evidence was found")
    assert score("How tall is it?", nothing, [], unanswerable=True) == {"right": 1.0}
    assert score("How tall is it?", answer(), [], unanswerable=True)["right"] == 0.0
    assert is_unanswerable({"answers": [], "class": "near miss"})
    assert not is_unanswerable({"answers": ["3 m"]})
    assert not is_unanswerable({"answers": ""})


def test_without_references_only_citations_are_measured() -> None:
    assert set(score("How tall is it?", answer(), [])) == {"recall", "precision", "stale"}


def test_an_answer_without_search_has_no_citation_figures() -> None:
    memory = answer("It is 3 m tall.", [], ending=Ending.WITHOUT_SEARCH, sentences=())
    assert set(score("How tall is it?", memory, ["3 m"])) == {"right", "exact", "contains", "f1"}


def test_half_supported_and_old() -> None:
    text = "It is 3 m tall [1]. It is blue [1]."
    marks = (Sentence(start=0, end=19, status="supported"), Sentence(start=20, end=35, status="unsupported"))
    old = answer(text, [fact(date="2020-01-01")], sentences=marks, newest="2020-01-01")
    found = score("How tall is it currently?", old, [])
    assert found["recall"] == 0.5
    assert found["stale"] == 1.0
    assert score("How tall was it in 1999?", old, [])["stale"] == 0.0
