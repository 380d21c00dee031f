"""Anthropic's Messages.

Source: Anthropic's API reference, "Messages", "Streaming messages", "Prompt caching",
"Structured outputs", "Extended thinking". `base_url` ends at the host.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from research.errors import ContextTooLongError, MalformedError, TruncatedError
from research.llm.failures import inner_failure
from research.llm.messages import Completion, Finish, Message, Request, Tool, Usage
from research.llm.sse import Event
from research.llm.wires.base import (
    LEAST_THINKING,
    Dialect,
    Encoded,
    Json,
    check_pairs,
    completion,
    count,
    distinct,
    effort,
    headers,
    instructed,
    load,
    part,
    parts,
    replay,
    replayed,
    request_id,
    unique,
    words,
)
from research.llm.wires.schemas import NotStrictError, strict

NAME = "anthropic"
VERSION = "2023-06-01"
CACHE = {"type": "ephemeral"}
REPLY_TOOL = "give_reply"  # the forced tool whose input is the structured reply
BOUNDS: frozenset[str] = frozenset()  # the native format refuses all bounds
FINISHES: Mapping[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
}


def encode(request: Request, model: str, *, stream: bool, dialect: Dialect) -> Encoded:
    """Raises: ValueError if calls and results don't pair."""
    check_pairs(request.messages)
    body: Json = {"model": model, "max_tokens": request.max_tokens, "messages": _turns(distinct(request.messages))}
    thinks = _thinking(request, body, dialect)
    if request.temperature is not None and dialect.temperature and not thinks:
        body["temperature"] = request.temperature
    system = _structured(request, body, dialect, thinks)
    if system:
        body["system"] = [{"type": "text", "text": system}]
    if request.tools:
        body["tools"] = [*map(_tool, request.tools), *body.get("tools", [])]
        if request.tool_choice == "none":
            body["tool_choice"] = {"type": "none"}
    if stream:
        body["stream"] = True
    if dialect.cache_markers:
        _mark(body, loop=bool(request.tools))
    return Encoded("/v1/messages", body, {**headers(stream), "anthropic-version": VERSION})


def _thinking(request: Request, body: Json, dialect: Dialect) -> bool:
    """Set the allowance for thinking, and say whether the model was told to think."""
    if request.reasoning_tokens:
        body["max_tokens"] += max(request.reasoning_tokens, LEAST_THINKING)
        if dialect.reasoning == "budget":
            body["thinking"] = {"type": "enabled", "budget_tokens": max(request.reasoning_tokens, LEAST_THINKING)}
        elif dialect.reasoning == "adaptive":
            body["thinking"] = {"type": "adaptive"}
            body["output_config"] = {"effort": effort(request.reasoning_tokens)}
    return "thinking" in body


def _structured(request: Request, body: Json, dialect: Dialect, thinks: bool) -> str:
    """Ask for the schema in the way that the dialect has; the system prompt to be sent."""
    if request.schema is None:
        return request.system
    if dialect.structured == "schema":
        try:
            schema = strict(request.schema, bounds=BOUNDS)
        except NotStrictError:
            return instructed(request)
        body.setdefault("output_config", {})["format"] = {"type": "json_schema", "schema": schema}
        return request.system
    if dialect.structured == "tool" and not thinks and not request.tools:  # thinking forbids a forced tool
        tool = {"name": REPLY_TOOL, "description": "Give the reply.", "input_schema": dict(request.schema)}
        body["tools"] = [tool]
        body["tool_choice"] = {"type": "tool", "name": REPLY_TOOL}
        return request.system
    return instructed(request)


def _tool(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def _turns(messages: list[Message]) -> list[Json]:
    """User and assistant alternate: neighbours of one side are one turn, tool results its first blocks."""
    turns: list[Json] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if turns and turns[-1]["role"] == "assistant" and turns[-1]["content"][-1]["type"] == "text":
        turns[-1]["content"][-1]["text"] = turns[-1]["content"][-1]["text"].rstrip()
    return turns


def _blocks(message: Message) -> list[Json]:
    if message.role == "tool":
        result: Json = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}
        return [result | ({"is_error": True} if message.failed else {})]
    again = replayed(NAME, message)
    if again and [block["id"] for block in again if block["type"] == "tool_use"] == [call.id for call in message.calls]:
        return [dict(block) for block in again]
    text = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return text + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}
        for call in message.calls
    ]


def _input(arguments: str) -> Json:
    """Arguments must be an object here; what a model garbled goes back as it was, under a name of ours."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"invalid": arguments}


def _mark(body: Json, loop: bool) -> None:
    """Cache tools and system prompt, and in a loop with tools the newest two user turns: the
    older one is what the last request wrote. Four marks are allowed; this sets at most three."""
    ends = body.get("system") or body.get("tools") or []
    if ends:
        ends[-1] = {**ends[-1], "cache_control": CACHE}
    for turn in [turn for turn in body["messages"] if turn["role"] == "user"][-2:] if loop else []:
        turn["content"][-1] = {**turn["content"][-1], "cache_control": CACHE}


def decode(body: bytes, headers: Mapping[str, str], provider: str) -> Completion:
    """Raises: ProviderError if the body reports a failure, MalformedError."""
    message = load(body, provider)
    if message.get("type") == "error" or message.get("error"):
        raise inner_failure(message, provider)
    if not isinstance(message.get("content"), list):
        raise MalformedError(f"{provider} sent a reply without content. Try again.")
    stream = MessageStream(headers, provider)
    stream.begin(message)
    stream.blocks = dict(enumerate(parts(message, "content")))
    stream.end(message)
    stream.done = True
    return stream.finish()


def streamed(headers: Mapping[str, str], provider: str) -> MessageStream:
    return MessageStream(headers, provider)


class MessageStream:
    """One reply, gathered block by block."""

    def __init__(self, headers: Mapping[str, str], provider: str) -> None:
        self.provider = provider
        self.request_id = request_id(headers)
        self.done = False
        self.id = ""
        self.model = ""
        self.stop: Json = {}
        self.figures: Json = {}
        self.blocks: dict[int, Json] = {}

    def feed(self, event: Event) -> list[str]:
        if self.done:
            return []
        value = load(event.data, self.provider)
        kind = words(value, "type") or event.name
        if kind == "error":
            raise inner_failure(value, self.provider)
        if kind == "message_start":
            self.begin(part(value, "message"))
        elif kind == "content_block_start":
            self.blocks[self._index(value)] = dict(part(value, "content_block"))
            return [text] if (text := words(part(value, "content_block"), "text")) else []
        elif kind == "content_block_delta":
            return self._delta(self._index(value), part(value, "delta"))
        elif kind == "message_delta":
            self.end({**part(value, "delta"), "usage": value.get("usage")})
        elif kind == "message_stop":
            self.done = True
        return []

    def _index(self, value: Json) -> int:
        index = value.get("index")
        if not isinstance(index, int):
            raise MalformedError(f"{self.provider} sent a piece of a reply that has no index. Try again.")
        return index

    def begin(self, message: Json) -> None:
        """A second start means that the service began anew, after a break of its own."""
        self.blocks.clear()
        self.id = words(message, "id")
        self.model = words(message, "model")
        self._count(message)

    def end(self, message: Json) -> None:
        self.stop = {**self.stop, **{key: value for key, value in message.items() if value is not None}}
        self._count(message)

    def _count(self, message: Json) -> None:
        self.figures |= {key: value for key, value in part(message, "usage").items() if value is not None}

    def _delta(self, index: int, delta: Json) -> list[str]:
        if index not in self.blocks:
            raise MalformedError(f"{self.provider} sent a piece of a block that it never began. Try again.")
        block = self.blocks[index]
        for kind, key in (("text_delta", "text"), ("thinking_delta", "thinking"), ("signature_delta", "signature")):
            if delta.get("type") == kind:
                block[key] = words(block, key) + words(delta, key)
                return [delta["text"]] if words(delta, "text") else []
        if delta.get("type") == "input_json_delta":
            block["partial"] = words(block, "partial") + words(delta, "partial_json")
        return []

    def finish(self) -> Completion:
        reason = words(self.stop, "stop_reason")
        if not self.done or not reason:
            raise TruncatedError(f"{self.provider} broke off its reply before the end. Try again.")
        used, model = _usage(self.figures), self.model or "its model"
        if reason == "model_context_window_exceeded":
            raise ContextTooLongError(
                f"{self.provider}: request and reply are longer than {model} can take. Use fewer or shorter sources.",
                usage=used,
            )
        blocks = [self.blocks[index] for index in sorted(self.blocks)]
        text = "".join(words(block, "text") for block in blocks if block.get("type") == "text")
        made = [block for block in blocks if block.get("type") == "tool_use"]
        calls = unique(((words(block, "id"), words(block, "name"), _arguments(block)) for block in made), self.id)
        finish = FINISHES.get(reason, "stop")
        if len(calls) == 1 and calls[0].name == REPLY_TOOL:
            text, calls, finish = calls[0].arguments, (), "stop" if finish == "tool_calls" else finish
        if finish == "refusal":
            text = text or words(part(self.stop, "stop_details"), "explanation")
        again = _again(blocks, [call.arguments for call in calls]) if calls else []
        return completion(
            self.provider, text, finish, used, model, calls, self.request_id or self.id, replay(NAME, again)
        )


def _arguments(block: Json) -> Any:
    return block["partial"] if words(block, "partial") else block.get("input") or {}


def _again(blocks: list[Json], arguments: list[str]) -> list[Json]:
    """The blocks of a turn with signed thinking; without any, text and calls say it all."""
    if not any(block.get("type") in ("thinking", "redacted_thinking") for block in blocks):
        return []
    inputs = iter(arguments)
    again = []
    for block in blocks:
        if block.get("type") == "tool_use":
            again.append({**block, "input": _input(next(inputs))})
        elif block.get("type") != "text" or words(block, "text").strip():
            again.append(block)
    return [{key: value for key, value in block.items() if key != "partial"} for block in again]


def _usage(figures: Json) -> Usage:
    """Here `input_tokens` counts fresh tokens only."""
    fresh, output = count(figures, "input_tokens"), count(figures, "output_tokens")
    if fresh is None or output is None:
        return Usage()
    return Usage(
        fresh,
        count(figures, "cache_read_input_tokens") or 0,
        count(figures, "cache_creation_input_tokens") or 0,
        output,
        min(count(part(figures, "output_tokens_details"), "thinking_tokens") or 0, output),
    )
