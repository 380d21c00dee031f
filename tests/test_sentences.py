"""Sentences with offsets, and words that compare well."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.sentences import STOP_WORDS, content_words, spans, stem, words


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\n ", []),
        ("One. Two!  Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Smith met Mr. J. R. Jones. They spoke.", ["Dr. Smith met Mr. J. R. Jones.", "They spoke."]),
        ("It rose 3.1 percent. Then it fell.", ["It rose 3.1 percent.", "Then it fell."]),
        ("The U.S. Bureau said so.", ["The U.S. Bureau said so."]),
        ("It stayed in the U.S. The rest left.", ["It stayed in the U.S.", "The rest left."]),
        ("Plants (e.g. Wheat) grow. Good.", ["Plants (e.g. Wheat) grow.", "Good."]),
        ("He said “Stop.” Then he left.", ["He said “Stop.”", "Then he left."]),
        ("(It was late.) We left.", ["(It was late.)", "We left."]),
        ('"Really?" he asked. Yes.', ['"Really?" he asked.', "Yes."]),
        ("See No. 5 there. No. We go.", ["See No. 5 there.", "No.", "We go."]),
        ("Apple Inc. Results were good.", ["Apple Inc. Results were good."]),
        ("Published Jan. 5 in Paris.", ["Published Jan. 5 in Paris."]),
        ("東京は首都です。人口は？「多い。」そう。", ["東京は首都です。", "人口は？", "「多い。」", "そう。"]),
        ("A heading\nA line. Another", ["A heading", "A line.", "Another"]),
        ("| a. B | c. D |\n| --- | --- |", ["| a. B | c. D |", "| --- | --- |"]),
        ("Year | Rate | Note. More\n", ["Year | Rate | Note. More"]),
        ("1. First item. 2 of them.\n2. Second", ["1. First item.", "2 of them.", "2. Second"]),
        ("Rates fell.[1] They rose. [2][3] Done [4].", ["Rates fell.[1]", "They rose. [2][3]", "Done [4]."]),
        ("Wait... What?! Yes", ["Wait...", "What?!", "Yes"]),
    ],
)
def test_spans(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Élan naïve ＡＢＣ", ["elan", "naive", "abc"]),
        ("e\u0301lan", ["elan"]),
        ("3.0 and 1,234 and 1,234,567.8 and 3,5", ["3.0", "and", "1234", "and", "1234567.8", "and", "3.5"]),
        ("3.1% of 20 %", ["3.1", "of", "20"]),
        ("東京都は", ["東京", "京都", "都は"]),
        ("人", ["人"]),
        ("country’s don't", ["country's", "don't"]),
        ("COVID-19 h1n1 5km", ["covid", "19", "h1n1", "5", "km"]),
        ("Straße", ["strasse"]),
        ("हिन्दी", ["हिन्दी"]),
        ("2024-01-05", ["2024", "01", "05"]),
        ("version 1.2.3", ["version", "1.2.3"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_content_words_meet_in_one_form() -> None:
    assert content_words("The countries rated it") == content_words("country rates")
    assert content_words("The planned trips of a planning office") == ["plan", "trip", "plan", "offic"]
    assert content_words("It is not the country's") == ["not", "country"]
    assert not {"not", "no", "never"} & STOP_WORDS


def test_stems_leave_short_and_foreign_words() -> None:
    assert [stem(word) for word in ("is", "bus", "red", "ring", "größe", "3.0")] == [
        "is", "bus", "red", "ring", "größe", "3.0",
    ]  # fmt: skip


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab A.!?…。 \n|[1]\"'()\u0301é3,")))
def test_spans_cover_all_that_is_not_white_space(text: str) -> None:
    found = spans(text)
    edges = [edge for span in found for edge in span]
    assert edges == sorted(edges)
    assert "".join("".join(text[a:b].split()) for a, b in found) == "".join(text.split())
    assert all(text[a:b] == text[a:b].strip() for a, b in found)


@pytest.mark.parametrize("unit", [".", "\u0301\u0327", "a", "[1", "|", "1,", "。", "U.S. ", "'", "x. [1 "])
def test_time_is_linear_in_the_text(unit: str) -> None:
    def took(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        spans(text)
        words(text)
        return time.process_time() - start

    # Quadratic work would take 64 times as long for 8 times the text.
    assert took(160_000) < 30 * took(20_000) + 0.5
