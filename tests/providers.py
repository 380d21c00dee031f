"""A loopback provider that speaks all three dialects, counts what it is asked, limits it, and misbehaves on purpose.

    async with Provider(replies) as provider:
        endpoint = provider.endpoint("anthropic")
        provider.faults.append(status(429, headers={"retry-after": "2"}))  # instead of the next reply

`replies` makes the text of a completion from the request's body. Usage is one token for four
bytes of the body, and one for each word of the reply; `provider.served` sums what was told.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from research.llm.endpoint import Endpoint, Limits
from research.llm.wires import Dialect
from tests.faults import Act, FaultServer, Received, hang, head, raw, reply, reset

__all__ = ["Fixed", "Provider", "Served", "Time", "cut", "hang", "pings", "raw", "reset", "speak", "status", "whole"]

Json = dict[str, Any]
PATHS = {"/v1/chat/completions": "openai-chat", "/v1/responses": "openai-responses", "/v1/messages": "anthropic"}
KEY = "canary-key-0123456789"


class Time:
    """A clock that stands still but for sleeping, which takes no time."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@dataclass
class Served:
    """What all completions together used, as the provider told it."""

    completions: int = 0
    input: int = 0
    output: int = 0


@dataclass
class Fixed:
    """A limit over a sliding window: what is beyond it is refused. `told`: replies have headers that say so."""

    requests: int
    window: float = 60.0
    told: bool = False
    wait: bool = False  # a refusal says when there is room again
    admitted: deque[float] = field(default_factory=deque)
    refused: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def admits(self) -> bool:
        now = time.monotonic()
        while self.admitted and self.admitted[0] <= now - self.window:
            self.admitted.popleft()
        if len(self.admitted) >= self.requests:
            self.refused.append(now)
            return False
        self.admitted.append(now)
        self.times.append(now)
        return True

    def headers(self) -> dict[str, str]:
        if not self.told:
            return {}
        return {
            "x-ratelimit-limit-requests": str(self.requests),
            "x-ratelimit-remaining-requests": str(max(self.requests - len(self.admitted), 0)),
        }


class Provider(FaultServer):
    """`faults` are played first, one a request; then completions are made, `latency` seconds each."""

    def __init__(
        self,
        replies: Callable[[Json], str] = lambda body: "Four.",
        limit: Fixed | None = None,
        latency: float = 0.0,
        key: str = KEY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(dict.fromkeys(PATHS, self._act), "127.0.0.1")
        self.replies = replies
        self.limit = limit
        self.latency = latency
        self.key = key
        self.clock = clock
        self.faults: deque[Act] = deque()
        self.served = Served()
        self.times: list[float] = []  # of each request, by the clock
        self.usage: Callable[[int, int], Json] | None = None  # other figures than the true ones, by dialect's names

    def endpoint(self, wire: str, limits: Limits | None = None, **ways: Any) -> Endpoint:
        base = self.url("") + ("" if wire == "anthropic" else "/v1")
        dialect = Dialect(**ways) if ways else Dialect()
        return Endpoint(
            "loopback", "model-1", wire, base, dialect, self.key, "LOOPBACK_API_KEY", limits=limits or Limits()
        )

    @property
    def bodies(self) -> list[Json]:
        return [json.loads(request.body) for request in self.requests]

    async def _act(self, writer: asyncio.StreamWriter, request: Received) -> None:
        self.times.append(self.clock())
        if self.limit is not None and not self.limit.admits():
            wait = {"retry-after": f"{max(self._wait(), 0.01):.2f}"} if self.limit.wait else {}
            await status(429, "rate_limit_error", {**self.limit.headers(), **wait})(writer, request)
        elif self.faults:
            await self.faults.popleft()(writer, request)
        elif self.key not in (request.header("x-api-key"), (request.header("authorization") or "")[len("Bearer ") :]):
            await status(401, "invalid x-api-key")(writer, request)
        else:
            await self.complete(writer, request)

    def _wait(self) -> float:
        assert self.limit is not None
        return self.limit.admitted[0] + self.limit.window - time.monotonic()

    async def complete(self, writer: asyncio.StreamWriter, request: Received) -> None:
        """A sound completion, streamed or whole as the request wants it."""
        await asyncio.sleep(self.latency)
        body = json.loads(request.body)
        text = self.replies(body)
        used = (len(request.body) // 4, len(text.split()))
        self.served.completions += 1
        self.served.input += used[0]
        self.served.output += used[1]
        headers = {"x-request-id": f"req-{self.served.completions}", **(self.limit.headers() if self.limit else {})}
        dialect = PATHS[request.path]
        if body.get("stream"):
            await speak(sse(events(dialect, text, used, self.usage)), headers)(writer, request)
        else:
            await whole(completed(dialect, text, used, self.usage), headers)(writer, request)


def status(code: int, message: str = "told so", headers: Mapping[str, str] | None = None) -> Act:
    """An error reply in the form that all three dialects share."""
    body = json.dumps({"type": "error", "error": {"type": message, "message": message}}).encode()
    return reply(body, code, {"Content-Type": "application/json", **(headers or {})})


def whole(body: Json, headers: Mapping[str, str] | None = None) -> Act:
    return reply(json.dumps(body).encode(), 200, {"Content-Type": "application/json", **(headers or {})})


def speak(
    pieces: Iterable[bytes], headers: Mapping[str, str] | None = None, every: float = 0.0, close: bool = False
) -> Act:
    """An event stream, in chunks, one piece every so many seconds; with `close` it ends with the connection."""

    async def act(writer: asyncio.StreamWriter, request: Received) -> None:
        kind = {"Content-Type": "text/event-stream", **(headers or {})}
        writer.write(head(200, kind | ({"Connection": "close"} if close else {"Transfer-Encoding": "chunked"})))
        for piece in pieces:
            if every:
                await writer.drain()
                await asyncio.sleep(every)
            writer.write(piece if close else b"%x\r\n%s\r\n" % (len(piece), piece))
        if close:
            await writer.drain()
            writer.close()
        else:
            writer.write(b"0\r\n\r\n")

    return act


def cut(dialect: str, after: int = 2, text: str = "This is cut off.") -> Act:
    """A stream that ends cleanly after so many events, without its last ones."""
    return speak(list(sse(events(dialect, text, (10, 4), None)))[:after])


def pings(count: int, every: float) -> Act:
    """A stream that only says that it is alive."""
    signs = [b": keep-alive\n\n", b'event: ping\ndata: {"type": "ping"}\n\n']
    return speak([signs[number % 2] for number in range(count)], every=every)


def sse(made: Iterable[Json | str]) -> Iterable[bytes]:
    for event in made:
        if isinstance(event, str):
            yield f"data: {event}\n\n".encode()
        else:
            name = f"event: {event['type']}\n" if "type" in event else ""
            yield f"{name}data: {json.dumps(event)}\n\n".encode()


Figures = Callable[[int, int], Json] | None


def chat_usage(asked: int, said: int) -> Json:
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def other_usage(asked: int, said: int) -> Json:
    return {"input_tokens": asked, "output_tokens": said}


def pieces_of(text: str) -> list[str]:
    """Three pieces, cut within words."""
    third = len(text) // 3 + 1
    return [text[at : at + third] for at in range(0, len(text), third)]


def events(dialect: str, text: str, used: tuple[int, int], figures: Figures) -> list[Json | str]:
    """A completion as each dialect streams it."""
    if dialect == "openai-chat":
        figures = figures or chat_usage
        chunk: Json = {"id": "c1", "object": "chat.completion.chunk", "model": "model-1"}
        deltas = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces_of(text))]
        rows: list[Json | str] = [
            {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
        ]
        rows.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        rows.append({**chunk, "choices": [], "usage": figures(*used)})
        return [*rows, "[DONE]"]
    if dialect == "openai-responses":
        done = completed(dialect, text, used, figures)
        rows = [{"type": "response.created", "response": {"id": "r1", "status": "in_progress"}}]
        rows += [{"type": "response.output_text.delta", "output_index": 0, "delta": one} for one in pieces_of(text)]
        return [*rows, {"type": "response.output_item.done", "output_index": 0, "item": done["output"][0]},
                {"type": "response.completed", "response": done}]  # fmt: skip
    message = completed(dialect, text, used, figures)
    begun = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in pieces_of(text)
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": message["usage"]},
        {"type": "message_stop"},
    ]


def completed(dialect: str, text: str, used: tuple[int, int], figures: Figures) -> Json:
    """A completion as each dialect sends it whole."""
    if dialect == "openai-chat":
        message = {"role": "assistant", "content": text}
        usage = (figures or chat_usage)(*used)
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "c1", "object": "chat.completion", "model": "model-1", "choices": [choice], "usage": usage}
    usage = (figures or other_usage)(*used)
    if dialect == "openai-responses":
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        return {"id": "r1", "status": "completed", "model": "model-1", "output": [item], "usage": usage}
    content = [{"type": "text", "text": text}] if text else []
    return {
        "id": "m1", "type": "message", "role": "assistant", "model": "model-1", "content": content,
        "stop_reason": "end_turn", "usage": usage,
    }  # fmt: skip
