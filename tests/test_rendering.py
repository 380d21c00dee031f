"""An answer as a reader sees it: marks, names, code, wrapped lines, and nothing live."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.cli.evidence import lines, links
from research.evidence.markers import cite, find
from research.records import Answer, Ending, Fact, Grade
from research.rendering import markdown, markers, plain


def fact(host: str = "www.bls.example", quote: str = "The rate was 3.0 percent in January.", **more: Any) -> Fact:
    given = {"claim": "c", "quote": quote, "start": 4, "end": 4 + len(quote), "grade": Grade.EXACT, "url": f"https://{host}/cpi",
             "title": "Consumer prices", "site": "Statistics Desk", "date": "2025-02-12", "page": "0", "before": "So: ", "after": " More follows."}  # fmt: skip
    return Fact(**{**given, **more})


def answer(text: str, *facts: Fact, **more: Any) -> Answer:
    cited = cite(text, facts)
    return Answer(text=cited.text, ending=Ending.ANSWERED, citations=cited.citations, sentences=cited.sentences, **more)


RATE = "The rate was 3.0 percent in January [1]."


def test_a_plain_answer() -> None:
    assert plain(answer(RATE, fact(), as_of="2025-03-01", newest="2025-02-12")) == (
        "The rate was 3.0 percent in January [1].\n\n"
        "As of 2025-03-01. The newest cited source is of 2025-02-12.\n\n"
        "Sources\n\n"
        "[1] Consumer prices · Statistics Desk · 2025-02-12\n"
        "    https://www.bls.example/cpi\n"
        "    “The rate was 3.0 percent in January.”\n"
    )


def test_the_same_in_markdown() -> None:
    assert markdown("What *is* it?", answer(RATE, fact(), notes=("Take <care>.",))) == (
        "# What \\*is\\* it?\n\n"
        "The rate was 3.0 percent in January [1].\n\n"
        "## Sources\n\n"
        "- [1] Consumer prices · Statistics Desk · 2025-02-12 <https://www.bls.example/cpi>\n"
        "  > “The rate was 3.0 percent in January.”\n\n"
        "Note: Take \\<care\\>.\n"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (RATE, "The rate was 3.0 percent in January (according to bls.example)."),
        ("According to bls.example, the rate was 3.0 percent in January [1].", "According to bls.example, the rate was 3.0 percent in January."),
        ("The rate was 3.0 percent in January [1][2].", "The rate was 3.0 percent in January (according to bls.example and wire.example)."),
        ("Im Januar betrug die Rate laut dem Amt 3,0 Prozent, und das ist nicht viel [1].",
         "Im Januar betrug die Rate laut dem Amt 3,0 Prozent, und das ist nicht viel (bls.example)."),
    ],
)  # fmt: skip
def test_names_for_numbers(text: str, shown: str) -> None:
    told = " ".join(plain(answer(text, fact(), fact("wire.example")), by_name=True).partition("\n\n")[0].split())
    assert told.removesuffix(" (partly supported)") == shown


def test_a_name_is_the_address_and_not_what_a_page_calls_itself() -> None:
    told = plain(answer(RATE, fact("liar.example", site="bls.gov")), by_name=True)
    assert "(according to liar.example)" in told
    assert "liar.example: Consumer prices" in told


def test_a_file_is_called_by_its_name() -> None:
    own = fact(url="file:///home/ann/caf%C3%A9%20notes.txt", title="", site="", date=None)
    assert "[1] café notes.txt\n" in plain(answer(RATE, own))
    assert "(according to café notes.txt)" in plain(answer(RATE, own), by_name=True)


def test_two_pages_of_one_host_are_told_apart() -> None:
    two = answer("It was 3.0 percent [1]. It was 3.0 percent [2].", fact(), fact(url="https://www.bls.example/other"))
    told = plain(two, by_name=True)
    assert "(according to bls.example (1))" in told
    assert "bls.example (2): Consumer prices" in told


def test_marks_stand_where_the_sentence_stands() -> None:
    told = plain(answer(f"{RATE} It will be 7 percent soon [1]. Nobody knows why.", fact()))
    assert "[1]. It will be 7 percent soon [1]. (" in told
    assert "Nobody knows why. (no source)" in told
    assert "1 of 3 sentences are supported." in told
    assert "7 percent stands in no cited quote" in told


def test_brackets_in_code_are_no_citations() -> None:
    text = f"{RATE} Write `rates[1]` for it [1].\n\n```python\nx = rates[1]  # <b>\n```"
    made = answer(text, fact())
    assert [made.text[start:end] for start, end in markers(made.text)] == ["[1]", "[1]"]
    assert "`rates[1]`" in plain(made, by_name=True)
    document = markdown("q", made)
    assert "Write `rates[1]` for it [1]." in document
    assert "```\nx = rates[1]  # <b>\n```" in document


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("- one [1]\n- two [1]", "- one [1]\n\n- two [1]"),
        ("1. one [1]\n2) two [1]", "1. one [1]\n\n2. two [1]"),
        ("a <b>c</b> *d* [1]", "a \\<b\\>c\\</b\\> \\*d\\* [1]"),
        ("# head [1]", "\\# head [1]"),
        ("2 * 3 [1]", "2 \\* 3 [1]"),
    ],
)
def test_the_text_in_markdown(text: str, escaped: str) -> None:
    document = markdown("q", answer(text, fact())).replace(" (unsupported)", "").replace(" (partly supported)", "")
    assert f"# q\n\n{escaped}\n\n" in document


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    st.lists(
        st.sampled_from(["[1]", "[2]", " ", "x", ".", "`", "```\n", "~~~\n", "\n", "[2024]", "code"]), max_size=14
    ).map("".join)
)
def test_markers_are_seen_as_they_are_read(text: str) -> None:
    made = answer(text, fact(), fact("two.example"))
    assert markers(made.text) == [(one.start, one.end) for one in find(made.text)]


def test_what_could_not_be_answered() -> None:
    none = Answer(text="", ending=Ending.NOT, reason="nothing tells it.", cause="not in the sources")
    assert plain(none) == "Not answered: nothing tells it.\n"
    wrong = none.model_copy(update={"cause": "false premise"})
    assert plain(wrong) == "Not answered (false premise): nothing tells it.\n"


def test_without_a_search_is_the_first_thing_said() -> None:
    four = Answer(text="Four.", ending=Ending.WITHOUT_SEARCH, notes=("Answered without a search.", "And a note."))
    assert plain(four) == "Answered without a search.\n\nFour.\n\nNote: And a note.\n"


def test_evidence_shows_each_quote_in_its_surroundings() -> None:
    told = "\n".join(lines(answer(f"{RATE} Nobody knows.", fact())))
    assert "  supported\n" in told
    assert "[1] Consumer prices · Statistics Desk · 2025-02-12 (exact)" in told
    assert "… So: «The rate was 3.0 percent in January.» More follows. …" in told
    assert "  uncited: no source is cited" in told
    assert "Citations: recall 0.50, precision 1.00. Checked by rules." in told
    assert "\x1b" not in told


def test_evidence_links_open_the_page_at_the_quote() -> None:
    evil = fact(url="https://www.bls.example/\x1b]8;;https://evil.example\x07", title="\x1b[31mred")
    told = "\n".join(lines(answer(RATE, evil), linked=True))
    assert "\x1b]8;;https://www.bls.example/%5D8;;https://evil.example#:~:text=The%20rate%20was" in told
    assert told.count("\x1b") == 4
    assert "\x07" not in told


@pytest.mark.parametrize(
    ("environment", "terminal", "linked"),
    [
        ({"TERM": "xterm", "TERM_PROGRAM": "WezTerm"}, True, True),
        ({"TERM": "xterm", "VTE_VERSION": "6800"}, True, True),
        ({"TERM": "xterm", "VTE_VERSION": "4200"}, True, False),
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb", "TERM_PROGRAM": "WezTerm"}, True, False),
        ({"TERM": "xterm", "TERM_PROGRAM": "WezTerm"}, False, False),
        ({"FORCE_HYPERLINK": "1"}, False, True),
        ({"FORCE_HYPERLINK": "0", "TERM": "xterm", "TERM_PROGRAM": "WezTerm"}, True, False),
    ],
)
def test_which_terminals_make_links(environment: dict[str, str], terminal: bool, linked: bool) -> None:
    class Stream:
        def isatty(self) -> bool:
            return terminal

    assert links(Stream(), environment) is linked  # type: ignore[arg-type]
