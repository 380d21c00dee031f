"""Replies in another form than was asked for, from a provider's socket to what a stage gets of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from pydantic import BaseModel, ConfigDict

from research.errors import MalformedError
from research.ledger import Receipt
from research.limits.rates import Rates
from research.llm.client import ProviderModel
from research.llm.messages import Message, Request
from research.llm.structured import ask
from research.stages import KINDS
from research.stages.job import Job
from tests import faults
from tests.providers import KEY, PATHS, Provider, completed

WIRES = sorted(PATHS.values())
REQUEST = Request("Be brief.", (Message("user", "Name two."),), 100)
GOOD = '{"names": ["a, b", "it\'s"], "count": 2}'
TRAILING = '{"names": ["a, b", "it\'s",], "count": 2,}'
QUOTED = "{'names': ['a, b'], 'count': 2}"


class Named(BaseModel):
    model_config = ConfigDict(extra="forbid")
    names: list[str]
    count: int


WANTED = Named(names=["a, b", "it's"], count=2)


@asynccontextmanager
async def saying(*replies: str, wire: str, stream: bool) -> AsyncIterator[tuple[Provider, ProviderModel]]:
    """A provider that gives these texts one after the other, and a model behind it."""
    left: Iterator[str] = iter(replies)
    async with Provider(lambda body: next(left)) as provider:
        model = ProviderModel(provider.endpoint(wire), Rates(), stream=stream, sleep=lambda _: asyncio.sleep(0))
        try:
            yield provider, model
        finally:
            await model.aclose()
            model.rates.close()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
async def test_what_surrounds_json_costs_no_second_call(wire: str, stream: bool) -> None:
    around = ["{}", "```json\n{}\n```", "```\r\n{}```", "\ufeff{}", "Here you are:\n\n{}\n\nAnything else?"]
    around += ["<think>Two, or [three]?</think>{}", "\ufeffSure!\n```JSON\n{}\n```\nI hope [this] helps."]
    replies = [*(each.replace("{}", GOOD) for each in around), TRAILING]
    async with saying(*replies, wire=wire, stream=stream) as (provider, model):
        for _ in replies:
            assert await ask(model, REQUEST, Named) == WANTED
        assert len(provider.requests) == len(replies)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
async def test_what_is_no_json_is_asked_for_once_more(wire: str, stream: bool) -> None:
    async with saying(QUOTED, GOOD, wire=wire, stream=stream) as (provider, model):
        assert await ask(model, REQUEST, Named) == WANTED
        first, second = provider.requests
        assert first.body != second.body
        assert json.dumps(QUOTED)[1:-1].encode() in second.body  # the model is shown what it said


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
async def test_twice_is_a_failure_with_a_kind_and_both_calls_are_on_the_receipt(wire: str, stream: bool) -> None:
    async with saying(QUOTED, QUOTED, GOOD, wire=wire, stream=stream) as (provider, model):
        receipt = Receipt()
        job = Job("prompt", KINDS["prompt"].params(), receipt, b"", bound_model=model)
        with pytest.raises(MalformedError, match=r"loopback:model-1 twice gave a reply that is no Named") as caught:
            await job.ask(REQUEST, Named)
        assert caught.value.exit_code == 6
        assert KEY not in str(caught.value)
        assert len(provider.requests) == 2
        assert sum(call.input for call in receipt.calls) == provider.served.input
        assert sum(call.output for call in receipt.calls) == provider.served.output


@pytest.mark.parametrize("wire", WIRES)
async def test_a_mark_before_the_providers_own_json_is_passed_over(wire: str) -> None:
    async with saying(wire=wire, stream=False) as (provider, model):
        body = json.dumps(completed(wire, GOOD, (10, 4), None)).encode("utf-8-sig")
        provider.faults.append(faults.reply(body, headers={"Content-Type": "application/json"}))
        assert await ask(model, REQUEST, Named) == WANTED
        assert len(provider.requests) == 1
