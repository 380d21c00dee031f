from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from research.errors import MalformedError, RefusedError, TruncatedError
from research.llm.messages import Completion, Finish, Message, Request, Usage
from research.llm.structured import ask, parse, schema_of, strict_json
from research.llm.wires.schemas import NotStrictError, strict


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")
    needed: bool
    count: int
    names: tuple[str, ...] = ()
    colour: Colour = Colour.RED


class Loose(BaseModel):
    names: list[str] = []


GOOD = '{"needed": true, "count": 2, "names": ["a, b", "c]"], "colour": "blue"}'
WANTED = Reply(needed=True, count=2, names=("a, b", "c]"), colour=Colour.BLUE)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "\ufeff" + GOOD,
        f"\n\n  {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}```",
        f"```JSON\r\n{GOOD}\r\n```",
        f"\ufeffHere you are:\n```json\n{GOOD}\n```\nAnything else?",
        f"Sure! {GOOD} I hope this helps.",
        f"As [1] says of {{x}}: {GOOD}",
        f"<think>Perhaps {{}} or [2]?</think>\n{GOOD}",
        '{"needed": true, "count": 2, "names": ["a, b", "c]",], "colour": "blue",}',
        '```json\n{"needed": true, "count": 2, "names": ["a, b", "c]" , ], "colour": "blue" ,\n}\n```',
    ],
)
def test_what_surrounds_the_json_is_forgiven(text: str) -> None:
    assert parse(text, Reply) == WANTED


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\ufeff", "empty"),
        ("I can't help with that.", "not JSON"),
        ('{"needed": 1, "count": 2}', "needed"),
        ('{"needed": true, "count": "2"}', "count"),
        ('{"needed": true, "count": true}', "count"),
        ('{"needed": true, "count": 2.5}', "count"),
        ('{"needed": true}', "count"),
        ('{"needed": true, "count": 2, "more": 1}', "more"),
        ('{"needed": true, "count": 2, "colour": "green"}', "colour"),
        ('{"needed": true, "count": 2, "count": 3}', "twice"),
        ('{"needed": true, "count": NaN}', "NaN"),
        ("{'needed': true, 'count': 2}", "not JSON"),
        ('{"needed": true, "count": 2', "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"needed": true, "count": ' + "9" * 5000 + "}", "not JSON"),
        ("[]", "the value"),
    ],
)
def test_what_stands_in_it_is_not(text: str, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        parse(text, Reply)


def test_a_part_of_a_broken_value_never_passes_for_the_whole() -> None:
    for text in [
        '{"names": [}, {}',
        "{'names': {}}",
        "[{}, {'names'",
        '{names: {"names": ["x"]}}',
        '{"other": {"names": ["x"]}',
    ]:
        with pytest.raises(MalformedError):
            parse(text, Loose)


def test_a_surrogate_that_is_no_character_is_refused() -> None:
    with pytest.raises(MalformedError):
        parse('{"names": ["\\ud800"]}', Loose)


@pytest.mark.parametrize(
    "text", ['{"a": 1,}', '{"a": 1, "a": 2}', "[NaN]", "[-Infinity]", "{} {}", "{'a': 1}", "", "[" * 100_000]
)
def test_arguments_are_json_and_nothing_else(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        strict_json(text)
    assert strict_json(' {"a": [1.5, null]} ') == {"a": [1.5, None]}


class Node(BaseModel):
    label: str
    children: list[Node] = []


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    age: int | None = Field(default=None, ge=0, description="in years")


class Pets(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind", description="the one at home")
    others: list[Dog] = Field(default=[], max_length=3)


def test_schema_is_closed_complete_and_written_out() -> None:
    dog = {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "const": "dog"},
            "age": {"description": "in years", "anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
        },
        "required": ["kind", "age"],
        "additionalProperties": False,
    }
    cat = {
        "type": "object",
        "properties": {"kind": {"type": "string", "const": "cat"}},
        "required": ["kind"],
        "additionalProperties": False,
    }
    assert schema_of(Pets) == {
        "type": "object",
        "properties": {
            "pet": {"description": "the one at home", "anyOf": [cat, dog]},
            "others": {"type": "array", "items": dog, "maxItems": 3},
        },
        "required": ["pet", "others"],
        "additionalProperties": False,
    }


def test_bounds_that_a_dialect_refuses_become_words() -> None:
    numbers = {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 3}
    schema = strict({"type": "object", "properties": {"numbers": numbers}}, bounds=frozenset())
    assert schema["properties"]["numbers"] == {
        "type": "array",
        "items": {"type": "integer", "description": "(at least 1)"},
        "description": "(at most 3 items)",
    }


def test_a_recursive_form_keeps_its_definition() -> None:
    schema = schema_of(Node)
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["required"] == ["label", "children"]


class Open(BaseModel):
    scores: dict[str, int]


class Names(RootModel[list[str]]):
    pass


@pytest.mark.parametrize(("model", "reason"), [(Open, "open"), (Names, "no object")])
def test_what_no_strict_mode_can_hold_is_said(model: type[BaseModel], reason: str) -> None:
    with pytest.raises(NotStrictError, match=reason):
        schema_of(model)


class Scripted:
    name = "scripted:one"

    def __init__(self, replies: Iterable[tuple[str, Finish]]) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        text, finish = self.replies.pop(0)
        return Completion(text, finish, Usage(), "one")


REQUEST = Request(system="s", messages=(Message("user", "q"),), max_tokens=100)


def asked(*replies: tuple[str, Finish]) -> tuple[Scripted, list[Completion], Reply | Exception]:
    model = Scripted(replies)
    seen: list[Completion] = []
    try:
        result: Reply | Exception = asyncio.run(ask(model, REQUEST, Reply, seen.append))
    except (MalformedError, RefusedError, TruncatedError) as error:
        result = error
    return model, seen, result


def test_a_good_reply_takes_one_call_with_the_schema() -> None:
    model, seen, result = asked((GOOD, "stop"))
    assert result == WANTED
    assert len(seen) == 1
    assert model.requests[0].schema == schema_of(Reply)


def test_one_repair_shows_the_reply_and_what_was_wrong() -> None:
    bad = json.dumps({"needed": True, "count": "two"})
    model, seen, result = asked((bad, "stop"), (GOOD, "stop"))
    assert result == WANTED
    assert len(seen) == 2
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "user"]
    assert model.requests[1].messages[1].text == bad
    assert "count" in model.requests[1].messages[2].text


def test_never_a_second_repair() -> None:
    model, seen, result = asked(("{'a': 1}", "stop"), ("", "stop"), (GOOD, "stop"))
    assert isinstance(result, MalformedError)
    assert len(seen) == len(model.requests) == 2
    assert "scripted:one" in str(result)


def test_an_empty_reply_is_not_sent_back_as_a_turn() -> None:
    model, _, result = asked(("", "stop"), (GOOD, "stop"))
    assert result == WANTED
    assert [message.role for message in model.requests[1].messages] == ["user", "user"]


def test_a_reply_cut_by_its_allowance_is_a_failure_even_if_it_parses() -> None:
    _, seen, result = asked((GOOD, "length"))
    assert isinstance(result, TruncatedError)
    assert len(seen) == 1


def test_a_refusal_is_not_asked_again() -> None:
    model, seen, result = asked(("no", "refusal"), (GOOD, "stop"))
    assert isinstance(result, RefusedError)
    assert len(seen) == len(model.requests) == 1
