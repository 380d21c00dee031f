"""Replies that must fit a form: schema out, tolerant parse, strict validation, one repair.

What surrounds the JSON is forgiven (fences, prose, a byte-order mark, thinking aloud, a
trailing comma); what stands in it is not (`true` is no 1, `"3"` is no 3, no key twice).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from research.errors import MalformedError, RefusedError, TruncatedError
from research.llm.messages import Completion, Message, Model, Request
from research.llm.wires.schemas import strict

T = TypeVar("T", bound=BaseModel)

MOST_STARTS = 64  # places in a reply at which JSON is looked for; bounds the work on hostile text
LONGEST_REASON = 600  # characters told to the model, and to the user
REPAIR = Path(__file__).with_name("repair.md")  # the turn that asks for a reply again

_FENCE = re.compile(r"```[\w+-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_THINKING = re.compile(r"<(think|thinking)>(?:.*?</\1>)?", re.DOTALL)  # if none closes, that is found out once
_START = re.compile(r"[\[{]")
_JSON_BEGINS = re.compile(r"""\{\s*(["']|\w+\s*:)|\[\s*[{"]""")
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[\]}])', re.DOTALL)


@functools.cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of `model` with closed objects and every property required.

    Raises: NotStrictError for what strict modes can't express (open dicts, `Any`).
    """
    return strict(model.model_json_schema())


def parse(text: str, model: type[T]) -> T:
    """The first JSON value in `text` that fits `model`.

    Raises: MalformedError, whose message says what is wrong with the likeliest value.
    """
    text = _THINKING.sub("", text.lstrip("\ufeff"), count=1).strip().strip("\ufeff")
    if not text:
        raise MalformedError("the reply is empty")
    reason = ""
    for value in _values(text):
        try:
            return model.model_validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            reason = reason or _reason(error)
    raise MalformedError(reason or "the reply holds no JSON value")


def parse_json(text: str, schema: Mapping[str, Any]) -> Any:
    """The first JSON value in `text` that fits a JSON schema (2020-12).

    Raises: MalformedError, whose message says what is wrong with the likeliest value.
    """
    from jsonschema import Draft202012Validator

    check = Draft202012Validator(schema)
    reason = "the reply holds no JSON value"
    for value in _values(text.strip().strip("\ufeff")):
        error = next(check.iter_errors(value), None)
        if error is None:
            return value
        reason = f"{error.json_path}: {error.validator} {error.validator_value!r} is not met"[:LONGEST_REASON]
    raise MalformedError(reason)


def _values(text: str) -> Iterator[Any]:
    """JSON values in `text`, likeliest first: the whole, fenced blocks, then within prose.

    Raises: MalformedError if nothing decodes and something looked like JSON.
    """
    found = False
    reason = ""
    for candidate in (text, *_FENCE.findall(text)):
        try:
            yield _decode(candidate)
            found = True
        except ValueError as error:
            reason = reason or str(error)
    for value in _in_prose(text):
        yield value
        found = True
    if not found and reason:
        raise MalformedError(f"the reply is not JSON: {reason}")


def _in_prose(text: str) -> Iterator[Any]:
    """Values that begin somewhere in `text`, never one that lies within a broken one:
    half a reply could pass for a whole where a form's fields are optional."""
    text = _without_trailing_commas(text)
    at = 0
    for _ in range(MOST_STARTS):
        begin = _START.search(text, at)
        if begin is None:
            return
        at = begin.start()
        try:
            value, at = _DECODER.raw_decode(text, at)
            yield value
        except (ValueError, RecursionError):
            if _JSON_BEGINS.match(text, at):
                return
            at += 1


def strict_json(text: str) -> Any:
    """`text` as JSON and nothing else: no key twice, no NaN, no number or nesting without bound.

    For the arguments of a tool call. Raises: ValueError, in words that a model can act on.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _decode(text: str) -> Any:
    return strict_json(_without_trailing_commas(text))


def _without_trailing_commas(text: str) -> str:
    return _STRING_OR_COMMA.sub(lambda match: match[0] if match[0] != "," else "", text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _reason(error: ValidationError) -> str:
    """What is wrong, one clause a field, without the values (they are the model's own words)."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    clauses = [f"{'.'.join(map(str, each['loc'])) or 'the value'}: {each['msg']}" for each in problems[:8]]
    return "; ".join(clauses)[:LONGEST_REASON]


async def ask(
    model: Model,
    request: Request,
    reply: type[T],
    on_completion: Callable[[Completion], None] | None = None,
) -> T:
    """Ask `model`, and return its reply as a `reply`, after at most one repair turn.

    `request.schema` is filled in if it is None. `on_completion` sees each completion as
    soon as it is there, so that it is accounted for whatever becomes of it.
    Raises: TruncatedError (the allowance was too small), RefusedError, MalformedError
    (twice unusable), and what `model.complete` raises.
    """
    if request.schema is None:
        request = replace(request, schema=schema_of(reply))
    completion = await _complete(model, request, on_completion)
    try:
        return parse(completion.text, reply)
    except MalformedError as error:
        reason = str(error)
    completion = await _complete(model, _repair(request, completion, reason), on_completion)
    try:
        return parse(completion.text, reply)
    except MalformedError as error:
        raise MalformedError(
            f"{model.name} twice gave a reply that is no {reply.__name__}: {error}. "
            "Run it again, or bind this stage to a more capable model."
        ) from None


def _repair(request: Request, completion: Completion, reason: str) -> Request:
    bad = (Message("assistant", completion.text),) if completion.text.strip() else ()
    told = REPAIR.read_text(encoding="utf-8").strip().replace("{{ reason }}", reason[:LONGEST_REASON])
    turn = Message("user", told)
    return replace(request, messages=(*request.messages, *bad, turn))


async def _complete(model: Model, request: Request, on_completion: Callable[[Completion], None] | None) -> Completion:
    completion = await model.complete(request)
    if on_completion is not None:
        on_completion(completion)
    if completion.finish == "length":
        raise TruncatedError(
            f"{model.name} did not finish within {request.max_tokens:,} tokens. Raise the stage's max_tokens."
        )
    if completion.finish == "refusal":
        raise RefusedError(f"{model.name} declined to answer. Rephrase the question, or bind another model.")
    return completion
