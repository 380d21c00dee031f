"""A synthesizer's reply, taken apart; nothing of the prompt comes through."""

from __future__ import annotations

import pytest

from research.evidence.drafts import lacked, read
from research.evidence.leaks import without_prompt

PROMPT = "You answer a question from numbered facts, and from nothing else. Copy numbers, dates and names as the facts have them."


@pytest.mark.parametrize(
    ("reply", "refused", "cause"),
    [
        ("NOT ANSWERED: nothing tells its mass", "nothing tells its mass", "not in the sources"),
        ("not answered", "what was read does not answer it", "not in the sources"),
        ("**NOT ANSWERED:** false premise: It never had a king [2].", "It never had a king.", "false premise"),
        ("NOT ANSWERED (conflicting): 3 against 4", "3 against 4", "conflicting"),
        ("NOT ANSWERED: not in the sources: no\n\nBut click [here](https://evil.example)!", "no", "not in the sources"),
        ("NOT ANSWERED: see https://evil.example/a?b", "see evil.example", "not in the sources"),
    ],
)
def test_refusals(reply: str, refused: str, cause: str) -> None:
    draft = read(reply, PROMPT)
    assert (draft.refused, draft.cause) == (refused, cause)


@pytest.mark.parametrize(
    ("reply", "text", "missing"),
    [
        ("It is 3 [1].\nMISSING: the year before", "It is 3 [1].", "the year before"),
        ("It is 3 [1].\nMISSING: none", "It is 3 [1].", ""),
        ("It is 3 [1].\n**Missing:** Nothing is missing.", "It is 3 [1].", ""),
        ("It is 3 [1].\nMISSING: false premise:", "It is 3 [1].", ""),  # the prompt's words, and nothing said
        ("It is 3 [1]. Two are MISSING [2].", "It is 3 [1]. Two are MISSING [2].", ""),
    ],
)
def test_partial_answers(reply: str, text: str, missing: str) -> None:
    draft = read(reply, PROMPT)
    assert (draft.text.strip(), draft.missing, draft.refused, draft.cause) == (text, missing, "", "")


def test_a_long_reason_is_cut() -> None:
    assert len(read(f"NOT ANSWERED: {'because ' * 500}", PROMPT).refused) <= 402


def test_sentences_of_the_prompt_are_left_out() -> None:
    reply = f"It is 3 [1]. My orders: {PROMPT} It was 2 [2]."
    assert without_prompt(reply, PROMPT) == ("It is 3 [1]. It was 2 [2].", 2)
    assert without_prompt('<data-0123456789abcdef label="page">\nIt is 3 [1].\n</data-0123456789abcdef>', PROMPT) == (
        "It is 3 [1].",
        0,
    )


@pytest.mark.parametrize(
    "broken", ["<data-", "</data-01234567", "<data-0123456789abcdef", '<data-0123456789abcdef label="pa']
)
def test_fences_go_where_they_are_broken_off(broken: str) -> None:
    assert without_prompt(f"It is 3 [1]. {broken}", PROMPT) == ("It is 3 [1].", 0)
    assert without_prompt("It is <data-binding> [1].", PROMPT) == ("It is <data-binding> [1].", 0)


def test_a_page_about_prompts_may_be_quoted() -> None:
    said = "It reads: copy numbers, dates and names as the facts have them [1]."
    assert without_prompt(said, PROMPT, ["Copy numbers, dates and names as the facts have them."]) == (said, 0)
    assert without_prompt(said, PROMPT)[1] == 1


@pytest.mark.parametrize(
    ("missing", "found"),
    [
        ("the year before", ("", "the year before")),
        ("false premise: the tower was never built", ("false premise", "the tower was never built")),
        ("false premise: It is  3 percent", ("", "")),  # which is what was told
        ("it is 3 percent.", ("", "")),
        ("false premise:", ("", "")),
        ("", ("", "")),
    ],
)
def test_what_was_told_is_not_missing(missing: str, found: tuple[str, str]) -> None:
    assert lacked(missing, ["It is 3 percent.", ""]) == found
