"""No valid citation is ever lost, no invalid one kept, and offsets give back what they name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.evidence.markers import apply, cite, code_spans, find
from research.records import Fact, Grade

KNOWN = {1: "a", 2: "b", 3: "a", 4: "c"}


def fact(quote: str, url: str) -> Fact:
    return Fact(claim=quote, quote=quote, start=0, end=len(quote), grade=Grade.EXACT, url=url, page="digest")


@pytest.mark.parametrize(
    ("text", "expected", "removed"),
    [
        ("A [2]. B [1,3][9].", "A [1]. B [2].", 1),
        ("a [1-3] b", "a [1][2] b", 0),
        ("a [4–2] b", "a [1][2][3] b", 0),
        ("a [1] [2] b[4]", "a [1][2] b[3]", 0),
        ("a [^1] b", "a [1] b", 0),
        ("a 【4†source】 and 【4:0†source】.", "a [1] and.", 1),
        ("a ［2］", "a [1]", 0),
        ("a [Fact 2], [Source 1; 4]", "a [1], [2][3]", 0),
        (r"a \[2\]", "a [1]", 0),
        ("In [2024] and [2023-2024], [sic] [Title 5a] (1)", "In [2024] and [2023-2024], [sic] [Title 5a] (1)", 0),
        ("a [2020, 2]", "a [1]", 1),
        ("`x[1]` and ``[9]`` stay [1]", "`x[1]` and ``[9]`` stay [1]", 0),
        ("```\n[9] http://x.example\n```\nYes [4]", "```\n[9] http://x.example\n```\nYes [1]", 0),
        ("~~~\n[9]", "~~~\n[9]", 0),
        ("[[9]1] a", "[1] a", 1),
        ("a [1-9] b [5-9] [0]", "a [1][2][3] b", 3),
        ("a [12345] b [x]", "a [12345] b [x]", 0),
        ("", "", 0),
    ],
)
def test_spellings(text: str, expected: str, removed: int) -> None:
    marked = apply(text, KNOWN)
    assert (marked.text, marked.removed_markers) == (expected, removed)


@pytest.mark.parametrize(
    ("text", "expected", "links"),
    [
        ("a [1](http://evil.example/?q=secret) b", "a [1] b", 1),
        ("a [[2]](http://evil.example) b", "a [1] b", 1),
        ("a [the report](https://x.example/a_(b)) b", "a the report b", 1),
        ("See https://www.bls.example/a/b. And (http://x.example/y)", "See bls.example. And (x.example)", 2),
        ("![pixel](http://evil.example/p.png?d=1)", "pixel", 1),
        ("[go](javascript:alert(1))", "go", 1),
        ("<a href='http://x.example'>q</a> <img src=x>", "q ", 3),
        ("[![i](http://a.example/i)](http://b.example)", "i", 2),
        ("A [1].\n\n[1]: http://evil.example/x", "A [1].\n\n[1] evil.example", 2),
        ("`http://x.example`", "`http://x.example`", 0),
        ("a < b and c > d, 3:4", "a < b and c > d, 3:4", 0),
    ],
)
def test_links_are_the_programs(text: str, expected: str, links: int) -> None:
    marked = apply(text, KNOWN)
    assert (marked.text, marked.removed_links) == (expected.strip(), links)


def test_a_list_of_sources_goes_unless_it_holds_the_only_citation() -> None:
    listed = "\n\n**Sources:**\n- [1] Bureau, http://x.example\n- [2] Office"
    assert apply(f"A [1]. B [2].{listed}", KNOWN).text == "A [1]. B [2]."
    assert [cluster.ids for cluster in apply(f"A [1].{listed}", KNOWN).clusters] == [(1,), (1,), (2,)]
    assert apply("A [^1].\n\n[^1]: Bureau, http://x.example", KNOWN).text == "A [1]."


def test_cite_builds_citations_and_sentences() -> None:
    facts = [
        fact("Prices rose 3.1 percent in June.", "https://a.example"),
        fact("Rents rose 5 percent in June.", "https://b.example"),
        fact("Fuel prices fell in June.", "https://a.example"),
    ]
    text = "# Prices\nRents rose 5 percent in June [2].\nPrices rose 3.2 percent in June.[1,3] [7]\nNobody knows why."
    cited = cite(text, facts)
    assert cited.text == (
        "# Prices\nRents rose 5 percent in June [1].\nPrices rose 3.2 percent in June.[2]\nNobody knows why."
    )
    assert [(c.number, c.fact) for c in cited.citations] == [(1, facts[1]), (2, facts[0]), (2, facts[2])]
    assert [cited.text[c.start : c.end] for c in cited.citations] == [
        "Rents rose 5 percent in June [1].",
        "Prices rose 3.2 percent in June.[2]",
        "Prices rose 3.2 percent in June.[2]",
    ]
    assert [(s.status, s.reason) for s in cited.sentences] == [
        ("supported", ""),
        ("unsupported", "3.2 percent stands in no cited quote"),
        ("uncited", "no source is cited"),
    ]
    assert cited.removed_markers == 1


def test_markers_on_a_line_of_their_own_belong_to_the_sentence_before() -> None:
    cited = cite("Rents rose 5 percent.\n[1]", [fact("Rents rose 5 percent.", "https://a.example")])
    assert [cited.text[s.start : s.end] for s in cited.sentences] == ["Rents rose 5 percent.\n[1]"]
    assert [s.status for s in cited.sentences] == ["supported"]


PIECES = st.sampled_from(
    [
        "[1]", "[2, 9]", "[3-5]", "[^4]", "【1】", "【8†source】", "[0]", "[2024]", "[", "]", "[[", "]]", "(", ")", "`", "``",
        "\n", "\n```\n", ". ", " ", "word", "Rents rose 5 percent", "http://x.example/a", "[t](http://x.example)",
        "[1](http://x.example)", "](", "[^", "1", "2]", "\nSources:\n", "- [2] x\n", "\\", "【", "†", "[1]: ", "<a>", "。",
    ]
)  # fmt: skip
FACTS = st.lists(
    st.sampled_from([("Rents rose 5 percent", "https://a.example"), ("It fell", "https://b.example")]), max_size=5
)


@settings(max_examples=500, derandomize=True, deadline=None)
@given(st.lists(PIECES, max_size=25), FACTS)
def test_valid_citations_stay_invalid_ones_go(pieces: list[str], given_facts: list[tuple[str, str]]) -> None:
    text = "".join(pieces)
    facts = [fact(quote, url) for quote, url in given_facts]
    cited = cite(text, facts)
    numbers = {citation.number for citation in cited.citations}
    # What the text names is what the citations are, numbered from 1 in order of first use.
    named = [number for cluster in find(cited.text) for number in cluster.ids]
    assert set(named) == numbers
    assert list(dict.fromkeys(named)) == list(range(1, len(numbers) + 1))
    # Each source has one number, and each sentence's markers are its citations.
    assert len({(citation.number, citation.fact.url) for citation in cited.citations}) == len(numbers)
    for citation in cited.citations:
        span = cited.text[citation.start : citation.end]
        assert citation.number in {number for cluster in find(span) for number in cluster.ids}
        assert citation.fact in facts
    edges = [edge for sentence in cited.sentences for edge in (sentence.start, sentence.end)]
    assert edges == sorted(edges)
    outside = cited.text
    for start, end in reversed(code_spans(outside)):
        outside = outside[:start] + outside[end:]
    assert "http" not in outside


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["Rents rose", "It fell", "In [2024] `x[1]` it"]), st.integers(0, 7)), max_size=8
    ),
    st.sampled_from(
        ["[{}]", " [{}]", " [^{}]", "【{}】", " [{0}, {0}]", " [{0}-{0}]", "[{}](http://x.example)", " [Fact {}]"]
    ),
)
def test_each_sentence_keeps_just_its_valid_fact(said: list[tuple[str, int]], spelling: str) -> None:
    facts = [fact(f"quote {number}", f"https://{number % 2}.example") for number in range(1, 5)]
    cited = cite(" ".join(f"{words}{spelling.format(number)}." for words, number in said), facts)
    expected = [facts[number - 1].quote for _, number in said if 1 <= number <= 4]
    assert [citation.fact.quote for citation in cited.citations] == expected
    assert len(cited.sentences) == len(said)
    assert cited.text.count("[2024]") == sum(words.startswith("In") for words, _ in said)
    assert not re.search(r"\[[3-9]\]", cited.text)
