"""OpenAI's Responses, used without anything kept on the provider's side.

Source: OpenAI's API reference, "Responses" and its streaming events. `base_url` ends where
"/responses" begins ("https://host/v1").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    result_text,
    unique,
    usage,
    words,
)
from research.llm.wires.schemas import reply_format, same_when_strict, strict

NAME = "openai-responses"
LEAST_OUTPUT = 16  # a smaller max_output_tokens is refused


def encode(request: Request, model: str, *, stream: bool, dialect: Dialect) -> Encoded:
    """Raises: ValueError if calls and results don't pair."""
    check_pairs(request.messages)
    system = request.system if dialect.structured == "schema" else instructed(request)
    body: Json = {
        "model": model,
        "input": [item for message in distinct(request.messages) for item in _items(message)],
        "max_output_tokens": max(request.max_tokens + request.reasoning_tokens, LEAST_OUTPUT),
        "store": False,
    }
    if system:
        body["instructions"] = system
    if request.temperature is not None and dialect.temperature:
        body["temperature"] = request.temperature
    if dialect.reasoning == "effort":
        body["include"] = ["reasoning.encrypted_content"]
        if request.reasoning_tokens:
            body["reasoning"] = {"effort": effort(request.reasoning_tokens)}
    if request.schema is not None and dialect.structured in ("schema", "object"):
        body["text"] = {"format": _format(request.schema, dialect)}
    if request.tools:
        body["tools"] = [_tool(tool, dialect) for tool in request.tools]
        if request.tool_choice == "none":
            body["tool_choice"] = "none"
    if stream:
        body["stream"] = True
    return Encoded("/responses", body, headers(stream))


def _format(schema: Mapping[str, Any], dialect: Dialect) -> Json:
    if dialect.structured == "object":
        return {"type": "json_object"}
    return {"type": "json_schema", **reply_format(schema, dialect.bounds)}


def _tool(tool: Tool, dialect: Dialect) -> Json:
    """`strict` is always said: this API takes its absence for true."""
    closed = same_when_strict(tool.parameters)
    parameters = strict(tool.parameters, bounds=dialect.bounds) if closed else dict(tool.parameters)
    form = {"type": "function", "name": tool.name, "description": tool.description}
    return {**form, "parameters": parameters, "strict": closed}


def _items(message: Message) -> Iterable[Json]:
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.call_id, "output": result_text(message)}
        return
    if message.role == "assistant":
        yield from replayed(NAME, message) or ()
    if message.text or message.role == "user":
        yield {"role": message.role, "content": message.text}
    for call in message.calls:
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def decode(body: bytes, headers: Mapping[str, str], provider: str) -> Completion:
    """Raises: ProviderError if the body reports a failure, MalformedError."""
    response = load(body, provider)
    if response.get("error"):
        raise inner_failure(response, provider)
    if not isinstance(response.get("output"), list):
        raise MalformedError(f"{provider} sent a reply without output. Try again.")
    stream = ResponseStream(headers, provider)
    stream.response = response
    return stream.finish()


def streamed(headers: Mapping[str, str], provider: str) -> ResponseStream:
    return ResponseStream(headers, provider)


class ResponseStream:
    """One reply. Its last event holds the whole; items on the way serve where that one is bare."""

    def __init__(self, headers: Mapping[str, str], provider: str) -> None:
        self.provider = provider
        self.request_id = request_id(headers)
        self.response: Json | None = None
        self.items: dict[int, Json] = {}

    def feed(self, event: Event) -> list[str]:
        if self.response is not None or event.data.strip() == "[DONE]":
            return []
        value = load(event.data, self.provider)
        kind = words(value, "type") or event.name
        if kind in ("error", "response.failed", "response.error"):
            raise inner_failure(value, self.provider)
        if kind in ("response.completed", "response.incomplete", "response.done"):
            self.response = part(value, "response")
        elif kind == "response.output_item.done":
            index = value.get("output_index")
            self.items[index if isinstance(index, int) else len(self.items)] = part(value, "item")
        elif kind == "response.output_text.delta":
            return [words(value, "delta")] if words(value, "delta") else []
        return []

    def finish(self) -> Completion:
        if self.response is None:
            raise TruncatedError(f"{self.provider} broke off its reply before the end. Try again.")
        response, model = self.response, words(self.response, "model") or "its model"
        output = parts(response, "output") or [self.items[index] for index in sorted(self.items)]
        used = _usage(part(response, "usage"))
        refused, finish = _finish(response, output, self.provider)
        text = "".join(_texts(output, "output_text", "text")) or (refused if finish == "refusal" else "")
        made = [item for item in output if item.get("type") == "function_call"]
        named = ((words(item, "call_id"), words(item, "name"), item.get("arguments") or "") for item in made)
        calls = unique(named, words(response, "id"))
        again = [item for item in output if item.get("type") == "reasoning" and item.get("encrypted_content")]
        return completion(
            self.provider,
            text,
            finish,
            used,
            model,
            calls,
            self.request_id or words(response, "id"),
            replay(NAME, again if calls else []),
        )


def _texts(output: list[Json], kind: str, key: str) -> Iterable[str]:
    for item in output:
        if item.get("type") == "message":
            yield from (words(piece, key) for piece in parts(item, "content") if piece.get("type") == kind)


def _finish(response: Json, output: list[Json], provider: str) -> tuple[str, Finish]:
    """What the model said in refusing, and how the reply ended. Raises: ProviderError if it did not."""
    status = words(response, "status") or "completed"
    reason = words(part(response, "incomplete_details"), "reason")
    refused = "".join(_texts(output, "refusal", "refusal"))
    if status == "failed":
        raise inner_failure(response, provider)
    if status not in ("completed", "incomplete"):
        raise MalformedError(f"{provider} sent a reply whose status is {status}. Try again.")
    if refused or reason == "content_filter":
        return refused, "refusal"
    return "", "length" if status == "incomplete" else "stop"


def _usage(figures: Json) -> Usage:
    prompt, output = count(figures, "input_tokens"), count(figures, "output_tokens")
    inside, outside = part(figures, "input_tokens_details"), part(figures, "output_tokens_details")
    return usage(
        prompt,
        output,
        read=count(inside, "cached_tokens") or 0,
        write=count(inside, "cache_write_tokens") or 0,
        reasoning=count(outside, "reasoning_tokens") or 0,
    )
