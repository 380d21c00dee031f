"""Models behind a loopback provider that plays every fault: what is sent, how often, after how long, and what is told."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from research.errors import (
    AuthError,
    BudgetError,
    ContextTooLongError,
    MalformedError,
    OutOfMoneyError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    RefusedError,
    RequestTooLargeError,
    TimedOutError,
    TruncatedError,
    UnknownModelError,
    UnreachableError,
    UsageError,
)
from research.limits.rates import Rates
from research.llm.client import Patience, ProviderModel
from research.llm.endpoint import Endpoint
from research.llm.messages import Attempt, Message, Request, Usage
from tests import faults
from tests.providers import KEY, PATHS, Provider, Time, completed, cut, events, pings, speak, sse, status, whole

WIRES = sorted(PATHS.values())
REQUEST = Request("Be brief.", (Message("user", "What is two and two?"),), max_tokens=100)


@dataclass
class Book:
    """An account that keeps all tries, and what was reserved and not settled."""

    tries: list[Attempt] = field(default_factory=list)
    reserved: list[Usage] = field(default_factory=list)
    open: int = 0
    refuse: bool = False

    async def reserve(self, most: Usage, name: str = "") -> Callable[[Attempt], None]:
        if self.refuse:
            raise BudgetError("budget reached")
        self.reserved.append(most)
        self.open += 1

        def settle(attempt: Attempt) -> None:
            self.open -= 1
            self.tries.append(attempt)

        return settle

    @property
    def failed(self) -> list[str]:
        return [attempt.failed for attempt in self.tries]


class Lab:
    """A provider, a clock that costs no time, and an account."""

    def __init__(self, provider: Provider, time: Time) -> None:
        self.provider = provider
        self.time = time
        self.book = Book()
        self.heard: list[str | None] = []
        self.models: list[ProviderModel] = []

    def model(self, wire: str = "openai-chat", stream: bool = True, **options: Any) -> ProviderModel:
        endpoint = options.pop("endpoint", None) or self.provider.endpoint(wire)
        rates = Rates(clock=self.time, sleep=self.time.sleep)
        model = ProviderModel(endpoint, rates, stream=stream, sleep=self.time.sleep, **options)
        self.models.append(model)
        return model

    async def ask(
        self, wire: str = "openai-chat", stream: bool = True, request: Request = REQUEST, **options: Any
    ) -> str:
        completion = await self.model(wire, stream, **options).complete(request, self.book, self.heard.append)
        return completion.text

    @property
    def count(self) -> int:
        return len(self.provider.requests)


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    time = Time()
    async with Provider(clock=time) as provider:
        lab = Lab(provider, time)
        yield lab
        for model in lab.models:
            await model.aclose()
            model.rates.close()
        assert lab.book.open == 0, "a try was reserved and never settled"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_completion_and_what_it_took(lab: Lab, wire: str, stream: bool) -> None:
    assert await lab.ask(wire, stream) == "Four."
    assert "".join(piece or "" for piece in lab.heard) == "Four."
    assert len(lab.heard) == (3 if stream else 1)
    [attempt] = lab.book.tries
    body = lab.provider.requests[0].body
    assert attempt.usage == Usage(input=len(body) // 4, output=1)
    assert (attempt.billed, attempt.failed, attempt.waited) == (True, "", pytest.approx(0, abs=0.05))
    assert 0 < attempt.first <= attempt.seconds
    assert lab.book.reserved == [Usage(input=-(-len(body) // 3), output=100)]


async def test_what_is_reserved_includes_thinking(lab: Lab) -> None:
    request = Request("", REQUEST.messages, max_tokens=100, reasoning_tokens=400)
    for wire in ("openai-chat", "openai-responses"):
        await lab.ask(wire, request=request)
    endpoint = lab.provider.endpoint("openai-chat")
    await lab.ask(endpoint=Endpoint(**{**vars(endpoint), "thinking": 2_000}))
    assert [most.output for most in lab.book.reserved] == [500, 500, 2_100]


# Retries


async def test_a_refused_rate_is_waited_out_as_the_provider_asks(lab: Lab) -> None:
    lab.provider.faults.append(status(429, headers={"retry-after": "2"}))
    assert await lab.ask() == "Four."
    first, second = lab.provider.times
    assert 2 <= second - first <= 3
    assert lab.book.failed == ["RateLimitError", ""]
    assert lab.book.tries[0].billed is False


@pytest.mark.parametrize(("code", "wait"), [(429, "3600"), (503, "900"), (429, "Sun, 01 Jan 2090 00:00:00 GMT")])
async def test_a_wait_that_is_too_long_is_not_slept(lab: Lab, code: int, wait: str) -> None:
    lab.provider.faults.append(status(code, headers={"retry-after": wait}))
    with pytest.raises(
        (RateLimitError, OverloadedError), match=r"give the same command again after \d\d:\d\d:\d\d UTC"
    ):
        await lab.ask()
    assert lab.count == 1
    assert lab.time.slept == []


@pytest.mark.parametrize("code", [503, 529])
async def test_a_busy_provider_is_asked_four_times_with_growing_gaps(lab: Lab, code: int) -> None:
    lab.provider.faults.extend([status(code)] * 3)
    assert await lab.ask() == "Four."
    assert lab.count == 4
    gaps = [after - before for before, after in zip(lab.provider.times, lab.provider.times[1:], strict=False)]
    assert gaps == sorted(gaps)
    assert all(low <= gap <= high for gap, low, high in zip(gaps, (0.3, 0.7, 1.4), (0.7, 1.3, 2.6), strict=True))
    assert len({round(gap / 2**number, 6) for number, gap in enumerate(gaps)}) == 3, "the gaps are not jittered"


async def test_and_no_more_than_four_times(lab: Lab) -> None:
    lab.provider.faults.extend([status(503)] * 9)
    with pytest.raises(OverloadedError) as caught:
        await lab.ask()
    assert caught.value.exit_code == 6
    assert lab.count == 4
    assert [attempt.billed for attempt in lab.book.tries] == [False] * 4


async def test_rates_that_stay_refused_end_after_four(lab: Lab) -> None:
    lab.provider.faults.extend([status(429)] * 9)
    with pytest.raises(RateLimitError):
        await lab.ask()
    assert lab.count == 4
    assert sum(lab.time.slept) > 3, "pauses of 1, 2 and 4 s were made"


NOT_AGAIN = [
    (401, "authentication_error", AuthError, 2),
    (403, "permission_error", AuthError, 2),
    (404, "model: model-1 does not exist", UnknownModelError, 2),
    (413, "request_too_large", RequestTooLargeError, 6),
    (429, "You exceeded your current quota, please check your plan and billing details", OutOfMoneyError, 6),
    (402, "Insufficient credits", OutOfMoneyError, 6),
    (400, "This model's maximum context length is 8192 tokens", ContextTooLongError, 6),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", ContextTooLongError, 6),
    (400, "Your input exceeds the context window of this model", ContextTooLongError, 6),
]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("code", "message", "kind", "exit_code"), NOT_AGAIN)
async def test_what_cannot_pass_is_sent_once(
    lab: Lab, wire: str, code: int, message: str, kind: type, exit_code: int
) -> None:
    lab.provider.faults.append(status(code, message))
    with pytest.raises(kind) as caught:
        await lab.ask(wire)
    assert type(caught.value) is kind
    assert caught.value.exit_code == exit_code
    assert lab.count == 1
    assert lab.book.failed == [kind.__name__]
    assert lab.book.tries[0].billed is False
    if kind is AuthError:
        assert "LOOPBACK_API_KEY" in str(caught.value)


async def test_a_context_that_is_too_long_as_a_stop_reason(lab: Lab) -> None:
    rows = events("anthropic", "Some text", (50, 9), None)
    delta: Any = rows[-2]
    delta["delta"]["stop_reason"] = "model_context_window_exceeded"
    lab.provider.faults.append(speak(sse(rows)))
    with pytest.raises(ContextTooLongError):
        await lab.ask("anthropic")
    assert lab.count == 1
    assert lab.book.tries[0].usage == Usage(input=50, output=9)


async def test_an_account_that_refuses_sends_nothing(lab: Lab) -> None:
    lab.book.refuse = True
    with pytest.raises(BudgetError):
        await lab.ask()
    assert lab.count == 0


# Replies that are cut, empty, late


@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_without_its_end_is_truncated_and_asked_for_once_more(lab: Lab, wire: str) -> None:
    lab.provider.faults.append(cut(wire, after=4))
    assert await lab.ask(wire) == "Four."
    assert lab.count == 2
    assert lab.book.failed == ["TruncatedError", ""]
    assert lab.book.tries[0].billed
    at = lab.heard.index(None)
    assert "This is cut off.".startswith("".join(lab.heard[:at]))  # type: ignore[arg-type]
    assert lab.heard[at + 1 :] == ["Fo", "ur", "."]


@pytest.mark.parametrize("wire", WIRES)
async def test_and_not_a_third_time(lab: Lab, wire: str) -> None:
    lab.provider.faults.extend([cut(wire), cut(wire), cut(wire)])
    with pytest.raises(TruncatedError):
        await lab.ask(wire)
    assert lab.count == 2
    assert lab.book.failed == ["TruncatedError"] * 2


@pytest.mark.parametrize("wire", WIRES)
async def test_a_connection_that_breaks_in_a_stream(lab: Lab, wire: str) -> None:
    data = b"".join(list(sse(events(wire, "This is cut off.", (10, 4), None)))[:3])
    start = faults.head(200, {"Content-Type": "text/event-stream", "Content-Length": "99999"})
    lab.provider.faults.append(faults.raw(start + data))
    lab.provider.faults.append(faults.reset(start + data[:-5]))
    with pytest.raises(TruncatedError):
        await lab.ask(wire)
    assert lab.count == 2


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_within_a_stream(lab: Lab, wire: str) -> None:
    began = list(sse(events(wire, "This is cut off.", (10, 4), None)))[:3]
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    lab.provider.faults.append(speak([*began, b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n"]))
    assert await lab.ask(wire) == "Four."
    assert lab.count == 2
    assert lab.book.failed == ["OverloadedError", ""]


@pytest.mark.parametrize("wire", WIRES)
async def test_events_that_nobody_knows_are_passed_over(lab: Lab, wire: str) -> None:
    strange = b'event: news\ndata: {"type": "news", "of": "nothing", "choices": []}\n\n: comment\n\nretry: 5\n\n'
    made = [strange + piece for piece in sse(events(wire, "Four.", (10, 1), None))]
    lab.provider.faults.append(speak(made))
    assert await lab.ask(wire) == "Four."


@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_cut_byte_by_byte_with_crlf(lab: Lab, wire: str) -> None:
    text = "Vier – 四, \u2028 четыре \U0001f600."
    data = b"".join(sse(events(wire, text, (10, 4), None))).replace(b"\n", b"\r\n")
    lab.provider.faults.append(speak([data[at : at + 1] for at in range(len(data))]))
    assert await lab.ask(wire) == text
    assert "".join(piece or "" for piece in lab.heard) == text


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
async def test_an_empty_completion_is_asked_for_once_more(lab: Lab, wire: str, stream: bool) -> None:
    empty = completed(wire, "", (10, 0), None)
    made = speak(list(sse(events(wire, "", (10, 0), None)))) if stream else whole(empty)
    lab.provider.faults.extend([made] * 3)
    with pytest.raises(MalformedError, match="empty"):
        await lab.ask(wire, stream)
    assert lab.count == 2
    assert [attempt.usage for attempt in lab.book.tries] == [Usage(input=10)] * 2


@pytest.mark.parametrize("wire", WIRES)
async def test_a_refusal_is_no_failure_to_try_again(lab: Lab, wire: str) -> None:
    body = completed(wire, "No.", (10, 1), None)
    if wire == "anthropic":
        body["stop_reason"] = "refusal"
    elif wire == "openai-chat":
        body["choices"][0]["message"]["refusal"] = "No."
    else:
        body["output"][0]["content"] = [{"type": "refusal", "refusal": "No."}]
    lab.provider.faults.append(whole(body))
    completion = await lab.model(wire, stream=False).complete(REQUEST, lab.book)
    assert completion.finish == "refusal"
    assert lab.count == 1
    lab.provider.faults.append(status(400, "content_filter: flagged by our policy"))
    with pytest.raises(RefusedError):
        await lab.ask(wire)
    assert lab.count == 2


async def test_a_reply_in_one_piece_where_a_stream_was_asked_for(lab: Lab) -> None:
    lab.provider.faults.append(whole(completed("openai-chat", "Four.", (10, 1), None)))
    assert await lab.ask() == "Four."
    assert lab.heard == ["Four."]


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"[1, 2]", b"{"])
async def test_a_reply_that_is_no_completion(lab: Lab, body: bytes) -> None:
    lab.provider.faults.extend([faults.reply(body, headers={"Content-Type": "application/json"})] * 2)
    with pytest.raises(MalformedError):
        await lab.ask(stream=False)
    assert lab.count == 2


SHORT = Patience(call=0.4, first=0.15, silence=0.15)


async def test_no_reply_at_all(lab: Lab) -> None:
    lab.provider.faults.extend([faults.hang()] * 3)
    with pytest.raises(TimedOutError, match=r"sent nothing for 0.15 s"):
        await lab.ask(patience=SHORT)
    assert lab.count == 2
    assert lab.book.failed == ["TimedOutError"] * 2
    assert all(attempt.billed and attempt.usage is None for attempt in lab.book.tries)


async def test_pings_and_comments_are_no_progress(lab: Lab) -> None:
    lab.provider.faults.extend([pings(50, every=0.02)] * 2)
    with pytest.raises(TimedOutError, match="sent nothing"):
        await lab.ask("anthropic", patience=SHORT)


async def test_silence_in_the_middle(lab: Lab) -> None:
    async def act(writer: asyncio.StreamWriter, request: faults.Received) -> None:
        made = list(sse(events("openai-chat", "Four.", (10, 1), None)))
        writer.write(faults.head(200, {"Content-Type": "text/event-stream"}) + b"".join(made[:3]))
        for _ in range(50):
            writer.write(b": still here\n\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    lab.provider.faults.extend([act, act])
    with pytest.raises(TimedOutError, match=r"fell silent for 0.15 s"):
        await lab.ask(patience=SHORT)
    assert lab.count == 2


async def test_slow_but_steady_is_bounded_by_the_deadline_alone(lab: Lab) -> None:
    made = list(sse(events("openai-chat", "Four.", (10, 1), None)))
    lab.provider.faults.append(speak(made, every=0.04))
    assert await lab.ask(patience=SHORT) == "Four."
    lab.provider.faults.extend([speak(made[:3] * 20 + made[3:], every=0.04)] * 2)
    with pytest.raises(TimedOutError, match=r"within 0.4 s"):
        await lab.ask(patience=SHORT)


async def test_nobody_listens(lab: Lab) -> None:
    endpoint = lab.provider.endpoint("openai-chat")
    closed = Endpoint(**{**vars(endpoint), "base_url": "http://127.0.0.1:1/v1"})
    with pytest.raises(UnreachableError) as caught:
        await lab.ask(endpoint=closed)
    assert caught.value.exit_code == 6
    assert lab.book.failed == ["UnreachableError"] * 4
    assert not any(attempt.billed for attempt in lab.book.tries)
    with pytest.raises(UsageError):
        await lab.ask(endpoint=Endpoint(**{**vars(endpoint), "base_url": "ftp://127.0.0.1"}))


async def test_a_connection_closed_before_any_reply_is_tried_again(lab: Lab) -> None:
    lab.provider.faults.extend([faults.raw(b""), faults.reset()])
    assert await lab.ask() == "Four."
    assert lab.count == 3


async def test_a_cancelled_call_is_settled(lab: Lab) -> None:
    lab.provider.faults.append(faults.hang())
    call = asyncio.create_task(lab.ask())
    await lab.provider.asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert lab.book.failed == ["cancelled"]
    assert lab.book.tries[0].usage is None
    assert lab.book.tries[0].billed


FIGURES = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("figure", [None, -5, float("nan"), "many"])
@pytest.mark.parametrize("stream", [True, False])
async def test_usage_that_is_none_is_not_known(lab: Lab, wire: str, figure: Any, stream: bool) -> None:
    lab.provider.usage = lambda asked, said: {} if figure is None else dict.fromkeys(FIGURES, figure)
    assert await lab.ask(wire, stream) == "Four."
    assert [attempt.usage for attempt in lab.book.tries] == [None]
    assert lab.book.tries[0].billed


# Keys


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_key_that_the_provider_echoes_is_shown_to_nobody(lab: Lab, wire: str, stream: bool) -> None:
    lab.provider.replies = lambda body: f"Your key is {KEY}, and {KEY[:-1]} is not."
    told = await lab.ask(wire, stream)
    assert told == f"Your key is [key], and {KEY[:-1]} is not."
    assert "".join(piece or "" for piece in lab.heard) == told
    echoes = [
        status(401, f"Incorrect API key provided: {KEY}"),
        status(400, KEY),
        status(418, KEY),
        whole({"error": {"message": f"bad key {KEY}", "code": 400}}),
        faults.reply(f"{KEY}".encode(), 500),
        speak([f'event: error\ndata: {{"type": "error", "error": {{"message": "{KEY}"}}}}\n\n'.encode()]),
    ]
    for echo in echoes:
        lab.provider.faults.extend([echo] * 4)
        with pytest.raises(ProviderError) as caught:
            await lab.ask(wire, stream)
        lab.provider.faults.clear()
        shown = "".join(traceback.format_exception(caught.value))
        assert KEY not in shown
        assert KEY not in repr(caught.value)
    assert KEY not in repr(lab.models)
    assert KEY not in repr(lab.book.tries)


async def test_a_password_in_the_address_is_shown_to_nobody(lab: Lab) -> None:
    secret = "hunter2hunter2"
    endpoint = lab.provider.endpoint("openai-chat")
    there = endpoint.base_url.replace("http://", f"http://someone:{secret}@")
    lab.provider.faults.extend([status(400, f"who is {secret}?")])
    for base in (there, there.replace(f":{lab.provider.port}", ":1")):
        with pytest.raises(ProviderError) as caught:
            await lab.ask(endpoint=Endpoint(**{**vars(endpoint), "base_url": base}))
        assert secret not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("key", ["sk-with\nbreak-123456", "sk-with space-123456", "sk-ключ-12345678"])
async def test_a_key_that_no_header_can_hold(lab: Lab, key: str) -> None:
    endpoint = Endpoint(**{**vars(lab.provider.endpoint("anthropic")), "key": key})
    with pytest.raises(AuthError, match="LOOPBACK_API_KEY") as caught:
        await lab.ask(endpoint=endpoint)
    assert key not in "".join(traceback.format_exception(caught.value))
    assert lab.count == 0


async def test_no_import_of_an_http_library_before_a_call(lab: Lab) -> None:
    import subprocess
    import sys

    code = "import sys, research.llm.client; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
