"""Replies recorded from real providers, through the wires; what is expected is read here anew."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from research.errors import (
    BadRequestError,
    MalformedError,
    OutOfMoneyError,
    ProviderError,
    RefusedError,
    TruncatedError,
)
from research.llm.messages import Completion, Usage
from research.llm.sse import Decoder
from research.llm.wires import WIRES

Json = dict[str, Any]
WIRE_OF = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}
CHAT = {"alibaba", "cerebras", "deepseek", "groq", "mistral", "moonshotai", "openai", "openai-compatible"}
CHAT |= {"perplexity", "xai"}
OTHER_DIALECTS = ("amazon-bedrock", "cohere", "google", "google-interactions")  # no wire of ours speaks them

FOREIGN = "it ends in a call of a kind that a request of ours never offers, so that it holds nothing for us"
# Every recording that does not decode to a completion: the error it is, and why that is right.
EXCEPTIONS: dict[str, tuple[type[ProviderError], str]] = {
    "conv-groq-chat-test-tool-use-failed-error-streaming-53ac2#0": (MalformedError, "an error event in mid-stream"),
    "groq-chat-test-tool-use-failed-error-streaming-wit-e1a8d2#0": (MalformedError, "an error event in mid-stream"),
    "azure-chat-test-prompt-content-filtering-7e1267#0": (RefusedError, "an error object in a 200: the filter's"),
    "databricks-chat-test-databricks-empty-response-bab5be#0": (MalformedError, "the whole reply is one line feed"),
    "openrouter-chat-test-openrouter-stream-error-e24a9f#0": (BadRequestError, "an error in the last chunk"),
    "openai-responses-test-background-mode-streaming-without-s-0e284c#0": (MalformedError, "queued, no reply yet"),
    "openai-responses-test-background-mode-vcr-68a97b#0": (MalformedError, "queued, no reply yet"),
    "openai-responses-test-openai-responses-compact-with-auto-8ac7f6#0": (MalformedError, "a compaction, no reply"),
    "openai-responses-test-openai-responses-compact-with-auto-b660d0#0": (MalformedError, "a compaction, no reply"),
    "openai-responses/openai-apply-patch-tool-delete.1.chunks.txt": (MalformedError, FOREIGN),
    "openai-responses/openai-apply-patch-tool.1.chunks.txt": (MalformedError, FOREIGN),
    "openai-responses/openai-apply-patch-tool.1.json": (MalformedError, FOREIGN),
    "openai-responses/openai-client-tool-search.1.chunks.txt": (MalformedError, FOREIGN),
    "openai-responses/openai-client-tool-search.1.json": (MalformedError, FOREIGN),
    "openai-responses/openai-custom-tool.1.chunks.txt": (MalformedError, FOREIGN),
    "openai-responses/openai-custom-tool.1.json": (MalformedError, FOREIGN),
    "openai-responses/openai-mcp-tool-approval.1.chunks.txt": (MalformedError, FOREIGN),
    "openai-responses/openai-mcp-tool-approval.1.json": (MalformedError, FOREIGN),
    "openai-responses/openai-mcp-tool-approval.3.chunks.txt": (MalformedError, FOREIGN),
    "openai-responses/openai-mcp-tool-approval.3.json": (MalformedError, FOREIGN),
    "openai-responses/parallel-tool-call-wrapper.1.chunks.txt": (MalformedError, "two of its lines are not JSON"),
    "openai-responses/openai-error.1.chunks.txt": (OutOfMoneyError, "the account has no credit"),
    "openai-responses/openai-error.1.json": (OutOfMoneyError, "the account has no credit"),
    "openai-responses/reasoning-model-temperature-error.json": (BadRequestError, "an error body"),
    "openai/reasoning-model-legacy-parameter-error.json": (BadRequestError, "an error body"),
}
# Recordings whose pieces differ from the whole that the same stream ends with; the whole counts.
PIECES_DIFFER = {"openai-responses/openai-shell-container.1.chunks.txt": "its deltas were shortened by hand"}


class Case(NamedTuple):
    name: str
    wire: str
    raw: bytes
    headers: dict[str, str]
    stream: bool


@pytest.fixture(scope="module")
def cases(data: Callable[[str], Path]) -> list[Case]:
    traffic, fixtures = data("llm-traffic") / "dev", data("llm-fixtures-vercel") / "dev"
    return [*_traffic(traffic), *_fixtures(fixtures)]


def _traffic(folder: Path) -> Iterator[Case]:
    for path in sorted([*folder.glob("recordings/*.json"), *folder.glob("conversations/*.json")]):
        recording = json.loads(path.read_text())
        for number, turn in enumerate(recording.get("turns", [recording])):
            response = turn["response"]
            if turn["api"] not in WIRE_OF or response["status"] != 200:
                continue
            raw = _body(response)
            stream = raw[:1] in (b":", b"d", b"e")
            yield Case(f"{path.stem}#{number}", WIRE_OF[turn["api"]], raw, response["headers"], stream)


def _body(response: Json) -> bytes:
    if "body_json" in response:
        return json.dumps(response["body_json"]).encode()
    text: str = response["body_text"]
    return base64.b64decode(text) if ":" not in text[:300] else text.encode()


def _fixtures(folder: Path) -> Iterator[Case]:
    for path in sorted(folder.glob("*/*")):
        kind, name = path.parent.name, f"{path.parent.name}/{path.name}"
        if kind in OTHER_DIALECTS:
            continue
        chat = kind in CHAT or path.name.startswith("azure-deepseek")
        wire = "anthropic" if kind == "anthropic" else "openai-chat" if chat else "openai-responses"
        if path.suffix == ".json":
            yield Case(name, wire, path.read_bytes(), {}, False)
            continue
        for part, lines in enumerate(_replies(path.read_bytes().splitlines())):
            raw = b"".join(b"data: %s\n\n" % line for line in lines) + (b"data: [DONE]\n\n" if chat else b"")
            yield Case(name if part == 0 else f"{name}+{part}", wire, raw, {}, True)


def _replies(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Some files hold several replies of a conversation; those without a stop reason are cut-outs."""
    replies: list[list[bytes]] = [[]]
    chat_id = b""
    for line in filter(bytes.strip, lines):
        id = line[:50] if line.startswith(b'{"id":"') else chat_id
        if chat_id and id != chat_id:
            replies.append([])
        chat_id = id
        replies[-1].append(line)
        if b'"type":"message_stop"' in line or b'"type":"response.completed"' in line:
            replies.append([])
    for reply in filter(None, replies):
        if b'"message_stop"' not in reply[-1] or any(b'"message_delta"' in line for line in reply):
            yield reply


def decoded(case: Case, cut: int = 0) -> tuple[Completion, str]:
    """The completion and the concatenated pieces; a stream arrives cut once, at byte `cut`."""
    wire = WIRES[case.wire]
    if not case.stream:
        completion = wire.decode(case.raw, case.headers, "someone")
        return completion, completion.text
    stream, decoder = wire.streamed(case.headers, "someone"), Decoder()
    pieces: list[str] = []
    for chunk in (case.raw[:cut], case.raw[cut:]):
        for event in decoder.feed(chunk):
            pieces += stream.feed(event)
    for event in decoder.finish():
        pieces += stream.feed(event)
    return stream.finish(), "".join(pieces)


class Expected(NamedTuple):
    text: str
    calls: list[tuple[str, Any]]  # name, parsed arguments
    finish: str
    usage: Usage | None
    model: str


def _docs(case: Case) -> list[Json]:
    if not case.stream:
        return [json.loads(case.raw)]
    lines = case.raw.decode().replace("\r\n", "\n").split("\n")
    return [json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip() != "[DONE]"]


def _arguments(text: Any) -> Any:
    if not isinstance(text, str):
        return text or {}
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def expected_chat(case: Case) -> Expected:
    docs = _docs(case)
    choices = [choice for doc in docs for choice in doc.get("choices") or [] if choice["index"] == 0]
    turns = [choice.get("message") or choice.get("delta") or {} for choice in choices]
    content = [each for turn in turns for each in _as_list(turn.get("content"))]
    text = "".join(each if isinstance(each, str) else each.get("text", "") for each in content)
    calls: dict[Any, list[Any]] = {}
    for turn in turns:
        for number, call in enumerate(turn.get("tool_calls") or []):
            slot = calls.setdefault(call.get("index", number), ["", ""])
            slot[0] = slot[0] or call["function"].get("name") or ""
            slot[1] = slot[1] + (call["function"].get("arguments") or "")
        if (turn.get("function_call") or {}).get("name"):
            calls[0] = [turn["function_call"]["name"], turn["function_call"]["arguments"]]
    finish = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")][-1:] or ["stop"]
    refusal = "".join(turn.get("refusal") or "" for turn in turns)
    shown = [doc.get("usage") or (doc.get("x_groq") or {}).get("usage") for doc in docs]
    figures = [each for each in shown if each and each["completion_tokens"] is not None]
    return Expected(
        text or refusal,
        [(name, _arguments(text)) for name, text in calls.values()],
        "content_filter" if refusal else finish[0],
        _chat_usage(figures[-1]) if figures else None,
        [doc["model"] for doc in docs if doc.get("model")][-1],
    )


def _as_list(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content or ""]


def _chat_usage(figures: Json) -> Usage:
    inside, outside = figures.get("prompt_tokens_details") or {}, figures.get("completion_tokens_details") or {}
    read = inside.get("cached_tokens") or figures.get("cached_tokens") or figures.get("prompt_cache_hit_tokens") or 0
    read = min(read, figures["prompt_tokens"])  # Azure's Grok claims to have cached more than it was sent
    write = inside.get("cache_write_tokens") or 0
    output = figures["total_tokens"] - figures["prompt_tokens"]  # holds for all, also where thinking is counted apart
    apart = output - figures["completion_tokens"]
    thinking = min(outside.get("reasoning_tokens") or apart, output)
    return Usage(figures["prompt_tokens"] - read - write, read, write, output, thinking)


def expected_anthropic(case: Case) -> Expected:
    docs = _docs(case)
    message = docs[0]
    if case.stream:
        starts = [number for number, doc in enumerate(docs) if doc["type"] == "message_start"]
        docs = docs[starts[-1] :]
        message = docs[0]["message"]
        blocks: list[Json] = []
        for doc in docs:
            if doc["type"] == "content_block_start":
                blocks.append(dict(doc["content_block"], json=""))
            elif doc["type"] == "content_block_delta" and doc["delta"]["type"] == "text_delta":
                blocks[-1]["text"] += doc["delta"]["text"]
            elif doc["type"] == "content_block_delta" and doc["delta"]["type"] == "input_json_delta":
                blocks[-1]["json"] += doc["delta"]["partial_json"]
            elif doc["type"] == "message_delta":
                message["stop_reason"] = doc["delta"]["stop_reason"]
                message["stop_details"] = doc["delta"].get("stop_details")
                message["usage"] = {**message["usage"], **{k: v for k, v in doc["usage"].items() if v is not None}}
        message["content"] = blocks
    text = "".join(block["text"] for block in message["content"] if block["type"] == "text")
    uses = [block for block in message["content"] if block["type"] == "tool_use"]
    figures = message["usage"]
    usage = Usage(
        figures["input_tokens"],
        figures.get("cache_read_input_tokens") or 0,
        figures.get("cache_creation_input_tokens") or 0,
        figures["output_tokens"],
        (figures.get("output_tokens_details") or {}).get("thinking_tokens", 0),
    )
    refused = message["stop_reason"] == "refusal"
    return Expected(
        message["stop_details"]["explanation"] if refused and not text else text,
        [(block["name"], _arguments(block.get("json")) or block["input"]) for block in uses],
        message["stop_reason"],
        usage,
        message["model"],
    )


def expected_responses(case: Case) -> Expected:
    docs = _docs(case)
    response = docs[0]
    items = [doc["item"] for doc in docs if doc.get("type") == "response.output_item.done"]
    if case.stream:
        ends = ("response.completed", "response.incomplete")
        response = next(doc["response"] for doc in docs if doc["type"] in ends)
    output = response["output"] or items
    contents = [part for item in output if item["type"] == "message" for part in item["content"]]
    refusal = "".join(part["refusal"] for part in contents if part["type"] == "refusal")
    calls = [item for item in output if item["type"] == "function_call"]
    figures = response["usage"]
    inside, outside = figures.get("input_tokens_details") or {}, figures.get("output_tokens_details") or {}
    read, write = inside.get("cached_tokens") or 0, inside.get("cache_write_tokens") or 0
    fresh = figures["input_tokens"] - read - write
    cut = response["status"] == "incomplete"
    return Expected(
        "".join(part["text"] for part in contents if part["type"] == "output_text") or refusal,
        [(item["name"], _arguments(item["arguments"])) for item in calls],
        "refusal" if refusal else "length" if cut else "tool_calls" if calls else "stop",
        Usage(fresh, read, write, figures["output_tokens"], outside.get("reasoning_tokens") or 0),
        response["model"],
    )


EXPECTED = {"openai-chat": expected_chat, "anthropic": expected_anthropic, "openai-responses": expected_responses}
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}


def check(case: Case) -> None:
    completion, pieces = decoded(case)
    expected = EXPECTED[case.wire](case)
    finish = FINISH.get(expected.finish, expected.finish)
    if finish == "stop" and expected.calls:
        finish = "tool_calls"  # some services say "stop" of a turn with calls
    assert completion.finish == finish
    assert completion.text == expected.text
    assert pieces == completion.text or finish == "refusal" or case.name in PIECES_DIFFER
    assert completion.usage == (expected.usage or Usage())
    assert completion.model == expected.model
    calls = [] if finish in ("length", "refusal") else expected.calls  # calls that were cut are never run
    assert [(call.name, _arguments(call.arguments)) for call in completion.calls] == calls
    ids = [call.id for call in completion.calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


def test_every_recording_decodes_to_what_it_holds(cases: list[Case]) -> None:
    wrong: list[str] = []
    for case in cases:
        if case.name in EXCEPTIONS:
            continue
        try:
            check(case)
        except (AssertionError, ProviderError, LookupError) as error:
            wrong.append(f"{case.name}: {error!r:.1500}")
    assert not wrong, "\n".join(wrong)
    assert len(cases) > 400


def test_each_exception_is_the_error_that_the_table_says(cases: list[Case]) -> None:
    named = {case.name: case for case in cases}
    for name, (kind, _) in EXCEPTIONS.items():
        with pytest.raises(ProviderError) as caught:
            decoded(named[name])
        assert type(caught.value) is kind, name


def test_streams_cut_anywhere_say_the_same(cases: list[Case]) -> None:
    for case in cases:
        if not case.stream or case.name in EXCEPTIONS:
            continue
        whole = decoded(case)
        borders = [at for at in range(1, len(case.raw)) if case.raw[at] & 0xC0 == 0x80][:3]  # within a character
        for cut in (*borders, 1, len(case.raw) // 3, len(case.raw) // 2 + 1, len(case.raw) - 1):
            assert decoded(case, cut) == whole, (case.name, cut)


def test_a_short_stream_cut_at_every_byte_says_the_same(cases: list[Case]) -> None:
    for wire in WIRES:
        streams = (case for case in cases if case.wire == wire and case.stream and case.name not in EXCEPTIONS)
        case = min(streams, key=lambda case: len(case.raw))
        crlf = case._replace(raw=case.raw.replace(b"\n", b"\r\n"))
        whole = decoded(case)
        for cut in range(len(crlf.raw)):
            assert decoded(crlf, cut) == whole, cut


def test_a_stream_without_its_end_is_truncated_whatever_came_before(cases: list[Case]) -> None:
    ends: tuple[bytes, ...] = (
        b'"finish_reason":"',
        b'"finish_reason": "',
        b"[DONE]",
        b'"message_stop"',
        b'"response.completed"',
    )
    ends += (b'"response.incomplete"', b'"message_delta"')
    seen = 0
    for case in cases:
        if not case.stream or case.name in EXCEPTIONS:
            continue
        kept: list[bytes] = []
        for event in case.raw.replace(b"\r\n", b"\n").split(b"\n\n"):
            if any(end in event for end in ends):
                break
            kept.append(event)
        seen += 1
        with pytest.raises(TruncatedError):
            decoded(case._replace(raw=b"\n\n".join([*kept, b""])))
    assert seen > 100
