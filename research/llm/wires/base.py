"""What the wires share: the parts of a wire, a dialect's variants, and careful reading of JSON."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

from research.errors import MalformedError
from research.llm.messages import Completion, Finish, Message, Request, ToolCall, Usage
from research.llm.sse import Event
from research.llm.wires.schemas import BOUNDS

Json = dict[str, Any]
MOST_TOKENS = 10**9  # a count beyond this is no count
LEAST_THINKING = 1024  # tokens; what providers take as the smallest budget


@dataclass(frozen=True)
class Dialect:
    """Where services that speak one wire differ.

    limit          the field that holds the allowance (Chat Completions only)
    structured     how a schema is asked for: natively, as any JSON object with the schema in
                   the prompt, by a forced tool (Anthropic only), or in the prompt alone
    bounds         schema keywords that the native form takes
    stream_usage   ask for usage in a stream (Chat Completions only)
    cache_markers  mark what the provider should cache
    reasoning      how `reasoning_tokens` is told: not at all, as an effort, as a budget, or
                   as leave to think ("adaptive", Anthropic)
    reasoning_back fields of an assistant's message that the service wants back with its tool calls
    temperature    whether the model takes one
    """

    limit: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    structured: Literal["schema", "object", "tool", "prompt"] = "schema"
    bounds: frozenset[str] = frozenset(BOUNDS) - {"minLength", "maxLength"}
    stream_usage: bool = True
    cache_markers: bool = False
    reasoning: Literal["none", "effort", "budget", "adaptive"] = "none"
    reasoning_back: tuple[str, ...] = ()
    system_role: Literal["system", "developer"] = "system"
    temperature: bool = True


class Encoded(NamedTuple):
    """A POST to the provider's base URL plus `path`. `headers` hold no key."""

    path: str
    body: Json
    headers: dict[str, str]


class Stream(Protocol):
    """Decodes one streamed reply."""

    def feed(self, event: Event) -> list[str]:
        """The pieces of text that `event` adds. Raises: ProviderError if it reports a failure."""
        ...

    def finish(self) -> Completion:
        """The whole reply. Raises: TruncatedError if the terminal event never came, MalformedError."""
        ...


class Wire(Protocol):
    """A dialect of HTTP that models are called in. Each is a module of this package."""

    def encode(self, request: Request, model: str, *, stream: bool, dialect: Dialect) -> Encoded: ...

    def decode(self, body: bytes, headers: Mapping[str, str], provider: str) -> Completion: ...

    def streamed(self, headers: Mapping[str, str], provider: str) -> Stream: ...


def headers(stream: bool) -> dict[str, str]:
    return {"content-type": "application/json", "accept": "text/event-stream" if stream else "application/json"}


def request_id(headers: Mapping[str, str]) -> str:
    """The provider's id of a call, for its support. `headers` in any case of letters."""
    found = {name.lower(): value for name, value in headers.items()}
    names = ("x-request-id", "request-id", "apim-request-id", "x-generation-id", "cf-ray")
    return next((found[name] for name in names if found.get(name)), "")


def effort(tokens: int) -> str:
    """An allowance for thinking in the words that some providers take instead of a number."""
    return "low" if tokens <= 2_000 else "medium" if tokens <= 8_000 else "high"


def instructed(request: Request) -> str:
    """The system prompt with the schema spelled out, for dialects that can't be told otherwise."""
    if request.schema is None:
        return request.system
    schema = json.dumps(request.schema, ensure_ascii=False, sort_keys=True)
    told = f"Reply with one JSON object that fits this JSON Schema, and nothing else:\n{schema}"
    return f"{request.system}\n\n{told}".lstrip()


def result_text(message: Message) -> str:
    """A tool's result for dialects without an error flag."""
    if message.failed and not message.text.lower().startswith("error"):
        return f"Error: {message.text}"
    return message.text


def check_pairs(messages: Sequence[Message]) -> None:
    """Each call is answered once, directly after its turn, as all providers demand.

    Raises: ValueError, which is a mistake of ours and not of the provider's.
    """
    waiting: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.call_id not in waiting:
                raise ValueError(f"the tool result {message.call_id!r} answers no open call")
            waiting.discard(message.call_id)
            continue
        if waiting:
            raise ValueError(f"tool calls without a result: {sorted(waiting)}")
        waiting = {call.id for call in message.calls}
        if len(waiting) != len(message.calls):
            raise ValueError("two tool calls of one turn share an id")
    if waiting:
        raise ValueError(f"tool calls without a result: {sorted(waiting)}")


def distinct(messages: Sequence[Message]) -> list[Message]:
    """`messages` with call ids that are unique in the whole conversation and of plain letters.

    Some services number their calls anew in each turn ("call_0"), or use dots and colons,
    which Anthropic and OpenAI's Responses refuse. The same history gives the same ids.
    """
    renamed: list[Message] = []
    used: dict[str, int] = {}
    current: dict[str, str] = {}
    for message in messages:
        for call in message.calls:
            plain = re.sub(r"[^a-zA-Z0-9_-]", "_", call.id)
            used[plain] = used.get(plain, 0) + 1
            current[call.id] = plain if used[plain] == 1 else f"{plain}__{used[plain]}"
        calls = tuple(replace(call, id=current[call.id]) for call in message.calls)
        renamed.append(replace(message, calls=calls, call_id=current.get(message.call_id, message.call_id)))
    return renamed


def replay(wire: str, content: Any) -> str:
    """What a provider wants back verbatim with this turn, as a completion carries it."""
    return json.dumps({"wire": wire, "content": content}, ensure_ascii=False, sort_keys=True) if content else ""


def replayed(wire: str, message: Message) -> Any:
    """The content of `message.replay` if it came from this wire, else None."""
    if not message.replay:
        return None
    value = json.loads(message.replay)
    return value["content"] if value.get("wire") == wire else None


def load(data: bytes | str, provider: str) -> Json:
    """A JSON object that a provider sent. NaN and its like become null.

    Raises: MalformedError.
    """
    try:
        value = json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise MalformedError(f"{provider} sent something that is not JSON. Check its base URL, or try again.") from None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]  # Gemini wraps its errors so
    if not isinstance(value, dict):
        raise MalformedError(f"{provider} sent JSON that is no object. Check its base URL, or try again.")
    return value


def part(value: Any, key: str) -> Json:
    """`value[key]` if that is an object, else an empty one."""
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def parts(value: Any, key: str) -> list[Json]:
    """The objects in the list `value[key]`."""
    inner = value.get(key) if isinstance(value, dict) else None
    return [each for each in inner if isinstance(each, dict)] if isinstance(inner, list) else []


def words(value: Any, key: str) -> str:
    """`value[key]` if that is text, else ""."""
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, str) else ""


def count(value: Any, *keys: str) -> int | None:
    """The first of `keys` that holds a count of tokens; None if there is none, or nonsense."""
    for key in keys:
        found = value.get(key)
        if found is not None:
            good = isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= MOST_TOKENS
            return int(found) if good else None
    return None


def usage(prompt: int | None, output: int | None, *, read: int = 0, write: int = 0, reasoning: int = 0) -> Usage:
    """`prompt` includes what was read from and written to the cache.

    An all-zero Usage means that the provider gave no (usable) figures.
    """
    if prompt is None or output is None:
        return Usage()
    read = min(read, prompt)
    write = min(write, prompt - read)
    return Usage(prompt - read - write, read, write, output, min(reasoning, output))


def unique(calls: Iterable[tuple[str, str, Any]], seed: str) -> tuple[ToolCall, ...]:
    """Calls of (id, name, arguments); ids that are missing or repeated are made from `seed`, nine
    letters and digits long (Mistral takes no others)."""
    made: list[ToolCall] = []
    taken: set[str] = set()
    for number, (call, name, arguments) in enumerate(calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        if not call or call in taken:
            call = hashlib.sha256(f"{seed}\0{number}\0{name}\0{text}".encode("utf-8", "replace")).hexdigest()[:9]
        taken.add(call)
        made.append(ToolCall(call, name, text if text.strip() else "{}"))
    return tuple(made)


def completion(
    provider: str,
    text: str,
    finish: Finish,
    used: Usage,
    model: str,
    calls: tuple[ToolCall, ...],
    request_id: str,
    replay: str = "",
) -> Completion:
    """The completion, if it holds anything; its calls only if they are surely whole.

    Raises: MalformedError for an empty reply, with its `usage`.
    """
    if finish in ("length", "refusal"):
        calls = ()
    if finish == "tool_calls" and not calls:
        finish = "stop"
    if finish == "stop" and not text.strip() and not calls:
        raise MalformedError(f"{provider} sent an empty reply for {model}. Try again.", usage=used)
    return Completion(
        text, "tool_calls" if finish == "stop" and calls else finish, used, model, calls, request_id, replay
    )
