"""OpenAI's Chat Completions, and what dozens of services make of it.

Source: OpenAI's API reference, "Chat Completions"; the variants are as their services'
replies show them. `base_url` ends where "/chat/completions" begins ("https://host/v1").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from research.errors import MalformedError, TruncatedError
from research.llm.failures import inner_failure
from research.llm.messages import Completion, Finish, Message, Request, Tool, Usage
from research.llm.sse import Event
from research.llm.wires.base import (
    Dialect,
    Encoded,
    Json,
    check_pairs,
    completion,
    count,
    effort,
    headers,
    instructed,
    load,
    part,
    parts,
    replay,
    replayed,
    request_id,
    result_text,
    unique,
    usage,
    words,
)
from research.llm.wires.schemas import reply_format, same_when_strict, strict

NAME = "openai-chat"
CACHE = {"type": "ephemeral"}
FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "refusal": "refusal",
    "sensitive": "refusal",  # Z.ai
}
BROKEN = ("error", "abort", "network_error", "insufficient_system_resource")  # OpenRouter, vLLM, Z.ai, DeepSeek
# What services call the thinking that they show; `reasoning_back` says which of it they want again.
THINKING = ("reasoning_content", "reasoning", "reasoning_details", "thought_signature", "extra_content")


def encode(request: Request, model: str, *, stream: bool, dialect: Dialect) -> Encoded:
    """Raises: ValueError if calls and results don't pair."""
    check_pairs(request.messages)
    allowance = request.max_tokens + request.reasoning_tokens
    body: Json = {"model": model, "messages": _messages(request, dialect), dialect.limit: allowance}
    if request.temperature is not None and dialect.temperature:
        body["temperature"] = request.temperature
    if request.reasoning_tokens and dialect.reasoning == "effort":
        body["reasoning_effort"] = effort(request.reasoning_tokens)
    elif request.reasoning_tokens and dialect.reasoning == "budget":
        body["reasoning"] = {"max_tokens": request.reasoning_tokens}
    if request.schema is not None and dialect.structured in ("schema", "object"):
        body["response_format"] = _format(request.schema, dialect)
    if request.tools:
        body["tools"] = [_tool(tool, dialect) for tool in request.tools]
        if request.tool_choice == "none":
            body["tool_choice"] = "none"
    if stream:
        body["stream"] = True
        if dialect.stream_usage:
            body["stream_options"] = {"include_usage": True}
    return Encoded("/chat/completions", body, headers(stream))


def _format(schema: Mapping[str, Any], dialect: Dialect) -> Json:
    if dialect.structured == "object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": reply_format(schema, dialect.bounds)}


def _tool(tool: Tool, dialect: Dialect) -> Json:
    function: Json = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    if dialect.structured == "schema" and same_when_strict(tool.parameters):
        function |= {"parameters": strict(tool.parameters, bounds=dialect.bounds), "strict": True}
    return {"type": "function", "function": function}


def _messages(request: Request, dialect: Dialect) -> list[Json]:
    system = request.system if dialect.structured == "schema" else instructed(request)
    encoded = [{"role": dialect.system_role, "content": system}] if system else []
    for message in request.messages:
        if message.role == "assistant" and not message.text and not message.calls:
            continue  # an empty turn is refused by most
        encoded.append(_message(message, dialect))
    if dialect.cache_markers:
        _mark(encoded, bool(request.tools))
    return encoded


def _message(message: Message, dialect: Dialect) -> Json:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": result_text(message)}
    if message.role == "user":
        return {"role": "user", "content": message.text}
    again = replayed(NAME, message) or {}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        | again.get("calls", {}).get(call.id, {})
        for call in message.calls
    ]
    fields = {name: again[name] for name in dialect.reasoning_back if name in again}
    return {"role": "assistant", "content": message.text or None, **({"tool_calls": calls} if calls else {}), **fields}


def _mark(encoded: list[Json], loop: bool) -> None:
    """Cache up to the system prompt, and in a loop with tools up to the newest two turns as well."""
    ends = [encoded[0]] if encoded[0]["role"] in ("system", "developer") else []
    if loop:
        ends += [message for message in encoded if message["role"] in ("user", "tool") and message["content"]][-2:]
    for message in ends:
        message["content"] = [{"type": "text", "text": message["content"], "cache_control": CACHE}]


def decode(body: bytes, headers: Mapping[str, str], provider: str) -> Completion:
    """Raises: ProviderError if the body reports a failure, MalformedError."""
    reply = load(body, provider)
    stream = ChatStream(headers, provider)
    choices = parts(reply, "choices")[:1]
    if choices and "message" not in choices[0] and not choices[0].get("finish_reason"):
        raise MalformedError(f"{provider} sent a choice without a message. Try again.")
    stream.take({**reply, "choices": [{**choice, "delta": _numbered(choice)} for choice in choices]})
    if not choices:
        raise MalformedError(f"{provider} sent a reply without choices. Try again.", usage=stream.used)
    stream.done = True
    return stream.finish()


def _numbered(choice: Json) -> Json:
    """The message, each of its calls with an index of its own, as in a stream."""
    message = part(choice, "message")
    calls = [{**call, "index": number} for number, call in enumerate(parts(message, "tool_calls"))]
    return {**message, "tool_calls": calls}


def streamed(headers: Mapping[str, str], provider: str) -> ChatStream:
    return ChatStream(headers, provider)


class ChatStream:
    """One reply, gathered from its chunks. A whole reply is one chunk."""

    def __init__(self, headers: Mapping[str, str], provider: str) -> None:
        self.provider = provider
        self.request_id = request_id(headers)
        self.done = False
        self.used = Usage()
        self.model = ""
        self.id = ""
        self.finish_reason: str | None = None
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.calls: list[Json] = []
        self.again: Json = {}

    def feed(self, event: Event) -> list[str]:
        self.done = self.done or event.data.strip() == "[DONE]"
        if self.done:
            return []
        chunk = load(event.data, self.provider)
        if event.name == "error" and "error" not in chunk:
            chunk = {"error": chunk}
        return self.take(chunk)

    def take(self, chunk: Json) -> list[str]:
        if chunk.get("error") or chunk.get("object") == "error":
            raise inner_failure(chunk, self.provider)
        self.id = words(chunk, "id") or self.id
        self.model = words(chunk, "model") or self.model
        figures = _usage(part(chunk, "usage") or part(part(chunk, "x_groq"), "usage"))
        self.used = figures if figures != Usage() else self.used
        added: list[str] = []
        for choice in parts(chunk, "choices"):
            if choice.get("index") not in (0, None):
                continue
            if choice.get("error"):
                raise inner_failure(choice, self.provider)
            self.finish_reason = words(choice, "finish_reason") or self.finish_reason
            added += self._delta(part(choice, "delta"))
        return added

    def _delta(self, delta: Json) -> list[str]:
        added = [text for text in _texts(delta.get("content")) if text]
        self.text += added
        self.refusal.append(words(delta, "refusal"))
        for call in parts(delta, "tool_calls"):
            self._call(call)
        if words(part(delta, "function_call"), "name") or (delta.get("function_call") and self.calls):
            self._call({"index": 0, "function": delta["function_call"]})  # the form before tools
        for name in THINKING:
            if delta.get(name):
                self.again[name] = _joined(self.again.get(name), delta[name])
        return added

    def _call(self, piece: Json) -> None:
        """Some services send no index, or 0 for each of several calls: then a new id begins a new call."""
        id, index, function = words(piece, "id"), piece.get("index"), part(piece, "function")
        same = [
            call for call in self.calls if call["index"] == index and (not id or id == call["id"] or not call["id"])
        ]
        fresh = not same or (index is None and words(function, "name") and not id)
        if fresh:
            self.calls.append({"index": index, "id": "", "name": "", "arguments": "", "extra": {}})
        call = self.calls[-1] if fresh else same[-1]
        call["id"] = id or call["id"]
        call["name"] = call["name"] or words(function, "name")
        arguments = function.get("arguments")
        call["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
        if extra := part(piece, "extra_content"):
            call["extra"] = {"extra_content": extra}

    def finish(self) -> Completion:
        if self.finish_reason in BROKEN or (self.finish_reason is None and not self.done):
            raise TruncatedError(f"{self.provider} broke off its reply before the end. Try again.")
        refusal = "".join(self.refusal)
        finish = "refusal" if refusal else FINISHES.get(self.finish_reason or "stop", "stop")
        calls = unique(((call["id"], call["name"], call["arguments"]) for call in self.calls), self.id)
        extras = {made.id: call["extra"] for made, call in zip(calls, self.calls, strict=True) if call["extra"]}
        again = (self.again | ({"calls": extras} if extras else {})) if calls else {}
        text = "".join(self.text) or refusal
        model = self.model or "its model"
        return completion(
            self.provider, text, finish, self.used, model, calls, self.request_id or self.id, replay(NAME, again)
        )


def _texts(content: Any) -> list[str]:
    """The text of a content: a string, or a list of parts (Mistral)."""
    if isinstance(content, str):
        return [content]
    return [words(each, "text") for each in parts({"content": content}, "content") if each.get("type") == "text"]


def _joined(old: Any, new: Any) -> Any:
    return new if old is None or type(old) is not type(new) or isinstance(new, dict) else old + new


def _usage(figures: Json) -> Usage:
    """Services that count thinking apart from `completion_tokens` (xAI, Gemini) show it in the total."""
    prompt, output = count(figures, "prompt_tokens"), count(figures, "completion_tokens")
    if prompt is None or output is None:
        return Usage()
    inside, outside = part(figures, "prompt_tokens_details"), part(figures, "completion_tokens_details")
    thinking = count(outside, "reasoning_tokens") or 0
    beyond = (count(figures, "total_tokens") or 0) - prompt - output
    read = count(inside, "cached_tokens")
    if read is None:
        read = count(figures, "cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
    return usage(
        prompt,
        output + max(beyond, 0),
        read=read or 0,
        write=count(inside, "cache_write_tokens") or count(figures, "cache_creation_input_tokens") or 0,
        reasoning=thinking or max(beyond, 0),
    )
