"""Short talks with a model that any provider's API can hold, and their recordings.

A recording holds no key, and of a reply's headers only what is read of them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from research.llm.client import ProviderModel
from research.llm.messages import Completion, Message, Request, Tool
from research.llm.structured import ask
from tests.web.test_cassettes import cassette

RECORDINGS = Path(__file__).with_name("recordings")
KEPT = ("content-type", "retry-after")  # headers of replies
SYSTEM = "Be brief."
DEPTH = Tool(
    "depth",
    "The depth of a lake in metres.",
    {
        "type": "object",
        "properties": {"lake": {"type": "string"}},
        "required": ["lake"],
        "additionalProperties": False,
    },
)


class Capital(BaseModel):
    model_config = ConfigDict(extra="forbid")
    city: str
    in_europe: bool


async def structured(model: ProviderModel) -> None:
    """A reply by schema, whole."""
    model.stream = False
    seen: list[Completion] = []
    reply = await ask(model, said("What is the capital of France?"), Capital, seen.append)
    assert (reply.city.casefold(), reply.in_europe) == ("paris", True)
    counted(seen[0])


async def streamed(model: ProviderModel) -> None:
    """A text, heard as it comes."""
    heard: list[str | None] = []
    completion = await model.complete(said("Count from one to five, in words."), on_text=heard.append)
    assert "".join(piece or "" for piece in heard) == completion.text
    assert "three" in completion.text.casefold()
    assert completion.finish == "stop"
    counted(completion)


async def tool(model: ProviderModel) -> None:
    """A call of a tool, and an answer from what it gave."""
    request = replace(said("How deep is Lake Baikal? Ask the tool, and answer in metres."), tools=(DEPTH,))
    completion = await model.complete(request)
    assert completion.finish == "tool_calls", completion.text
    call = completion.calls[0]
    assert call.name == "depth"
    assert "baikal" in json.loads(call.arguments)["lake"].casefold()
    given = [Message("tool", '{"metres": 1642}', call_id=one.id) for one in completion.calls]
    turn = Message("assistant", completion.text, completion.calls, replay=completion.replay)
    answer = await model.complete(replace(request, messages=(*request.messages, turn, *given), tool_choice="none"))
    assert "1642" in answer.text.replace(",", "").replace(".", "").replace(" ", "").replace("\u202f", "")
    counted(answer)


TALKS: dict[str, Callable[[ProviderModel], Awaitable[None]]] = {
    "structured": structured,
    "streamed": streamed,
    "tool": tool,
}


def said(text: str) -> Request:
    return Request(SYSTEM, (Message("user", text),), max_tokens=300)


def counted(completion: Completion) -> None:
    assert completion.usage.input + completion.usage.cache_read + completion.usage.cache_write > 5
    assert completion.usage.output > 0


@contextmanager
def tape(file: Path, record: bool) -> Iterator[None]:
    """Whatever is asked meanwhile is recorded in `file`, or comes from there and from nowhere else."""
    if record:
        file.unlink(missing_ok=True)
    try:
        with cassette(file, record, before_record_response=_bare):
            yield
    except BaseException:
        if record:  # a talk that went wrong is nothing to keep
            file.unlink(missing_ok=True)
        raise


def _bare(response: dict[str, Any]) -> dict[str, Any]:
    headers = {name: value for name, value in response["headers"].items() if name.lower() in KEPT}
    return {**response, "headers": headers}
