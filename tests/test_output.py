"""What strangers wrote is shown and not obeyed: by terminals, Markdown, spreadsheets, readers of JSON."""

from __future__ import annotations

import csv
import io
import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from research import output

UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
MARKUP = [
    "<script>alert(1)</script>", "![x](https://evil.example/p.png)", "[click](javascript:alert(1))", "<https://evil.example>",
    "https://evil.example/x", "www.evil.example", "a@evil.example", "`code", "```\n", "# title", "- item", "1. one", "+ x",
    "| a | b |", "***", "---", "===", "> quote", "    code", "[1]: https://evil.example", "&lt;b&gt;", "\\", "$x$", "~~x~~", "<!--",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 東京\n\ttext", "plain é 東京\n\ttext"),
        ("a\x1b[31mred\x1b]52;c;AAAA\x07", "a[31mred]52;c;AAAA"),
        ("a\rb\r\nc\x08\x7f", "a\nb\nc"),
        ("\x9b31m\u202eevil\u2066\u2069", "31mevil"),
        ("a\u2028b\x85c", "a\nb\nc"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("x\ud800y", "x\ufffdy"),
    ],
)
def test_a_terminal_is_sent_no_control_character(text: str, shown: str) -> None:
    assert output.clean(text) == shown


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.text(st.characters()))
def test_cleaning_is_complete_and_done_once(text: str) -> None:
    shown = output.clean(text)
    assert not UNSAFE.search(shown)
    assert output.clean(shown) == shown
    assert "\n" not in output.on_one_line(text)


def rendered(markdown: str) -> list[tuple[str, str]]:
    """What a Markdown reader makes of it: the types of its tokens, with their text."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(markdown)
    flat = [child for token in tokens for child in (token.children or [token])]
    return [(token.type, token.content) for token in flat]


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(MARKUP), st.text(max_size=12)), max_size=5).map("".join))
def test_markdown_shows_text_letter_by_letter(text: str) -> None:
    for made in (output.markdown(text), f"x {output.markdown_within(text)}"):
        assert {kind for kind, _ in rendered(made)} <= {
            "paragraph_open",
            "paragraph_close",
            "text",
            "text_special",
            "code_inline",
        }
    shown = "".join(content for _, content in rendered(output.markdown(text)))
    assert shown == output.on_one_line(text)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "https://e.example/x",
                "HTTP://e",
                "www.e.example",
                "a@e.example",
                "ftp://e",
                "mailto:a@e",
                "`",
                "<",
                " ",
                "x",
                "é",
            ]
        ),
        max_size=6,
    ).map("".join)
)
def test_addresses_in_text_become_no_links(text: str) -> None:
    """Some readers link bare addresses in any text, but none does in code."""
    prose = " ".join(content for kind, content in rendered(output.markdown(text)) if kind.startswith("text"))
    assert not re.search(r"(?i)(?:https?|ftp)://\S|www\.\w|mailto:\w|\w@\w", prose)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(MARKUP), st.text("`~ a\n", max_size=12)), max_size=5).map("".join))
def test_nothing_ends_the_code_that_it_stands_in(text: str) -> None:
    assert [kind for kind, _ in rendered(output.markdown_code(text))] == ["fence"]
    if output.on_one_line(text):
        assert [kind for kind, _ in rendered(f"a {output.markdown_span(text)} b")][2:3] == ["code_inline"] or (
            "code_inline" in [kind for kind, _ in rendered(f"a {output.markdown_span(text)} b")]
        )


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://a.example/b?c=d#e", "https://a.example/b?c=d#e"),
        ("HTTP://A.example/é ü", "http://A.example/%C3%A9%20%C3%BC"),
        ("https://a.example/x>\"'()<b>", "https://a.example/x%3E%22%27%28%29%3Cb%3E"),
        ("https://a.example/\x1b]8;;https://evil.example\x07", "https://a.example/%5D8;;https://evil.example"),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("file:///etc/passwd", ""),
        ("//evil.example", ""),
        ("https://user:key@a.example/", ""),
        ("https://[broken", ""),
        ("", ""),
    ],
)
def test_addresses(url: str, address: str) -> None:
    assert output.web_address(url) == address


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.text(max_size=40), st.text(max_size=60))
def test_a_link_in_a_terminal_is_one_sequence_of_printable_ascii(url: str, quote: str) -> None:
    link = output.terminal_link(output.at_quote(f"https://a.example/{url}", quote), url)
    opened = re.fullmatch(r"\x1b\]8;;([\x21-\x7e]+)\x1b\\([^\x1b]*)\x1b\]8;;\x1b\\", link, re.DOTALL)
    assert opened
    assert opened[1].startswith("https://a.example/")
    assert output.terminal_link("javascript:alert(1)", "label") == "label"


@pytest.mark.parametrize(
    ("quote", "fragment"),
    [
        ("The rate was 3.0 percent.", "#:~:text=The%20rate%20was%203.0%20percent."),
        ("non-seasonal, and & so\n on", "#:~:text=non%2Dseasonal%2C%20and%20%26%20so%20on"),
        (
            "one two three four five six seven eight nine ten eleven twelve thirteen",
            "#:~:text=one%20two%20three%20four%20five%20six,eight%20nine%20ten%20eleven%20twelve%20thirteen",
        ),
        ("", ""),
    ],
)
def test_an_address_that_opens_at_a_quote(quote: str, fragment: str) -> None:
    assert output.at_quote("https://a.example/b", quote) == f"https://a.example/b{fragment}"
    assert output.at_quote("https://a.example/b#c", "x y") == "https://a.example/b#c:~:text=x%20y"
    assert output.at_quote("javascript:alert(1)", quote) == ""


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", " =", "＝", "\r="])
def test_cells_that_look_like_formulas(sign: str) -> None:
    cell = output.csv_cell(f"{sign}1+1")
    assert str(cell).startswith("'")
    made = io.StringIO()
    csv.writer(made).writerow([cell])
    assert next(csv.reader(io.StringIO(made.getvalue())))[0].startswith("'")


def test_other_cells_stay_as_they_are() -> None:
    assert [output.csv_cell(value) for value in (-3.5, 7, None, "a-b", "3.0 percent", "")] == [
        -3.5,
        7,
        None,
        "a-b",
        "3.0 percent",
        "",
    ]
    assert output.csv_cell("a\x1b[31m") == "a[31m"


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_is_the_same_data_without_control_characters(text: str) -> None:
    told = output.as_json({"a": text, text: [1, None]})
    assert not UNSAFE.search(told)
    assert json.loads(told) == {"a": text, text: [1, None]}


def test_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        output.as_json({"a": float("nan")})


def test_time_is_linear() -> None:
    start = time.process_time()
    for unit in ("<", "[", "`", "\u0301", "\x1b", "\n ", "\u202e", "1.", "://", "\\"):
        text = unit * 50_000
        for encode in (output.clean, output.markdown, output.markdown_code, output.markdown_span):
            encode(text)
        output.csv_cell(text)
        output.as_json(text)
    assert time.process_time() - start < 5
