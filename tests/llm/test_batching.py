"""The providers' batch interfaces below whole runs: what is sent in which form, and how replies are read."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from research.errors import BadRequestError, OutOfMoneyError, OverloadedError, ProviderError, RefusedError, StoreError
from research.llm.batching.anthropic import AnthropicBatches
from research.llm.batching.collector import Collector, Wanted, parts
from research.llm.batching.kept import Kept
from research.llm.batching.model import BatchedModel
from research.llm.batching.openai import OpenAIBatches
from research.llm.batching.service import Reply, Talk
from research.llm.batching.watching import Watch
from research.llm.endpoint import Endpoint
from research.llm.messages import Message, Request
from research.llm.wires import WIRES, Encoded
from research.llm.wires.anthropic import VERSION
from tests.batch_services import AnthropicServer, BatchServer, OpenAIServer
from tests.providers import KEY

Json = dict[str, Any]
ASKED = Request("Be brief.", (Message("user", "How tall?"),), 100)


def endpoint(server: BatchServer, wire: str) -> Endpoint:
    base = server.url("") + ("" if wire == "anthropic" else "/v1")
    return Endpoint("loopback", "model-1", wire, base, key=KEY, key_name="LOOPBACK_API_KEY")


def encoded(wire: str) -> Encoded:
    from research.llm.wires import Dialect

    return WIRES[wire].encode(ASKED, "model-1", stream=False, dialect=Dialect())


async def test_a_batch_among_hundreds_is_found_by_the_name_that_it_was_given() -> None:
    async with OpenAIServer(lambda body: "Four.") as server:
        talk = Talk(endpoint(server, "openai-chat"))
        service = OpenAIBatches(talk, "/chat/completions")
        since = time.time()
        made = [await service.create(f"ours-{n}", [service.line(f"a-{n}", encoded("openai-chat"))]) for n in range(120)]
        assert await service.find("ours-7", [], since, []) == made[7]
        assert await service.find("another", [], since, []) is None
        assert server.refusals == []
        await talk.aclose()


async def test_a_batch_without_a_name_is_found_by_time_size_and_its_results() -> None:
    async with AnthropicServer(lambda body: "Four.") as server:
        talk = Talk(endpoint(server, "anthropic"), {"anthropic-version": VERSION})
        service = AnthropicBatches(talk)
        since = time.time()

        async def made(*names: str) -> str:
            return await service.create("", [service.line(name, encoded("anthropic")) for name in names])

        stranger, ours = await made("their-1", "their-2"), await made("a-1", "a-2")
        await made("b-1")
        for id in (stranger, ours):
            while not (await service.look(id)).ended:
                pass
        assert await service.find("", {"a-1", "a-2"}, since, []) == ours
        assert await service.find("", {"a-1", "a-2"}, since, [ours]) is None
        assert await service.find("", {"a-1", "a-2"}, since + 3_600, []) is None
        server.batches[ours].created -= 3_600
        assert await service.find("", {"a-1", "a-2"}, since, []) is None
        await talk.aclose()


async def test_a_key_that_is_echoed_is_not_kept() -> None:
    async with AnthropicServer(lambda body: f"The key is {KEY}.") as server:
        talk = Talk(endpoint(server, "anthropic"), {"anthropic-version": VERSION})
        service = AnthropicBatches(talk)
        id = await service.create("", [service.line("a-1", encoded("anthropic"))])
        while not (progress := await service.look(id)).ended:
            pass
        [(name, reply)] = [named async for named in service.results(progress)]
        assert (name, reply.body["content"][0]["text"]) == ("a-1", "The key is [key].")
        await talk.aclose()


async def test_a_strangers_batch_is_not_taken_for_ours(tmp_path: Path) -> None:
    """Two of one size were created at about the time, and neither had ended when ours was looked for."""
    async with AnthropicServer(lambda body: "Four.") as server:
        here = endpoint(server, "anthropic")
        talk = Talk(here, {"anthropic-version": VERSION})
        service, kept = AnthropicBatches(talk), Kept(tmp_path / "kept.db")
        kept.begin("ours", here.name, ["a-1"], "plan")
        ours = await service.create("ours", [service.line("a-1", encoded("anthropic"))])
        await service.create("", [service.line("b-1", encoded("anthropic"))])
        watch = Watch({here.name: service}, kept, sleep=lambda seconds: asyncio.sleep(0))
        await watch.recover()
        assert kept.open()[0].id != ours
        await watch.to_its_end("ours")
        found = kept.find("a-1")
        assert found is not None
        assert found[1] is not None
        assert found[1].body["content"][0]["text"] == "Four."
        kept.close()
        await talk.aclose()


@pytest.mark.parametrize(
    ("wire", "reply", "kind", "says"),
    [
        ("openai-chat", Reply(400, {"error": {"message": "no", "code": "x"}}), BadRequestError, "(400: no)"),
        ("openai-chat", Reply(429, {"error": {"code": "insufficient_quota"}}), OutOfMoneyError, "credit or quota"),
        ("openai-chat", Reply(0, {"error": {"code": "server_error", "message": "oh"}}), OverloadedError, "oh"),
        ("openai-chat", Reply(500, {"error": {"message": f"with {KEY}"}}), OverloadedError, "with [key]"),
        ("openai-responses", Reply(200, None), ProviderError, "a result without a reply"),
        ("anthropic", Reply(0, {"error": {"type": "overloaded_error", "message": "busy"}}), OverloadedError, "busy"),
        ("anthropic", Reply(0, {"error": {"type": "invalid_request_error", "message": "bad"}}), BadRequestError, "bad"),
        ("anthropic", Reply(400, {"error": {"message": "content_policy"}}), RefusedError, "its filter refused"),
        ("anthropic", Reply(gone="missing"), ProviderError, "ended without a result for this call"),
    ],
)
def test_what_a_result_says_is_an_error_of_its_kind(
    wire: str, reply: Reply, kind: type[ProviderError], says: str, tmp_path: Path
) -> None:
    here = Endpoint("loopback", "model-1", wire, "http://127.0.0.1/v1", key=KEY)
    model = BatchedModel(here, Collector({}, Kept(tmp_path / "kept.db")))
    settled: list[tuple[Any, bool, str]] = []
    with pytest.raises(kind) as caught:
        model._settled(reply, True, lambda *how: settled.append(how))
    assert says in str(caught.value)
    assert KEY not in str(caught.value)
    assert settled == [(None, reply.status == 200, type(caught.value).__name__)]
    model.collector.kept.close()


def test_a_stage_is_cut_by_number_and_by_size() -> None:
    service = OpenAIBatches(Talk(Endpoint("p", "m", "openai-chat", "http://x/v1")), "/chat/completions")
    wanted = [Wanted(f"a-{n}", "p:m", "plan", encoded("openai-chat")) for n in range(5)]
    line = len(service.line("a-0", wanted[0].encoded)) + 1
    assert [len(part) for part in parts(service, wanted, 2)] == [2, 2, 1]
    service.largest = 3 * line
    assert [len(part) for part in parts(service, wanted, 50_000)] == [3, 2]
    assert [[name for name, _, _ in part] for part in parts(service, wanted, 3)] == [
        ["a-0", "a-1", "a-2"],
        ["a-3", "a-4"],
    ]


def test_what_is_on_record_outlives_the_process_and_is_used_once(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "kept.db")
    kept.begin("one", "p:m", ["a-1", "b-1"], "plan")
    kept.created("one", "batch_9")
    kept.keep("one", [("a-1", Reply(200, {"text": "Four."})), ("stranger-1", Reply(200, {})), ("", Reply(200, {}))])
    kept.close()
    kept = Kept(tmp_path / "kept.db")
    [sent] = kept.open()
    assert (sent.id, sent.state, sent.size) == ("batch_9", "sent", 2)
    assert kept.find("a-1") == ("one", Reply(200, {"text": "Four."}))
    assert kept.find("b-1") == ("one", None)
    assert kept.find("a-2") is None
    kept.end("one", "expired")
    assert kept.open() == []
    assert kept.find("b-1") == ("one", Reply(gone="expired"))
    assert kept.unused() == {"a-1", "b-1"}
    kept.use_up(["a-1"])
    assert (kept.used("a"), kept.used("b"), kept.unused()) == (1, 0, {"b-1"})
    kept.close()
    (tmp_path / "no.db").mkdir()
    with pytest.raises(StoreError, match="the record of batches"):
        Kept(tmp_path / "no.db")


async def test_calls_of_the_same_words_are_calls_of_their_own(tmp_path: Path) -> None:
    async with OpenAIServer(lambda body: "Four.") as server:
        here = endpoint(server, "openai-chat")
        talk = Talk(here)
        collector = Collector({here.name: OpenAIBatches(talk, "/chat/completions")}, Kept(tmp_path / "kept.db"))
        collector.quiet = 0.1
        model = BatchedModel(here, collector)
        heard: list[str | None] = []
        async with collector:
            both = await asyncio.gather(model.complete(ASKED, None, heard.append), model.complete(ASKED))
        assert [completion.text for completion in both] == heard * 2 == ["Four.", "Four."]
        [batch] = server.batches.values()
        assert len(batch.requests) == 2
        assert [*{json.dumps(body) for body in batch.requests.values()}] == [json.dumps(encoded("openai-chat").body)]
        collector.kept.close()
        await talk.aclose()
