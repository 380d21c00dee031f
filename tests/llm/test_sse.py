from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.errors import MalformedError
from research.llm.sse import Decoder, Event


def events(data: bytes, size: int = 1 << 20, finish: bool = False) -> list[Event]:
    decoder = Decoder()
    found = [event for at in range(0, len(data), size) for event in decoder.feed(data[at : at + size])]
    return found + decoder.finish() if finish else found


# Streams and events as in the examples of the HTML standard, section 9.2.6.
EXAMPLES: list[tuple[bytes, list[Event]]] = [
    (b"data: YHOO\ndata: +2\ndata: 10\n\n", [Event("YHOO\n+2\n10")]),
    (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        [Event("first event", id="1"), Event("second event"), Event(" third event")],
    ),
    (b"data\n\ndata\ndata\n\ndata:", [Event(""), Event("\n")]),
    (b"data:test\n\ndata: test\n\n", [Event("test"), Event("test")]),
    (b"event: add\ndata: 73857293\n\nevent: gone\n\ndata: x\n\n", [Event("73857293", "add"), Event("x")]),
    (b"retry: 100\nunknown: y\n: ping\n\n", []),
]


@pytest.mark.parametrize(("stream", "wanted"), EXAMPLES)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1 << 20])
def test_the_standards_examples_in_every_line_ending_and_cut(
    stream: bytes, wanted: list[Event], end: bytes, size: int
) -> None:
    assert events(stream.replace(b"\n", end), size) == wanted


def test_a_byte_order_mark_is_dropped_only_at_the_start() -> None:
    mark = "\ufeff".encode()
    for size in (1, 2, 100):
        assert events(mark + b"data: a\n\ndata: " + mark + b"b\n\n", size) == [Event("a"), Event("\ufeffb")]


def test_characters_that_only_look_like_line_ends_stay() -> None:
    text = "a\u2028b\u2029c\x0bd\x0ce\x85f\x1cg"
    for size in (1, 2, 100):
        assert events(f"data: {text}\n\n".encode(), size) == [Event(text)]


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert events(b"data: \xff\xfe\n\n") == [Event("\ufffd\ufffd")]


def test_at_the_end_a_whole_line_counts_and_half_a_line_does_not() -> None:
    assert events(b"data: [DONE]\n", finish=True) == [Event("[DONE]")]
    assert events(b'data: {"a": 1', finish=True) == []
    assert events(b"data: a\n\n", finish=True) == [Event("a")]


@pytest.mark.parametrize("flood", [b"data: " + b"x" * 2000, b"x" * 2000, b"data: xxxxxxxx\n" * 200, b":" + b"x" * 2000])
@pytest.mark.parametrize("size", [1, 64, 1 << 20])
def test_what_never_ends_is_refused(flood: bytes, size: int) -> None:
    decoder = Decoder(longest=1000)
    chunks = [flood[at : at + size] for at in range(0, len(flood), size)]
    with pytest.raises(MalformedError):
        deque(map(decoder.feed, chunks), maxlen=0)


def test_many_events_are_no_flood() -> None:
    decoder = Decoder(longest=100)
    assert len([event for _ in range(1000) for event in decoder.feed(b"data: 0123456789\n\n")]) == 1000


LINES = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.lists(LINES, min_size=1, max_size=4), max_size=5), st.sampled_from(["\n", "\r", "\r\n"]), st.data())
def test_what_is_sent_arrives(payloads: list[list[str]], end: str, data: st.DataObject) -> None:
    stream = "".join("".join(f"data: {line}{end}" for line in lines) + end for lines in payloads).encode()
    size = data.draw(st.integers(1, max(1, len(stream))))
    assert [event.data for event in events(stream, size)] == ["\n".join(lines) for lines in payloads]
