"""One turn of the loop: a request in plain data, and what the model said to it, kept for good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...errors import RefusedError, TruncatedError
from ...kinds import Kind
from ...records import Record
from ..job import Job

if TYPE_CHECKING:
    from ...llm.messages import Message, Request


class Called(Record):
    """A wish to use a tool; `arguments` is the JSON text as the model sent it."""

    id: str
    name: str
    arguments: str


class Turn(Record):
    """A model's turn. One that was cut off at its allowance (`finish` is "length") is a turn too: the loop goes
    on from it, without doing anything that it asked for."""

    text: str
    finish: str
    calls: tuple[Called, ...] = ()
    replay: str = ""
    model: str = ""

    def message(self) -> Message:
        """As it goes back to the model."""
        from ...llm.messages import Message, ToolCall

        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in self.calls)
        return Message("assistant", self.text, calls, replay=self.replay)


def plain(request: Request) -> dict[str, Any]:
    """A request as JSON data: the whole of it is a turn's key."""
    return asdict(request)


def as_request(data: Mapping[str, Any]) -> Request:
    from ...llm.messages import Message, Request, Tool, ToolCall

    messages = tuple(
        Message(**{**message, "calls": tuple(ToolCall(**call) for call in message["calls"])})
        for message in data["messages"]
    )
    return Request(**{**data, "messages": messages, "tools": tuple(Tool(**tool) for tool in data["tools"])})


async def turn(job: Job, request: Mapping[str, Any]) -> Turn:
    """Raises: RefusedError; TruncatedError for a last turn in text that was cut off; what the provider raises."""
    asked = as_request(request)
    completion = await job.complete(asked)
    if completion.finish == "refusal":
        raise RefusedError(f"investigate: {job.model.name} declined to go on; try another model for this stage")
    if completion.finish == "length" and asked.tool_choice == "none" and asked.schema is None:
        remedy = "raise max_tokens in the pipeline file"
        raise TruncatedError(f"investigate: the answer did not fit into {asked.max_tokens:,} tokens; {remedy}")
    calls = () if completion.finish == "length" else _told_apart(completion.calls)
    replay = "" if completion.finish == "length" else completion.replay
    return Turn(text=completion.text, finish=completion.finish, calls=calls, replay=replay, model=completion.model)


def _told_apart(calls: Any) -> tuple[Called, ...]:
    """The calls, with ids that are missing or repeated within the turn made new."""
    made: list[Called] = []
    taken: set[str] = set()
    for number, call in enumerate(calls):
        id = call.id if call.id and call.id not in taken else f"{call.id or 'call'}_{number}"
        taken.add(id)
        made.append(Called(id=id, name=call.name, arguments=call.arguments))
    return tuple(made)


async def compact(job: Job, question: str, turns: str, given: Mapping[str, Any]) -> str:
    """The older part of a conversation, told shorter.

    Raises: TruncatedError, RefusedError; what the model's provider raises.
    """
    request = job.request(given, {"question": question, "turns": job.fenced(turns, "protocol")})
    completion = await job.complete(request)
    if completion.finish == "refusal":
        raise RefusedError(f"investigate: {job.model.name} declined to shorten the history; try another cheap model")
    if completion.finish == "length":
        raise TruncatedError(f"investigate: the shortened history did not fit into {request.max_tokens:,} tokens")
    return completion.text.strip()


TURN = Kind("turn", 1, turn, Turn, {"request": Any}, model=True)
COMPACT = Kind(
    "compact", 1, compact, str, {"question": str, "turns": str, "given": Any},
    prompted=frozenset({"question", "turns"}), model=True, max_tokens=1500,
)  # fmt: skip
