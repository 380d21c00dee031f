from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from research import errors
from research.errors import (
    AuthError,
    BadRequestError,
    ContextTooLongError,
    MalformedError,
    OutOfMoneyError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    RefusedError,
    RequestTooLargeError,
    TimedOutError,
    UnknownModelError,
)
from research.llm.failures import failure, inner_failure, retry_after
from research.llm.waits import duration

# What each error body that people reported is, read by hand, and the wait that it names in words.
REPORTED: dict[str, tuple[type[ProviderError], float | None]] = {
    "err-00-anthropic": (OverloadedError, None),
    "err-02-anthropic": (OverloadedError, None),
    "err-03-anthropic": (RateLimitError, None),
    "err-04-anthropic": (RateLimitError, None),
    "err-07-anthropic": (BadRequestError, None),
    "err-08-anthropic-openai-compat": (RateLimitError, None),
    "err-09-openai": (OutOfMoneyError, None),
    "err-12-openai": (RateLimitError, 0.174),
    "err-13-openai": (RequestTooLargeError, None),
    "err-14-openai": (ContextTooLongError, None),
    "err-15-openai": (OverloadedError, None),
    "err-17-openai-responses": (OverloadedError, None),
    "err-18-azure": (RateLimitError, 86400.0),
    "err-19-azure": (RateLimitError, 2.0),
    "err-20-azure": (RateLimitError, 20.0),
    "err-21-groq": (RateLimitError, 50.597142857),
    "err-22-groq": (RateLimitError, 60.363142857),
    "err-23-groq": (RequestTooLargeError, None),
    "err-24-vllm": (ContextTooLongError, None),
    "err-25-vllm": (ContextTooLongError, None),  # max_tokens got below nought because the prompt left no room
    "err-26-llama.cpp": (ContextTooLongError, None),
}
NO_REPLY = {"err-27-any-stream": "a connection that broke, which the client sees and no body tells"}


def test_every_reported_error_body_has_its_kind(data: Callable[[str], Path]) -> None:
    lines = (data("llm-error-bodies") / "dev" / "errors.jsonl").read_text().splitlines()
    for row in map(json.loads, lines):
        if row["id"] in NO_REPLY:
            continue
        kind, wait = REPORTED[row["id"]]
        error = failure(row["status"], row["headers"], json.dumps(row["body"]).encode(), row["provider"])
        assert type(error) is kind, row["id"]
        assert error.retry_after == (None if wait is None else pytest.approx(wait)), row["id"]
    assert len(lines) == len(REPORTED) + len(NO_REPLY)


BY_STATUS: dict[int, type[ProviderError]] = {401: AuthError, 404: UnknownModelError, 429: RateLimitError}


def expected_kind(recording: dict[str, Any]) -> type[ProviderError]:
    """By status; a 400 by the words in it, looked up by hand in all the recordings there are."""
    status, text = recording["response"]["status"], json.dumps(recording["response"])
    if status != 400:
        return BY_STATUS[status]
    for words, kind in (
        ("prompt is too long", ContextTooLongError),
        ("prompt too long", ContextTooLongError),
        ("maximum context length", ContextTooLongError),
        ("TOO_MANY_TOKENS", ContextTooLongError),
        ("too_many_prompt_tokens", ContextTooLongError),
        ("API_KEY_INVALID", AuthError),
        ("model_not_found", UnknownModelError),
        ("tool_use_failed", MalformedError),
    ):
        if words in text:
            return kind
    return BadRequestError


def test_every_recorded_error_reply_has_its_kind(data: Callable[[str], Path]) -> None:
    seen = 0
    for path in sorted((data("llm-traffic") / "dev" / "recordings").glob("*.json")):
        recording = json.loads(path.read_text())
        response = recording["response"]
        if response["status"] == 200:
            continue
        body = json.dumps(response["body_json"]) if "body_json" in response else response["body_text"]
        error = failure(response["status"], response["headers"], body.encode(), recording["provider"])
        assert type(error) is expected_kind(recording), path.name
        assert error.status == response["status"]
        assert error.passing is isinstance(error, RateLimitError | MalformedError), path.name
        seen += 1
    assert seen >= 40


def made(status: int, body: Any, headers: dict[str, str] | None = None) -> ProviderError:
    return failure(status, headers or {}, json.dumps(body).encode(), "acme", key="ACME_API_KEY")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"message": "Your credit balance is too low to access the API"}}, OutOfMoneyError),
        (402, {"error": {"message": "Insufficient Balance"}}, OutOfMoneyError),
        (402, "anything", OutOfMoneyError),
        (429, {"error": {"code": "billing_hard_limit_reached"}}, OutOfMoneyError),
        (403, {"error": "Your team has used all available credits"}, OutOfMoneyError),
        (429, {"error": {"message": "You exceeded your current quota", "code": 429}}, OutOfMoneyError),
        (
            429,
            [{"error": {"message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED"}}],
            RateLimitError,
        ),
        (429, {"error": {"message": "Engine is overloaded"}}, OverloadedError),
        (403, {"error": {"message": "Your input requires moderation and was flagged by x"}}, RefusedError),
        (403, {"error": {"message": "forbidden"}}, AuthError),
        (400, {"error": {"code": "content_filter", "message": "was filtered"}}, RefusedError),
        (
            400,
            {"error": {"message": "The model `x` has been decommissioned", "code": "model_decommissioned"}},
            UnknownModelError,
        ),
        (413, {}, RequestTooLargeError),
        (
            413,
            {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}},
            RequestTooLargeError,
        ),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "type": "exceed_context_size_error",
                    "message": "exceeds the available context size",
                }
            },
            ContextTooLongError,
        ),
        (
            400,
            {"error": {"message": "input length and `max_tokens` exceed context limit: 190000 + 20000"}},
            ContextTooLongError,
        ),
        (
            400,
            {"error": {"message": "This model's maximum prompt length is 131072 but the request contains 200000"}},
            ContextTooLongError,
        ),
        (
            400,
            {"error": {"message": "The input token count (2000000) exceeds the maximum number of tokens"}},
            ContextTooLongError,
        ),
        (
            400,
            {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"},
            ContextTooLongError,
        ),
        (408, {}, TimedOutError),
        (504, "<html>Gateway</html>", TimedOutError),
        (502, {}, OverloadedError),
        (503, {"error": {"message": "no healthy upstream"}}, OverloadedError),
        (520, {}, OverloadedError),
        (422, {"detail": [{"loc": ["body", "x"], "msg": "field required"}]}, BadRequestError),
        (302, "", BadRequestError),
    ],
)
def test_kinds(status: int, body: Any, kind: type[ProviderError]) -> None:
    assert type(made(status, body)) is kind


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"<html>no</html>", b"null", b"[]", b"3", b"[" * 100_000, b'{"error": null}']
)
def test_bodies_that_are_no_error_object(body: bytes) -> None:
    error = failure(500, {}, body, "acme")
    assert type(error) is OverloadedError
    assert "acme" in str(error)
    assert "html" not in str(error)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, OverloadedError),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}, RateLimitError),
        ({"error": {"message": "Provider returned error", "code": 502}}, OverloadedError),
        ({"error": {"message": "something"}}, OverloadedError),
        ({"response": {"error": {"code": "server_error", "message": "x"}}}, OverloadedError),
        ({"response": {"error": {"code": "rate_limit_exceeded", "message": "try again in 3s"}}}, RateLimitError),
        ({"error": {"code": "context_length_exceeded", "message": "x"}}, ContextTooLongError),
    ],
)
def test_errors_inside_a_200(value: Any, kind: type[ProviderError]) -> None:
    assert type(inner_failure(value, "acme")) is kind


def test_the_message_says_what_where_and_what_next() -> None:
    error = made(401, {"error": {"message": "Invalid key sk-abcdefgh12345678\x1b[31m given"}})
    assert str(error) == (
        "acme: the key is missing or was refused (401: Invalid key [key] [31m given). Set ACME_API_KEY to a valid key."
    )
    assert error.exit_code == 2
    assert not error.passing


def test_a_secret_that_is_echoed_is_blanked_whatever_its_form() -> None:
    error = failure(401, {}, b'{"error": "no such key: canary 42!"}', "acme", secrets=("", "canary 42!"))
    assert "canary" not in str(error)
    assert len(str(failure(400, {}, b'"' + b"x" * 10_000 + b'"', "acme"))) < 500


def test_a_provider_may_say_that_trying_again_is_in_vain() -> None:
    assert made(429, {}).passing
    assert not made(429, {}, {"X-Should-Retry": "false"}).passing
    assert not made(400, {}, {"x-should-retry": "true"}).passing


NOW = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"RETRY-AFTER-MS": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Tue, 14 Nov 2023 22:14:00 GMT"}, 40.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:14:00 GMT", "date": "Tue, 14 Nov 2023 22:13:55 GMT"}, 5.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m0.5s"}, 60.5),
        ({"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "1s"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "120ms",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            360.0,
        ),
        ({"X-RateLimit-Reset": "1700000007000"}, 7.0),
        ({"x-ratelimit-reset": "1700000007"}, 7.0),
        ({"x-ratelimit-reset": "7"}, 7.0),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:13:41Z",
                "anthropic-ratelimit-requests-remaining": "3",
                "anthropic-ratelimit-requests-reset": "2023-11-14T23:00:00Z",
            },
            21.0,
        ),
        ({"ratelimit": '"api";r=0;t=243'}, 243.0),
        ({"ratelimit": '"api";r=498;t=243'}, None),
    ],
)
def test_waits_in_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 174ms. Visit", 0.174),
        ("Please retry after 86400 seconds.", 86400.0),
        ("Please try again in 1h2m3s.", 3723.0),
        ("retryDelay: 34.07s", 34.07),
        ("Please retry in 48.9s", 48.9),
        ("try again in 2 minutes", 120.0),
        ("try again later", None),
        ("try again in 2023", None),
    ],
)
def test_waits_in_words(text: str, seconds: float | None) -> None:
    assert retry_after({}, text, NOW) == (None if seconds is None else pytest.approx(seconds))


def test_a_header_goes_before_words() -> None:
    assert retry_after({"retry-after": "1"}, "try again in 9s", NOW) == 1.0


def test_no_duration() -> None:
    assert duration("soon") is None


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """Names, nesting and exit codes of `research.errors`, as its docstring draws them."""
    drawn: dict[str, tuple[str, int]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if "Error" not in line or not line.startswith("    "):
            continue
        name = next(word for word in line.split() if word.endswith("Error"))
        depth = line.index(name) // 4 - 1
        path[depth:] = [name]
        code = int(line.rsplit("exit ", 1)[1]) if "exit " in line else drawn.get(path[depth - 1], ("", 1))[1]
        drawn[name] = (path[depth - 1] if depth else "Exception", code)
    kinds = {
        name: (kind.__bases__[0].__name__, getattr(kind, "exit_code", None))
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and name.endswith("Error")
    }
    assert kinds == drawn
