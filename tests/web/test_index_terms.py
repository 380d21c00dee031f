"""Words of an index, and passages shown of a page; expected values are worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.web.index.snippets import LONGEST, plain, snippet
from research.web.index.terms import MOST_TERMS, expression, searchable, terms


def test_runs_without_spaces_become_bigrams_and_a_last_character() -> None:
    # Entries of a text are deleted by cutting it again: whoever changes this changes ANALYSIS too.
    assert searchable("iPhone15は東京Ａbc 서울").split() == ["iphone15", "は東", "東京", "京", "abc", "서울", "울"]
    assert searchable("Élan Straße ﬁn").split() == ["elan", "strasse", "fin"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What is the inflation rate?", ["inflation", "rate"]),
        ("Who's the DiCaprio's third child?", ["dicaprio", "third", "child"]),
        ("to be or what", ["to", "be", "or", "what"]),
        ("rate RATE Rate", ["rate"]),
        ("What was the US rate that the WHO told us?", ["us", "rate", "who", "told"]),
        ("WHAT IS THE US RATE?", ["rate"]),
        ("東京都の人口 2024年", ["東京", "京都", "都の", "の人", "人口", "2024", "年"]),
        ("猫", ["猫"]),
        ("C++ and .NET 4.8", ["c", "net", "4", "8"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
    ],
)
def test_terms_of_a_query(query: str, expected: list[str]) -> None:
    assert terms(query) == expected


def test_a_single_character_is_looked_for_inside_words() -> None:
    assert expression('猫 "cat"') == '"猫"* OR "cat"'
    assert expression("?") == ""


def test_a_long_query_is_cut() -> None:
    assert len(terms(" ".join(f"word{number}" for number in range(1_000)))) == MOST_TERMS


@given(st.text(max_size=60))
def test_an_expression_is_quoted_words_only(query: str) -> None:
    for part in expression(query).split(" OR ") if expression(query) else []:
        word = part.removesuffix("*")
        assert word[0] == word[-1] == '"'
        assert not set(word[1:-1]) & set('"*^:(){}+-\0 ')


FILLER = "Nothing of interest stands in this sentence at all. "


def test_the_snippet_is_the_sentence_that_matches_best() -> None:
    best = "The inflation rate rose to 3.1 percent in November."
    text = FILLER * 40 + "Inflation is a word. " + FILLER * 40 + best + " " + FILLER * 40
    shown = snippet(text, "What was the inflation rate in November?")
    assert shown.startswith(best)
    assert shown.endswith(".")
    assert len(shown) <= LONGEST


def test_the_first_of_equal_passages_is_shown() -> None:
    text = "Zebra number one. " + FILLER * 20 + "Zebra number two."
    assert snippet(text, "zebra").startswith("Zebra number one.")


def test_without_a_match_the_beginning_is_shown() -> None:
    assert snippet("\n\n  " + FILLER * 40, "zebra") == (FILLER * 5).strip()
    assert snippet("", "zebra") == ""
    assert snippet("Short.", "") == "Short."


def test_accents_case_and_endings_match() -> None:
    for text, query in [
        ("ÉLAN vital.", "elan"),
        ("Die Straßen.", "Straße"),
        ("Two Zebras.", "zebra"),
        ("我爱东京。", "东京"),
    ]:
        assert snippet(FILLER * 30 + text, query).startswith(text), text
    assert snippet("In 1189 it fell. " + FILLER * 30 + "It cost 118.", "118") == "It cost 118."


def test_long_sentences_are_cut_between_words() -> None:
    text = "word " * 400 + "the zebra crossed the river " + "word " * 400
    shown = snippet(text, "zebra river")
    assert "zebra crossed the river" in shown
    assert LONGEST - 10 <= len(shown) <= LONGEST
    assert set(shown.split()) == {"word", "the", "zebra", "crossed", "river"}
    assert len(snippet("x" * 5_000 + "zebra" + "y" * 5_000, "zebra")) <= LONGEST


def test_snippets_carry_no_markup() -> None:
    text = (
        "## Prices\n\n| Month | Rate |\n|---|:--|\n| May | **3.1** |\n\n- see [the `table`](https://a.example/x)\n"
        "> said <b class='x'>she</b><br>and\x1b[2J ![logo](i.png) 2 < 3 <int> x**2 | end"
    )
    expected = "Prices Month Rate May 3.1 see the table said she and [2J logo 2 < 3 <int> x**2 end"
    assert plain(text) == expected
    assert snippet(text, "may rate") == expected


@given(st.text(max_size=700), st.text(max_size=20))
def test_any_text_gives_a_short_line(text: str, query: str) -> None:
    shown = snippet(text, query)
    assert len(shown) <= LONGEST
    assert "\n" not in shown
