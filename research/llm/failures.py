"""What a provider's refusal to answer means: the kind of error, and what to do about it.

The wordings are those that the providers' error replies show; each rule names a kind that
more than one of them has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
from research.llm.waits import retry_after

__all__ = ["failure", "inner_failure", "retry_after"]

LONGEST_DETAIL = 300  # characters of a provider's own words in a message


def _any(*patterns: str) -> str:
    return "|".join(patterns)


def _says(text: str, pattern: str) -> bool:
    """Patterns are compiled (and kept by `re`) when something has failed: most runs need none."""
    return re.search(pattern, text, re.IGNORECASE) is not None


MONEY = _any(
    r"insufficient[_ ](quota|credits?|balance|funds)",
    r"credit balance is too low",
    r"billing[_ ](hard[_ ]limit|not[_ ]active)",
    r"spend(ing)? limit",
    r"credit limit",
    r"(specified|monthly) (api )?usage limit",
    r"(used all|out of|ran out of|no more) (your |available )?credits",
    r"payment[_ ]required",
    r"exceeded your monthly",
    r"account is (not active|deactivated|suspended)",
    r"limit: 0\b",  # a quota that a plan does not have at all
)
FILTER = _any(
    r"content[_ ]filter",
    r"content management policy",
    r"ResponsibleAIPolicyViolation",
    r"content[_ ]policy",
    r"usage policy",
    r"flagged by",
    r"requires moderation",
    r"data_inspection_failed",
    r"invalid_prompt",
    r"cyber_policy",
)
CONTEXT = _any(
    r"maximum (context|prompt) length",
    r"context_length_exceeded",
    r"(prompt|input|request|messages?) (is |are )?too long",
    r"total length of all messages is too long",
    r"too[_ ]many[_ ](prompt[_ ])?tokens",
    r"exceed\w*[_ ](the )?(available |model'?s? )?(max(imum)? )?context",
    r"exceed\w* n_ctx",
    r"(context|input) (size|window|limit) .{0,40}exceeded",
    r"input length and `?max_tokens`? exceed",
    r"input token count .{0,40}exceeds",
    r"with \d+ maximum context",
    r"inputs`? tokens \+ `?max_new_tokens",
    r"max_tokens must be at least 1, got -",
    r"context window",
)
LARGE = _any(r"request too large", r"request_too_large", r"string_above_max_length", r"payload too large")
KEY = _any(r"api[_ ]key[_ ](not valid|invalid)", r"(invalid|incorrect)[_ ](x-)?api[_ -]key", r"authentication_error")
MODEL = _any(
    r"model_not_found",
    r"model_decommissioned",
    r"DeploymentNotFound",
    r"model\b.{0,80}(does not exist|not found|no longer|has been deprecated|is not a valid model)",
    r"no such model",
    r"not_found_error",
)
BUSY = _any(r"overloaded", r"over capacity", r"no healthy upstream", r"service_?unavailable")
GENERATED = _any(r"tool_use_failed", r"json_validate_failed", r"failed_generation")
SECRET = r"\b((sk|pk|gsk|xai|tgp|hf|pplx|nvapi|key)[-_]|AIza|Bearer )[\w*.-]{8,}"

# The status that an error inside a 200 stands for, where it names none.
NAMED = {
    "overloaded": 529,
    "rate_limit": 429,
    "insufficient_quota": 429,
    "authentication": 401,
    "permission": 403,
    "not_found": 404,
    "invalid_request": 400,
    "timeout": 504,
}

Rule = tuple[type[ProviderError], str, str]  # kind, what happened, what to do
TOO_LONG: Rule = (ContextTooLongError, "the request is longer than the model can take", "Use fewer or shorter sources.")
TOO_LARGE: Rule = (RequestTooLargeError, "the request is larger than the provider takes", "Use fewer sources.")
NO_MONEY: Rule = (OutOfMoneyError, "the account's credit or quota is used up", "Add credit, or bind another provider.")
NO_KEY: Rule = (AuthError, "the key is missing or was refused", "Set {key} to a valid key.")
NO_MODEL: Rule = (UnknownModelError, "there is no such model", "Check the model's name and the base URL.")
FILTERED: Rule = (RefusedError, "its filter refused the request", "Rephrase the question, or bind another model.")
TOO_MANY: Rule = (RateLimitError, "too many requests or tokens for now", "Run it again later: finished work is kept.")
IS_BUSY: Rule = (OverloadedError, "the provider is overloaded or failing", "Run it again later: finished work is kept.")
TOO_SLOW: Rule = (TimedOutError, "the provider took too long", "Run it again.")
BAD_REPLY: Rule = (MalformedError, "the model's reply did not fit the form asked for", "Run it again.")
BAD: Rule = (BadRequestError, "the request was refused", "Check the model's name and its settings.")


def failure(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    provider: str,
    *,
    key: str = "its key",
    secrets: Sequence[str] = (),
) -> ProviderError:
    """The error that a reply other than a completion stands for, to be raised by the caller.

    `key` is the variable or setting that holds the provider's key; `secrets` are blanked
    wherever the provider echoes them. With "x-should-retry: false" the error is not `passing`.
    """
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        value = body.decode("utf-8", "replace") if body.lstrip()[:1] != b"<" else ""
    return _failure(status, headers, value, provider, key, secrets)


def inner_failure(value: Any, provider: str) -> ProviderError:
    """The error that JSON inside a 200 (in a stream, or in place of a reply) stands for."""
    return _failure(200, {}, value, provider, "its key", ())


def _failure(
    status: int, headers: Mapping[str, str], value: Any, provider: str, key: str, secrets: Sequence[str]
) -> ProviderError:
    said = list(_words(value))
    text = "\n".join(said)
    if status == 200:
        status = _inner_status(value, text)
    kind, what, remedy = _rule(status, text)
    detail = _clean(_message(value), secrets)
    error = kind(
        f"{provider}: {what} ({status or 'in its reply'}{': ' + detail if detail else ''}). {remedy.format(key=key)}",
        status=status or None,
        retry_after=retry_after(headers, text) if kind.passing else None,
    )
    if {name.lower(): each for name, each in headers.items()}.get("x-should-retry") == "false":
        error.passing = False
    return error


def _rule(status: int, text: str) -> Rule:
    named = status in (0, 400, 403, 404, 413, 422, 429)
    rules: Iterable[tuple[bool, Rule]] = (
        (status == 402 or (named and _out_of_money(status, text)), NO_MONEY),
        (status in (0, 400, 403, 422, 451) and _says(text, FILTER), FILTERED),
        (status not in (401, 402, 429) and _says(text, CONTEXT), TOO_LONG),
        (status == 413 or (named and _says(text, LARGE)), TOO_LARGE),
        (status in (401, 403) or (status == 400 and _says(text, KEY)), NO_KEY),
        (status in (404, 410) or (status in (0, 400, 422) and _says(text, MODEL)), NO_MODEL),
        (status in (0, 400, 422) and _says(text, GENERATED), BAD_REPLY),
        (status == 429 and not _says(text, BUSY), TOO_MANY),
        (status in (408, 504, 522, 524), TOO_SLOW),
        (status == 0 or status >= 500 or status in (409, 425, 429), IS_BUSY),
    )
    return next((rule for holds, rule in rules if holds), BAD)


def _out_of_money(status: int, text: str) -> bool:
    """Gemini says "exceeded your current quota" of limits that pass as well, but then gives a delay."""
    if _says(text, MONEY):
        return True
    return status == 429 and "exceeded your current quota" in text and "RESOURCE_EXHAUSTED" not in text


def _inner_status(value: Any, text: str) -> int:
    for holder in (value, *(each for each in (value.values() if isinstance(value, dict) else ()))):
        for name in ("status_code", "status", "code"):
            code = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(code, int | str) and str(code).isdecimal() and 400 <= int(code) <= 599:
                return int(code)
    return next((status for name, status in NAMED.items() if name in text), 0)


def _words(value: Any, depth: int = 0) -> Iterable[str]:
    """All text in an error's JSON, outermost first, as `name: value` where it has a name."""
    if isinstance(value, str):
        yield value
    elif depth < 8 and isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, str | int | float):
                yield f"{key}: {each}"
            else:
                yield from _words(each, depth + 1)
    elif depth < 8 and isinstance(value, list):
        for each in value[:50]:
            yield from _words(each, depth + 1)


def _message(value: Any) -> str:
    """The provider's own sentence."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return ""
    for key in ("error", "response", "message", "detail", "errors"):
        if value.get(key) and (found := _message(value[key])):
            return found
    return str(value.get("msg") or value.get("code") or "")


def _clean(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "[key]") if secret else text
    text = "".join(char if char.isprintable() else " " for char in re.sub(SECRET, "[key]", text))
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_DETAIL else text[: LONGEST_DETAIL - 1] + "…"
