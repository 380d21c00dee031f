"""Quotes are found where they stand, graded by how they differ, and never bent."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.evidence.quotes import locate, surroundings
from research.records import Grade

PAGE = (
    "Consumer prices rose 3.1 percent in the 12 months to June, the Bureau of Labor Statistics (BLS) said on Tuesday. "
    "“Shelter wasn’t the main driver,” an official said — energy was.\n"
    "Économie générale: l’inflation a été de 2,4 % en 2023.\n\n"
    "Prices for used cars did not fall; they rose by 1,234,567 units.\n"
    "東京都の人口は約1400万人です。大阪はそれより少ない。\n"
)


@pytest.mark.parametrize(
    ("quote", "grade", "passage"),
    [
        ("rose 3.1 percent in the 12 months", Grade.EXACT, "rose 3.1 percent in the 12 months"),
        ("  3.1 percent ", Grade.EXACT, "3.1 percent"),
        ('"Shelter wasn\'t the main driver,"', Grade.NORMALISED, "“Shelter wasn’t the main driver,”"),
        ("an official said - energy was.", Grade.NORMALISED, "an official said — energy was."),
        ("an official said -- energy was.", Grade.NORMALISED, "an official said — energy was."),
        ("energy was. Économie générale", Grade.NORMALISED, "energy was.\nÉconomie générale"),
        (unicodedata.normalize("NFD", "Économie générale: l'inflation"), Grade.NORMALISED, None),
        ("did not fall;\u00a0they \u200brose", Grade.NORMALISED, "did not fall; they rose"),
        ('"rose 3.1 percent in the 12 months"', Grade.NORMALISED, "rose 3.1 percent in the 12 months"),
        ("rose ３．１ percent in the", Grade.NORMALISED, "rose 3.1 percent in the"),
        ("東京都の人口は約1400万人です。", Grade.EXACT, "東京都の人口は約1400万人です。"),
        ("consumer prices rose 3.1 percent", Grade.FUZZY, "Consumer prices rose 3.1 percent"),
        ("the Bureau of Labor Statistics said on Tuesday.", Grade.FUZZY, None),
        ("Consumer prices … the Bureau of Labor Statistics", Grade.FUZZY, None),
        ("Consumer prices [...] in the 12 months to June", Grade.FUZZY, None),
        ("Shelter wasnt the main drivers, an official said energy was", None, None),  # a negation was lost
        ("Consumer prices rose 3.2 percent in the 12 months to June", None, None),
        ("Consumer prices rose percent in the 12 months to June", None, None),
        ("Consumer prices declined 3.1 percent in the 12 months to June", None, None),
        ("Prices for used cars did fall; they rose by 1,234,567 units.", None, None),
        ("Prices for used cars … fall; they rose", None, None),
        ("234,567 units", None, None),
        ("1 percent in the 12 months", None, None),
        ("nothing of the kind stands here", None, None),
        ("the main driver", Grade.EXACT, "the main driver"),
        ("on Tuesday", None, None),
        ("3.1", None, None),
        ("used car", None, None),
        ("Prices for used car", None, None),
        ("", None, None),
        ("…", None, None),
    ],
)
def test_locate(quote: str, grade: Grade | None, passage: str | None) -> None:
    found = locate(quote, PAGE)
    assert (found and found.grade) == grade
    if found and passage:
        assert PAGE[found.start : found.end] == passage


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("5 percent of people", "Some 3.5 percent of people agree."),
        ("5 degrees in winter", "It is -5 degrees in winter."),
        ("it grew by 3", "Then it grew by 3.5 percent."),
        ("5 percent of homes", "About 3–5 percent of homes."),
        ("10 of 102 people", "10 of 10² people"),
        ("eat at the cafe", "eat at the cafe\u0301s"),
        ("rose by 3 million people in May", "It rose by 3 billion people in May."),
    ],
)
def test_a_quote_does_not_cut_numbers_or_words(quote: str, text: str) -> None:
    found = locate(quote, text)
    assert found is None or found.grade == Grade.FUZZY  # accents may differ in the fuzzy grade only
    assert found is None or "cafe" in quote


def test_a_place_in_a_list_of_references_is_passed_over() -> None:
    text = "See: Prices rose by 3 percent.\nLater. Prices rose by 3 percent."
    first, second = text.index("Prices"), text.rindex("Prices")
    found = locate("Prices rose by 3 percent.", text, [(0, first + 4)])
    assert found is not None
    assert found.start == second
    assert locate("Prices rose by 3 percent.", text, [(0, len(text))]) is None


def test_surroundings_keep_whole_words() -> None:
    text = "alpha beta gamma delta QUOTE epsilon zeta eta"
    start = text.index("QUOTE")
    assert surroundings(text, start, start + 5, width=14) == ("gamma delta ", " epsilon zeta")
    assert surroundings(text, start, start + 5) == (text[:start], text[start + 5 :])
    assert surroundings("aaaaaa", 3, 4, width=2) == ("aa", "aa")


CHARS = st.text(alphabet=st.sampled_from("ab cd\n“”\"'’—-–…é\u0301\u00ad\u200b 1.5,²½ﬁ東京not"), max_size=80)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(CHARS, CHARS, CHARS)
def test_offsets_give_back_the_quote(before: str, quote: str, after: str) -> None:
    text = f"{before}\n{quote}\n{after}"
    found = locate(quote, text)
    if found is None:
        return
    passage = text[found.start : found.end]
    assert passage
    if found.grade == Grade.EXACT:
        assert passage == quote.strip()
    if found.grade == Grade.NORMALISED:
        assert letters(passage) == letters(quote)


def letters(text: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKD", text) if char.isalnum())


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(["alpha", "beta", "gamma", "7", "of", "12.5"]), min_size=3, max_size=12), CHARS)
def test_a_quote_that_stands_in_the_text_is_found(chosen: list[str], rest: str) -> None:
    quote = " ".join(chosen)
    if len(quote) < 12 and not any(char.isdigit() for char in quote):
        return
    if len(set(chosen)) < 2 and chosen[0][0].isdigit():
        return
    found = locate(quote, f"{rest}\n{quote}\n{rest}")
    assert found is not None
    assert found.grade == Grade.EXACT


@pytest.mark.parametrize("unit", ["a", "\u0301\u0327", "the ", "\u200b", "a b ", "“", "the quick 1 ", "…", "\n", "見"])
def test_time_is_linear_in_the_page(unit: str) -> None:
    quotes = ["the quick 1 brown fox jumps over the lazy dog", "the the the … the the", "a b a b a b a b a b a b a c"]

    def took(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        for quote in quotes:
            locate(quote, text)
        return time.process_time() - start

    # Quadratic work would take 64 times as long for 8 times the text.
    assert took(80_000) < 30 * took(10_000) + 0.5
