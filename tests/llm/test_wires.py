"""What the wires send, held against each dialect's rules."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from research.errors import ProviderError
from research.llm.messages import Completion, Message, Request, Tool, ToolCall
from research.llm.sse import Decoder
from research.llm.wires import WIRES, Dialect

Json = dict[str, Any]

# --- The dialects' rules, as their references state them ---------------------------------------------------

STRICT_KEYWORDS = {"type", "description", "enum", "const", "format", "items", "properties", "required", "anyOf", "$ref"}
STRICT_KEYWORDS |= {"additionalProperties", "$defs"}
OPENAI_BOUNDS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "minItems"}
OPENAI_BOUNDS |= {"maxItems"}


def check_strict(schema: Any, allowed: set[str]) -> None:
    assert schema["type"] == "object"
    nodes = [schema]
    while nodes:
        node = nodes.pop()
        assert node.keys() <= STRICT_KEYWORDS | allowed, node
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
            nodes += node["properties"].values()
        nodes += [node["items"]] if "items" in node else []
        nodes += [*node.get("anyOf", ()), *node.get("$defs", {}).values()]


def check_function(function: Json) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", function["name"])
    assert function["parameters"]["type"] == "object"
    if function.get("strict"):
        check_strict(function["parameters"], OPENAI_BOUNDS)


def check_chat(body: Json) -> None:
    known = {"model", "messages", "max_completion_tokens", "max_tokens", "temperature", "reasoning_effort", "reasoning"}
    assert body.keys() <= known | {"response_format", "tools", "tool_choice", "stream", "stream_options"}
    assert ("max_tokens" in body) != ("max_completion_tokens" in body)
    assert "stream_options" not in body or body["stream"] is True
    assert "tool_choice" not in body or body["tools"]
    open_calls: list[str] = []
    for number, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            open_calls.remove(message["tool_call_id"])  # ValueError: a result without its call
            assert message["content"] is not None
            continue
        assert not open_calls, "a turn came before all results were there"
        assert role in ("user", "assistant") or (role in ("system", "developer") and number == 0)
        calls = message.get("tool_calls")
        assert message["content"] is not None or calls
        if calls is not None:
            assert role == "assistant"
            assert calls
            assert all(call["type"] == "function" and isinstance(call["function"]["arguments"], str) for call in calls)
            open_calls = [call["id"] for call in calls]
            assert all(open_calls)
            assert len(set(open_calls)) == len(calls)
    assert not open_calls
    for tool in body.get("tools", []):
        assert tool["type"] == "function"
        check_function(tool["function"])
    form = body.get("response_format", {"type": "json_object"})
    if form["type"] == "json_schema":
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", form["json_schema"]["name"])
        if form["json_schema"]["strict"]:
            check_strict(form["json_schema"]["schema"], OPENAI_BOUNDS)
    elif "response_format" in body:
        assert form == {"type": "json_object"}
        assert "JSON" in json.dumps(body["messages"])  # the word must be there


def check_responses(body: Json) -> None:
    known = {"model", "input", "instructions", "max_output_tokens", "temperature", "store", "include", "reasoning"}
    assert body.keys() <= known | {"text", "tools", "tool_choice", "stream"}
    assert body["store"] is False
    assert body["max_output_tokens"] >= 16
    made: list[str] = []
    answered: list[str] = []
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "message":
            assert item["role"] in ("user", "assistant")
            assert isinstance(item["content"], str)
            assert sorted(made) == sorted(answered), "a turn came before all results were there"
        elif kind == "function_call":
            assert "id" not in item  # an id would demand the reasoning item that it was kept with
            made.append(item["call_id"])
        elif kind == "function_call_output":
            assert item["call_id"] in made
            answered.append(item["call_id"])
        else:
            assert kind == "reasoning"
            assert item["encrypted_content"]
    assert sorted(made) == sorted(set(answered))
    for tool in body.get("tools", []):
        assert tool["type"] == "function"
        assert isinstance(tool["strict"], bool)
        check_function(tool)
    form = body.get("text", {}).get("format", {})
    if form.get("type") == "json_schema":
        assert form["name"]
        if form["strict"]:
            check_strict(form["schema"], OPENAI_BOUNDS)


def check_anthropic(body: Json) -> None:
    known = {"model", "messages", "max_tokens", "system", "temperature", "thinking", "output_config", "tools"}
    assert body.keys() <= known | {"tool_choice", "stream"}
    turns = body["messages"]
    assert [turn["role"] for turn in turns] == (["user", "assistant"] * len(turns))[: len(turns)]
    open_calls: list[str] = []
    seen: set[str] = set()
    for turn in turns:
        blocks = turn["content"]
        assert blocks
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(results) == sorted(open_calls)
        assert all(block["type"] == "tool_result" for block in blocks[: len(results)]), "results come first"
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        uses = [block for block in blocks if block["type"] == "tool_use"]
        open_calls = [block["id"] for block in uses]
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", id) for id in open_calls)
        assert not seen & set(open_calls)
        assert len(set(open_calls)) == len(open_calls)
        seen |= set(open_calls)
        assert all(isinstance(block["input"], dict) for block in uses)
        assert not uses or body["tools"]
        if turn["role"] == "assistant" and any(block["type"] == "thinking" for block in blocks):
            assert blocks[0]["type"] in ("thinking", "redacted_thinking")
    assert not open_calls
    last = turns[-1]["content"][-1]
    assert turns[-1]["role"] == "user" or not last.get("text", "").endswith((" ", "\n"))
    assert json.dumps(body).count('"cache_control"') <= 4
    if body.get("thinking", {}).get("type") == "enabled":
        assert 1024 <= body["thinking"]["budget_tokens"] < body["max_tokens"]
    if "thinking" in body:
        assert "temperature" not in body
        assert body.get("tool_choice", {"type": "none"})["type"] in ("auto", "none")
    if "format" in body.get("output_config", {}):
        check_strict(body["output_config"]["format"]["schema"], set())
    for tool in body.get("tools", []):
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"])
        assert tool["input_schema"]["type"] == "object"


CHECKS: Mapping[str, Callable[[Json], None]] = {
    "openai-chat": check_chat,
    "openai-responses": check_responses,
    "anthropic": check_anthropic,
}

# --- Requests ------------------------------------------------------------------------------------------------

SCHEMA: Json = {
    "type": "object",
    "title": "Reply",
    "properties": {
        "names": {"type": "array", "items": {"$ref": "#/$defs/Name"}, "maxItems": 3, "default": []},
        "score": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}], "default": None},
    },
    "$defs": {"Name": {"type": "string", "minLength": 1, "description": "one name"}},
}
OPEN: Json = {"type": "object", "additionalProperties": {"type": "integer"}}
SEARCH = Tool(
    "search", "Search the web.", {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
)
FETCH = Tool(
    "fetch",
    "Read a page.",
    {"type": "object", "properties": {"url": {"type": "string"}, "page": {"type": "integer"}}, "required": ["url"]},
)
CALLS = (ToolCall("call_1", "search", '{"query": "a"}'), ToolCall("call_2", "fetch", '{"url": '))
LOOP = (
    Message("user", "Who?"),
    Message("assistant", "Let me look.", CALLS),
    Message("tool", "found", call_id="call_1"),
    Message("tool", "not JSON", call_id="call_2", failed=True),
    Message("user", "Two calls left."),
    Message("assistant", "", (ToolCall("call_3", "search", "{}"),)),
    Message("tool", "", call_id="call_3"),
)
PLAIN = Request(system="Be brief.", messages=(Message("user", "Hi"),), max_tokens=100)
REQUESTS = {
    "plain": PLAIN,
    "no system": replace(PLAIN, system=""),
    "warm": replace(PLAIN, temperature=0.3),
    "thinking": replace(PLAIN, reasoning_tokens=500, temperature=0.3),
    "schema": replace(PLAIN, schema=SCHEMA),
    "schema and thinking": replace(PLAIN, schema=SCHEMA, reasoning_tokens=4000),
    "open schema": replace(PLAIN, schema=OPEN),
    "repair": replace(
        PLAIN, schema=SCHEMA, messages=(*PLAIN.messages, Message("assistant", "x \n"), Message("user", "?"))
    ),
    "tools": replace(PLAIN, tools=(SEARCH, FETCH)),
    "loop": replace(PLAIN, tools=(SEARCH, FETCH), messages=LOOP),
    "loop's end": replace(PLAIN, tools=(SEARCH, FETCH), messages=LOOP, tool_choice="none", schema=SCHEMA),
    "empty turn": replace(PLAIN, messages=(Message("user", "Hi"), Message("assistant", " "), Message("user", "Well?"))),
    "prefilled": replace(PLAIN, messages=(Message("user", "Hi"), Message("assistant", "So: "))),
}
DIALECTS = {
    "default": Dialect(),
    "old fields": Dialect(limit="max_tokens", structured="object", stream_usage=False, bounds=frozenset()),
    "prompted": Dialect(structured="prompt", temperature=False, system_role="developer"),
    "tool": Dialect(structured="tool", cache_markers=True, reasoning="budget"),
    "effort": Dialect(reasoning="effort", cache_markers=True),
    "adaptive": Dialect(reasoning="adaptive", cache_markers=True),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", REQUESTS)
def test_each_request_keeps_the_dialects_rules(wire: str, name: str, dialect: str) -> None:
    for stream in (False, True):
        encoded = WIRES[wire].encode(REQUESTS[name], "some-model", stream=stream, dialect=DIALECTS[dialect])
        body = json.loads(json.dumps(encoded.body))
        CHECKS[wire](body)
        assert body.get("stream", False) is stream
        assert body["model"] == "some-model"
        assert not {"authorization", "x-api-key"} & {header.lower() for header in encoded.headers}
        assert encoded.headers["accept"] == ("text/event-stream" if stream else "application/json")


@pytest.mark.parametrize("wire", WIRES)
def test_a_request_is_encoded_without_changing_it(wire: str) -> None:
    request = REQUESTS["loop's end"]
    before = json.dumps([request.schema, [tool.parameters for tool in request.tools]])
    dialect = Dialect(cache_markers=True)
    first = WIRES[wire].encode(request, "m", stream=True, dialect=dialect)
    assert WIRES[wire].encode(request, "m", stream=True, dialect=dialect) == first
    assert json.dumps([request.schema, [tool.parameters for tool in request.tools]]) == before


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "messages",
    [
        (*LOOP[:2], LOOP[2]),
        (LOOP[0], LOOP[2]),
        (*LOOP[:3], LOOP[2], LOOP[3]),
        (*LOOP[:2], Message("user", "?")),
        (LOOP[0], Message("assistant", "", (CALLS[0], CALLS[0])), LOOP[2]),
    ],
)
def test_calls_and_results_that_do_not_pair_are_a_mistake_of_ours(wire: str, messages: tuple[Message, ...]) -> None:
    with pytest.raises(ValueError, match="call"):
        WIRES[wire].encode(replace(PLAIN, messages=messages, tools=(SEARCH,)), "m", stream=False, dialect=Dialect())


def body(wire: str, request: Request, dialect: Dialect | None = None) -> Json:
    return WIRES[wire].encode(request, "m", stream=False, dialect=dialect or Dialect()).body


def test_allowances_for_reply_and_thinking_add_up() -> None:
    request = replace(PLAIN, reasoning_tokens=3000)
    assert body("openai-chat", request)["max_completion_tokens"] == 3100
    assert body("openai-responses", request)["max_output_tokens"] == 3100
    assert body("anthropic", request)["max_tokens"] == 3100
    budget = body("anthropic", request, Dialect(reasoning="budget"))
    assert (budget["max_tokens"], budget["thinking"]["budget_tokens"]) == (3100, 3000)
    assert body("openai-chat", request, Dialect(reasoning="effort"))["reasoning_effort"] == "medium"
    assert body("openai-chat", request, Dialect(reasoning="budget"))["reasoning"] == {"max_tokens": 3000}


def test_a_failed_tool_result_says_so_in_each_dialect() -> None:
    loop = REQUESTS["loop"]
    chat = [message for message in body("openai-chat", loop)["messages"] if message["role"] == "tool"]
    assert [message["content"] for message in chat] == ["found", "Error: not JSON", ""]
    items = [item for item in body("openai-responses", loop)["input"] if item.get("type") == "function_call_output"]
    assert [item["output"] for item in items] == ["found", "Error: not JSON", ""]
    results = body("anthropic", loop)["messages"][2]["content"]
    assert [block.get("is_error", False) for block in results] == [False, True, False]
    assert results[2] == {"type": "text", "text": "Two calls left."}


def test_only_tools_that_lose_nothing_are_strict() -> None:
    tools = body("openai-responses", REQUESTS["tools"])["tools"]
    assert [tool["strict"] for tool in tools] == [True, False]
    assert tools[1]["parameters"]["required"] == ["url"]


def test_cache_marks_stand_where_the_prefix_ends_and_move_on_with_the_loop() -> None:
    marked = Dialect(cache_markers=True)
    single = body("anthropic", PLAIN, marked)
    assert "cache_control" in single["system"][-1]
    assert "cache_control" not in json.dumps(single["messages"])  # nothing will read what is asked once
    marks = []
    for end in (4, 7):
        turns = body("anthropic", replace(REQUESTS["loop"], messages=LOOP[:end]), marked)["messages"]
        marks.append(["cache_control" in block for turn in turns for block in turn["content"]])
    assert [number for number, mark in enumerate(marks[0]) if mark] == [0, 5]
    assert [number for number, mark in enumerate(marks[1]) if mark] == [6, 8]  # 5 is looked back to from 6
    chat = body("openai-chat", REQUESTS["loop"], marked)["messages"]
    assert [number for number, message in enumerate(chat) if "cache_control" in json.dumps(message)] == [0, 4, 5]
    assert "cache_control" not in json.dumps(body("anthropic", REQUESTS["loop"]))


def test_bounds_stay_where_the_dialect_takes_them() -> None:
    form = body("openai-chat", REQUESTS["schema"])["response_format"]["json_schema"]["schema"]
    assert form["properties"]["names"] == {
        "type": "array",
        "items": {"type": "string", "description": "one name (at least 1 characters)"},
        "maxItems": 3,
    }
    native = body("anthropic", REQUESTS["schema"])["output_config"]["format"]["schema"]
    assert native["properties"]["names"]["description"] == "(at most 3 items)"


# --- Whole conversations -------------------------------------------------------------------------------------


def decode(wire: str, reply: Json) -> Completion:
    return WIRES[wire].decode(json.dumps(reply).encode(), {}, "acme")


def test_signed_thinking_goes_back_verbatim_and_only_to_its_own_wire() -> None:
    blocks: list[Json] = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "Look."},
        {"type": "tool_use", "id": "c", "name": "search", "input": {"query": "a"}},
    ]
    completion = decode("anthropic", {"id": "r", "model": "m", "content": blocks, "stop_reason": "tool_use"})
    turn = Message("assistant", completion.text, completion.calls, replay=completion.replay)
    request = replace(PLAIN, tools=(SEARCH,), messages=(Message("user", "q"), turn, Message("tool", "r", call_id="c")))
    assert body("anthropic", request)["messages"][1]["content"] == blocks
    for wire in ("openai-chat", "openai-responses"):
        assert "sig" not in json.dumps(body(wire, request))
    changed = replace(
        request,
        messages=(
            Message("user", "q"),
            replace(turn, calls=(ToolCall("d", "search", "{}"),)),
            Message("tool", "r", call_id="d"),
        ),
    )
    assert "sig" not in json.dumps(body("anthropic", changed))


def test_chat_thinking_goes_back_where_the_service_wants_it() -> None:
    call = {
        "id": "c",
        "function": {"name": "search", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "s"}},
    }
    completion = decode(
        "openai-chat", {"id": "r", "choices": [{"message": {"reasoning_content": "hm", "tool_calls": [call]}}]}
    )
    turn = Message("assistant", "", completion.calls, replay=completion.replay)
    request = replace(PLAIN, tools=(SEARCH,), messages=(Message("user", "q"), turn, Message("tool", "r", call_id="c")))
    sent = body("openai-chat", request, Dialect(reasoning_back=("reasoning_content",)))["messages"][2]
    assert sent["reasoning_content"] == "hm"
    assert sent["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}
    assert "reasoning_content" not in body("openai-chat", request)["messages"][2]


def test_ids_that_a_service_gives_again_in_each_turn_are_told_apart() -> None:
    call = ToolCall("functions.search:0", "search", "{}")
    round_trip = (Message("assistant", "", (call,)), Message("tool", "r", call_id=call.id))
    request = replace(PLAIN, tools=(SEARCH,), messages=(Message("user", "q"), *round_trip, *round_trip))
    for wire, check in CHECKS.items():
        check(body(wire, request))
    ids = [item.get("call_id") for item in body("openai-responses", request)["input"]]
    assert ids == [None, *["functions_search_0"] * 2, *["functions_search_0__2"] * 2]


WIRE_OF = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}


def recorded(turn: Json) -> Completion | None:
    response = turn["response"]
    if turn["api"] not in WIRE_OF or response["status"] != 200:
        return None
    wire = WIRES[WIRE_OF[turn["api"]]]
    text = response.get("body_text", "")
    raw = json.dumps(response["body_json"]).encode() if not text else text.encode()
    if text and ":" not in text[:300]:
        raw = base64.b64decode(text)
    try:
        if raw[:1] == b"{":
            return wire.decode(raw, {}, "someone")
        stream = wire.streamed({}, "someone")
        for event in Decoder().feed(raw):
            stream.feed(event)
        return stream.finish()
    except ProviderError:
        return None


def test_recorded_conversations_go_on_in_every_dialect(data: Callable[[str], Path]) -> None:
    """What models really called, carried on turn by turn, keeps each dialect's rules."""
    seen = 0
    for path in sorted((data("llm-traffic") / "dev" / "conversations").glob("*.json")):
        messages: list[Message] = [Message("user", "begin")]
        turns = json.loads(path.read_text())["turns"]
        for completion in filter(None, map(recorded, turns)):
            messages.append(Message("assistant", completion.text, completion.calls, replay=completion.replay))
            messages += [Message("tool", "done", call_id=call.id) for call in completion.calls]
            messages += [] if completion.calls else [Message("user", "go on")]
            request = replace(PLAIN, messages=tuple(messages), tools=(SEARCH,), schema=SCHEMA)
            for wire, check in CHECKS.items():
                for dialect in DIALECTS.values():
                    check(WIRES[wire].encode(request, "m", stream=True, dialect=dialect).body)
            seen += 1
    assert seen > 80
