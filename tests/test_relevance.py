"""BM25 by hand-worked numbers, and the narrowing of long pages."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.relevance import GAP, LONGEST_PASSAGE, PASSAGE, bm25, narrow, passages, rank

CATS = ("cats sleep", "dogs bark", "cats chase cats and cats")


def test_scores_are_those_of_the_formula() -> None:
    scores = bm25(["cat"], [["cat", "sleep"], ["dog", "bark"], ["cat", "chas", "cat", "play"]])
    weight = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    mean = 8 / 3
    short = weight * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / mean))
    long = weight * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / mean))
    assert scores == pytest.approx([short, 0.0, long])


def test_rank_is_best_first_and_keeps_the_order_of_equals() -> None:
    assert [index for index, _ in rank("cat", CATS)] == [2, 0, 1]
    assert rank("birds", CATS) == [(0, 0.0), (1, 0.0), (2, 0.0)]
    assert rank("cat", []) == []


def test_a_query_of_stop_words_is_read_as_plain_words() -> None:
    assert rank("to be", ["nothing", "to be or not to be"])[0][0] == 1


def test_importance_weighs_terms() -> None:
    documents = [["cat"], ["dog"]]
    assert bm25(["cat", "dog"], documents, {"dog": 0.5}) == pytest.approx(
        [bm25(["cat"], documents)[0], bm25(["dog"], documents)[1] / 2]
    )


def paragraph(word: str, count: int = 120) -> str:
    return " ".join([word] * count) + ".\n"


def test_narrow_keeps_what_bears_on_the_question_in_the_order_of_the_page() -> None:
    text = "".join(paragraph(word) for word in ("alpha00", "beta000", "gamma00", "delta00", "omega00"))
    assert len(passages(text)) == 5
    found = narrow(text, "omega00 and beta000", 2 * len(paragraph("alpha00")) + len(GAP))
    assert found.text == paragraph("beta000") + GAP + paragraph("omega00")
    assert [text[start:end] for start, end in found.spans] == [paragraph("beta000"), paragraph("omega00")]


def test_neighbours_are_joined_without_a_gap() -> None:
    text = "".join(paragraph(word) for word in ("alpha00", "beta000", "gamma00"))
    found = narrow(text, "beta000 gamma00", 2 * len(paragraph("alpha00")) + len(GAP))
    assert found.text == paragraph("beta000") + paragraph("gamma00")
    assert len(found.spans) == 1


def test_where_nothing_bears_on_the_question_the_head_is_kept() -> None:
    text = "".join(paragraph(word) for word in ("alpha00", "beta000", "gamma00"))
    assert narrow(text, "zeta", 1_000).text == paragraph("alpha00")


def test_a_short_text_is_kept_whole() -> None:
    assert narrow("All of it.", "anything", 100).spans == ((0, 10),)
    assert narrow("", "anything", 100).spans == ()


def test_a_limit_below_one_passage_cuts_the_best_one() -> None:
    text = paragraph("alpha00") + paragraph("beta000")
    found = narrow(text, "beta000", 100)
    assert found.text == paragraph("beta000")[:100]


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "cat ", "dog. ", "\n", "\n\n", "x" * 700, "猫。", "| "]), max_size=60),
    st.integers(0, 3000),
)
def test_narrow_never_exceeds_its_limit_and_quotes_the_page(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)
    found = narrow(text, "cat", limit)
    assert len(found.text) <= max(limit, 0) or found.text == text
    assert found.text == GAP.join(text[start:end] for start, end in found.spans)
    assert list(found.spans) == sorted(found.spans)
    spans = passages(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(end - start < PASSAGE + LONGEST_PASSAGE for start, end in spans)
