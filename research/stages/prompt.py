"""any inputs → any value: a prompt of the user's own, and the JSON schema of its reply, if it has one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from ..errors import MalformedError, RefusedError, TruncatedError
from ..kinds import Kind, Params
from .job import Job


class PromptParams(Params):
    reply: dict[str, Any] | None = Field(None)  # a JSON schema; without one the reply is text


async def prompt(job: Job, **inputs: Any) -> Any:
    shown = {name: job.fenced(as_text(value), name) for name, value in inputs.items()}
    request = job.request({name: plain(value) for name, value in inputs.items()}, shown)
    schema = job.params(PromptParams).reply
    if schema is not None:
        request = replace(request, schema=schema)
    completion = await job.complete(request)
    if completion.finish == "length":
        raise TruncatedError(f"prompt: the reply did not fit into {request.max_tokens:,} tokens; raise max_tokens")
    if completion.finish == "refusal":
        raise RefusedError(f"prompt: {job.model.name} declined; try another model for this stage")
    if schema is None:
        return completion.text
    from ..llm.structured import parse_json

    try:
        return parse_json(completion.text, schema)
    except MalformedError as error:
        raise MalformedError(f"prompt: the reply of {job.model.name} does not fit its schema: {error}") from None


def plain(value: Any) -> Any:
    """Records as JSON data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def as_text(value: Any) -> str:
    """A value as a prompt shows it: text as it is, a question's text, all else as JSON."""
    value = plain(value)
    if isinstance(value, dict) and value.keys() == {"text"}:
        return str(value["text"])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


KIND = Kind(name="prompt", version=1, run=prompt, gives=Any, takes_any=True, params=PromptParams, model=True)
