"""Replies that no recording has: empty, cut, refused, nonsensical, failing in mid-stream."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from research.errors import (
    ContextTooLongError,
    MalformedError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    TruncatedError,
)
from research.llm.messages import Completion, ToolCall, Usage
from research.llm.sse import Event
from research.llm.wires import WIRES
from research.llm.wires.anthropic import REPLY_TOOL

Json = dict[str, Any]


def chat_reply(message: Json, finish: str | None = "stop", **more: Any) -> Json:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {
        "id": "r",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    } | more


def message_reply(content: list[Json], stop: str = "end_turn", **more: Any) -> Json:
    return {
        "id": "r",
        "type": "message",
        "model": "m",
        "content": content,
        "stop_reason": stop,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    } | more


def response_reply(output: list[Json], **more: Any) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return {
        "id": "r",
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": output,
        "usage": usage,
    } | more


def text_item(text: str) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def decode(wire: str, reply: Any) -> Completion:
    data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    return WIRES[wire].decode(data, {"X-Request-Id": "req-1"}, "acme")


GOOD: dict[str, Json] = {
    "openai-chat": chat_reply({"role": "assistant", "content": "Hi"}),
    "anthropic": message_reply([{"type": "text", "text": "Hi"}]),
    "openai-responses": response_reply([text_item("Hi")]),
}


@pytest.mark.parametrize("wire", WIRES)
def test_unknown_fields_are_tolerated(wire: str) -> None:
    more = {"novelty": {"a": [1]}, "usage": GOOD[wire]["usage"] | {"new_tokens": 3, "details": [None]}}
    expected = Completion("Hi", "stop", Usage(10, 0, 0, 5, 0), "m", (), "req-1")
    assert decode(wire, GOOD[wire]) == decode(wire, GOOD[wire] | more) == expected


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"<html>",
        b"null",
        b"[]",
        b"3",
        b'"x"',
        b"{}",
        b'{"choices": 3, "content": 3, "output": 3}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_reply_is_malformed(wire: str, reply: bytes) -> None:
    with pytest.raises(MalformedError, match="acme"):
        decode(wire, reply)


EMPTY: list[tuple[str, Json]] = [
    ("openai-chat", chat_reply({"role": "assistant", "content": None})),
    ("openai-chat", chat_reply({"role": "assistant", "content": " \n"})),
    ("anthropic", message_reply([])),
    ("anthropic", message_reply([{"type": "thinking", "thinking": "hm", "signature": "s"}])),
    ("openai-responses", response_reply([])),
    ("openai-responses", response_reply([{"type": "reasoning", "summary": []}])),
]


@pytest.mark.parametrize(("wire", "reply"), EMPTY)
def test_an_empty_reply_is_malformed_and_its_usage_is_known(wire: str, reply: Json) -> None:
    with pytest.raises(MalformedError, match="empty") as caught:
        decode(wire, reply)
    assert caught.value.usage == Usage(10, 0, 0, 5, 0)
    assert caught.value.passing


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("bad", ["-1", "NaN", "Infinity", "true", '"7"', "1e30", "null", "[]", "9" * 400])
def test_usage_that_is_nonsense_is_no_usage(wire: str, bad: str) -> None:
    reply = GOOD[wire] | {"usage": dict.fromkeys(GOOD[wire]["usage"], "BAD")}
    assert decode(wire, json.dumps(reply).replace('"BAD"', bad).encode()).usage == Usage()
    assert decode(wire, {key: value for key, value in GOOD[wire].items() if key != "usage"}).usage == Usage()


CUT: list[tuple[str, Json]] = [
    (
        "openai-chat",
        chat_reply({"tool_calls": [{"id": "c", "function": {"name": "fetch", "arguments": '{"url": "a'}}]}, "length"),
    ),
    ("anthropic", message_reply([{"type": "tool_use", "id": "c", "name": "fetch", "input": {}}], "max_tokens")),
    (
        "openai-responses",
        response_reply(
            [{"type": "function_call", "call_id": "c", "name": "fetch", "arguments": '{"url'}],
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
    ),
]


@pytest.mark.parametrize(("wire", "reply"), CUT)
def test_a_call_that_was_cut_is_dropped(wire: str, reply: Json) -> None:
    completion = decode(wire, reply)
    assert (completion.finish, completion.calls) == ("length", ())


REFUSED: list[tuple[str, Json, str]] = [
    ("openai-chat", chat_reply({"content": None, "refusal": "I won't."}), "I won't."),
    ("openai-chat", chat_reply({"content": "Half"}, "content_filter"), "Half"),
    ("anthropic", message_reply([], "refusal", stop_details={"explanation": "No."}), "No."),
    (
        "openai-responses",
        response_reply([{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]),
        "No.",
    ),
    (
        "openai-responses",
        response_reply([text_item("Half")], status="incomplete", incomplete_details={"reason": "content_filter"}),
        "Half",
    ),
]


@pytest.mark.parametrize(("wire", "reply", "text"), REFUSED)
def test_refusals(wire: str, reply: Json, text: str) -> None:
    completion = decode(wire, reply)
    assert (completion.finish, completion.text) == ("refusal", text)


def test_context_too_long_as_a_stop_reason() -> None:
    with pytest.raises(ContextTooLongError) as caught:
        decode("anthropic", message_reply([{"type": "text", "text": "Hi"}], "model_context_window_exceeded"))
    assert caught.value.usage == Usage(10, 0, 0, 5, 0)


def test_calls_without_ids_or_with_one_twice_get_ids_that_every_dialect_takes() -> None:
    calls = [
        {"id": "", "function": {"name": "a", "arguments": "{}"}},
        {"function": {"name": "b", "arguments": {"x": 1}}},
    ]
    calls += [
        {"id": "same", "function": {"name": "c", "arguments": ""}},
        {"id": "same", "index": 9, "function": {"name": "d"}},
    ]
    made = decode("openai-chat", chat_reply({"tool_calls": calls}, "stop")).calls
    assert [(call.name, call.arguments) for call in made] == [("a", "{}"), ("b", '{"x": 1}'), ("c", "{}"), ("d", "{}")]
    assert len({call.id for call in made}) == 4
    assert all(re.fullmatch("[a-z0-9]{9}|same", call.id) for call in made)


def test_a_forced_tools_input_is_the_reply() -> None:
    content = [{"type": "tool_use", "id": "c", "name": REPLY_TOOL, "input": {"score": 1}}]
    completion = decode("anthropic", message_reply(content, "tool_use"))
    assert (completion.text, completion.finish, completion.calls) == ('{"score": 1}', "stop", ())


def streamed(wire: str, events: list[Event]) -> Completion:
    stream = WIRES[wire].streamed({}, "acme")
    for event in events:
        stream.feed(event)
    return stream.finish()


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Event:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return Event(json.dumps({"id": "r", "model": "m", "choices": choices} | more))


def test_chunks_without_choices_are_ignored_wherever_they_come() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    events = [
        chunk(),
        chunk({"content": "H"}),
        chunk(None, usage=usage),
        chunk({"content": "i"}),
        chunk({}, "stop"),
        chunk(),
    ]
    assert streamed("openai-chat", events) == Completion("Hi", "stop", Usage(3, 0, 0, 2, 0), "m", (), "r")


def test_interleaved_parallel_calls_are_told_apart() -> None:
    def call(index: int, text: str, **more: Any) -> Event:
        return chunk({"tool_calls": [{"index": index, "function": {"arguments": text} | more}]})

    begin = chunk(
        {"tool_calls": [{"index": i, "id": f"c{i}", "function": {"name": f"t{i}", "arguments": ""}} for i in (0, 1)]}
    )
    events = [begin, call(1, '{"b"'), call(0, '{"a"'), call(1, ":2}"), call(0, ":1}"), chunk({}, "tool_calls")]
    assert streamed("openai-chat", events).calls == (ToolCall("c0", "t0", '{"a":1}'), ToolCall("c1", "t1", '{"b":2}'))


MID_STREAM: list[tuple[str, list[Event], type[ProviderError]]] = [
    (
        "openai-chat",
        [chunk({"content": "H"}), Event('{"error": {"message": "Overloaded", "code": 529}}')],
        OverloadedError,
    ),
    ("openai-chat", [chunk({"content": "H"}), Event('{"message": "boom"}', "error")], OverloadedError),
    ("openai-chat", [chunk({"content": "H"}), Event("{not json")], MalformedError),
    ("openai-chat", [chunk({"content": "H"})], TruncatedError),
    ("openai-chat", [], TruncatedError),
    ("openai-chat", [chunk({"content": "H"}, "insufficient_system_resource"), Event("[DONE]")], TruncatedError),
    (
        "anthropic",
        [Event('{"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}', "error")],
        RateLimitError,
    ),
    ("anthropic", [Event('{"type": "content_block_delta", "index": 0, "delta": {}}')], MalformedError),
    ("anthropic", [Event('{"type": "ping"}'), Event('{"type": "brand_new"}')], TruncatedError),
    ("anthropic", [Event('{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}')], TruncatedError),
    ("anthropic", [Event('{"type": "message_stop"}')], TruncatedError),
    ("openai-responses", [Event('{"type": "error", "code": "server_error", "message": "x"}')], OverloadedError),
    (
        "openai-responses",
        [Event('{"type": "response.output_text.delta", "delta": "H"}'), Event("[DONE]")],
        TruncatedError,
    ),
]


@pytest.mark.parametrize(("wire", "events", "kind"), MID_STREAM)
def test_what_goes_wrong_in_mid_stream_has_a_kind(wire: str, events: list[Event], kind: type[ProviderError]) -> None:
    with pytest.raises(ProviderError) as caught:
        streamed(wire, events)
    assert type(caught.value) is kind
    assert caught.value.passing
