"""The providers' batch interfaces below whole runs: what is sent in which form, and how replies are read."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from research.errors import (
    BadRequestError,
    MalformedError,
    OutOfMoneyError,
    OverloadedError,
    ProviderError,
    RefusedError,
    StoreError,
    UnknownModelError,
)
from research.limits.budget import Budget, Caps
from research.llm.batching.anthropic import AnthropicBatches
from research.llm.batching.collector import Collector, Wanted, parts
from research.llm.batching.kept import Kept
from research.llm.batching.model import BatchedModel
from research.llm.batching.openai import OpenAIBatches
from research.llm.batching.service import UNREADABLE, Found, Progress, Reply, Talk, UnusableIdError
from research.llm.batching.watching import Watch
from research.llm.endpoint import Endpoint
from research.llm.messages import Message, Request
from research.llm.wires import WIRES, Encoded
from research.llm.wires.anthropic import VERSION
from tests.batch_services import AnthropicServer, BatchServer, OpenAIServer
from tests.providers import KEY, whole

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
        assert await service.find("ours-7", [], since, []) == Found(made[7], sure=True)
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
        assert await service.find("", {"a-1", "a-2"}, since, []) == Found(ours, sure=True)
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
        ("anthropic", Reply(gone="missing"), ProviderError, "result for this call can't be had"),
        ("anthropic", Reply(gone="not run"), ProviderError, "ended without a result for this call"),
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
    assert settled == [(None, reply.status == 200 or reply.gone == "missing", type(caught.value).__name__)]
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


async def test_the_first_reply_stays_but_for_an_error_before_what_is_paid(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "kept.db")
    kept.begin("one", "p:m", ["a-1", "b-1", "c-1"], "plan")
    kept.keep("one", [("a-1", Reply(200, 1)), ("a-1", Reply(500, 2)), ("a-1", Reply(200, 3)), ("b-1", Reply(500, 4))])
    assert kept.tally("one") == (1, 1)
    kept.keep("one", [("b-1", Reply(200, 5))])
    assert kept.tally("one") == (1, 2)
    assert [kept.find(name) for name in ("a-1", "b-1")] == [("one", Reply(200, 1)), ("one", Reply(200, 5))]
    kept.close()


@pytest.mark.parametrize(
    "broken", ["", "{not json", "[1,2,3,4,5]", '[200, "Fine.", ""]0123456789abcdef', b"\xff\x00", 7]
)
def test_a_broken_reply_is_told_and_read_again(broken: object, tmp_path: Path) -> None:
    told: list[str] = []
    kept = Kept(tmp_path / "kept.db", told.append)
    kept.begin("one", "p:m", ["a-1", "b-1", "c-1"], "plan")
    kept.created("one", "batch_9")
    kept.keep("one", [("a-1", Reply(200, 1)), ("b-1", Reply(200, 2)), ("c-1", Reply(200, 3))])
    kept.end("one")
    db = sqlite3.connect(tmp_path / "kept.db")
    db.execute("UPDATE requests SET reply = ? WHERE digest != 'c'", (broken,))
    db.commit()
    assert kept.find("a-1") == ("one", None)
    assert "2 replies of one are broken" in told[0]
    assert [sent.id for sent in kept.open()] == ["batch_9"]
    assert (kept.find("b-1"), kept.find("c-1"), len(told)) == (("one", None), ("one", Reply(200, 3)), 1)
    db.execute("DELETE FROM batches")
    db.commit()
    db.close()
    kept.close()
    kept = Kept(tmp_path / "kept.db")
    assert kept.find("a-1") == ("one", Reply(gone="missing"))
    kept.close()


def test_records_of_batches_and_of_money_are_their_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "kept.db").touch(0o644)
    kept = Kept(tmp_path / "kept.db")
    kept.begin("one", "p:m", ["a-1"], "plan")
    budget = Budget(Caps(), tmp_path / "budget.db")
    budget.spent()
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == dict.fromkeys(
        [f"{name}.db{end}" for name in ("kept", "budget") for end in ("", "-wal", "-shm")], "0o600"
    )
    budget.close()
    kept.close()


class Scripted:
    """A provider that says what it was told to; the last of `looks` and of `readings` again and again."""

    most, largest = 100, 1_000_000

    def __init__(self, looks: list[Progress | ProviderError], readings: list[list[tuple[str, Reply]]]) -> None:
        self.looks, self.readings = looks, readings
        self.founds: list[Found | None] = []
        self.asked: list[str] = []

    def line(self, name: str, encoded: Encoded) -> bytes:
        return name.encode()

    async def create(self, batch: str, lines: list[bytes]) -> str:
        return "batch_1"

    async def find(self, batch: str, names: Collection[str], since: float, known: Collection[str]) -> Found | None:
        self.asked.append("find")
        assert not self.founds or self.founds[0] is None or self.founds[0].id not in known
        return self.founds.pop(0)

    async def look(self, id: str) -> Progress:
        self.asked.append(f"look {id}")
        said = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(said, ProviderError):
            raise said
        return said

    async def results(self, progress: Progress) -> AsyncGenerator[tuple[str, Reply], None]:
        self.asked.append("read")
        for named in self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]:
            yield named

    async def cancel(self, id: str) -> None:
        self.asked.append(f"cancel {id}")


@dataclass
class Watched:
    """A batch of two requests at a scripted provider, on a clock of its own."""

    folder: Path
    service: Scripted
    waited: float = 0.0
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        async def sleep(seconds: float) -> None:
            assert seconds > 0
            self.waited += seconds

        self.kept = Kept(self.folder / "kept.db")
        self.kept.begin("ours", "p:m", ["a-1", "b-1"], "plan")
        self.kept.created("ours", "batch_1")
        self.watch = Watch({"p:m": self.service}, self.kept, self.told.append, sleep, lambda: self.waited)

    def replies(self) -> list[Reply | None]:
        found = [self.kept.find(name) for name in ("a-1", "b-1")]
        return [one and one[1] for one in found]


GOOD_A, GOOD_B, BAD = ("a-1", Reply(200, "A")), ("b-1", Reply(200, "B")), UNREADABLE
DONE = Progress("ended", True, 2, 0, 2, None, ("results",))
LATE = Progress("ended", True, 2, 0, 2, late=True)
UNKNOWN = UnknownModelError("404")
MISSED = Reply(gone="missing")


@pytest.mark.parametrize(
    ("looks", "readings", "replies", "reads", "seconds"),
    [
        ([DONE], [[GOOD_A, GOOD_B]], [GOOD_A[1], GOOD_B[1]], 1, (0, 0)),
        ([DONE], [[], [GOOD_A], [GOOD_A, GOOD_B]], [GOOD_A[1], GOOD_B[1]], 3, (3, 3)),
        ([DONE], [[GOOD_A]], [GOOD_A[1], MISSED], 11, (303, 303)),
        ([DONE], [[GOOD_A, BAD]], [GOOD_A[1], MISSED], 2, (1, 1)),
        ([DONE], [[BAD], [BAD], [BAD], [GOOD_A, GOOD_B]], [GOOD_A[1], GOOD_B[1]], 4, (7, 7)),
        ([UNKNOWN, DONE], [[GOOD_A, GOOD_B]], [GOOD_A[1], GOOD_B[1]], 1, (0.2, 0.2)),
        ([LATE, LATE, DONE], [[GOOD_A, GOOD_B]], [GOOD_A[1], GOOD_B[1]], 1, (0.46, 0.46)),
        ([UNKNOWN], [[]], [MISSED, MISSED], 1, (300, 420)),
        ([LATE], [[]], [MISSED, MISSED], 1, (300, 420)),
        ([DONE._replace(done=1, failed=1)], [[GOOD_A]], [GOOD_A[1], Reply(gone="not run")], 1, (0, 0)),
        ([DONE._replace(status="expired", done=1)], [[GOOD_A]], [GOOD_A[1], Reply(gone="expired")], 1, (0, 0)),
        ([DONE._replace(status="failed", refused={"error": {}}, done=1)], [[GOOD_A]], [GOOD_A[1], MISSED], 11, (303, 303)),
        ([DONE._replace(status="expired")], [[GOOD_A]], [GOOD_A[1], MISSED], 11, (303, 303)),
        ([DONE._replace(done=0, total=0)], [[GOOD_A]], [GOOD_A[1], MISSED], 11, (303, 303)),
        ([DONE], [[("x-" + "9" * 5_000, Reply(200)), ("\ud800-1", Reply(200)), GOOD_A, GOOD_B]],
         [GOOD_A[1], GOOD_B[1]], 1, (0, 0)),
    ],
)  # fmt: skip
async def test_what_a_provider_may_have_run_is_given_up_only_after_minutes(
    looks: list[Any],
    readings: list[Any],
    replies: list[Reply],
    reads: int,
    seconds: tuple[float, float],
    tmp_path: Path,
) -> None:
    one = Watched(tmp_path, Scripted([*looks], [*readings]))
    await one.watch.to_its_end("ours")
    assert one.replies() == replies
    assert one.service.asked.count("read") == reads
    assert seconds[0] <= round(one.waited, 6) <= seconds[1]
    assert one.service.asked.count("find") == 0
    assert one.kept.open() == []
    one.kept.close()


@pytest.mark.parametrize(
    ("founds", "readings", "replies"),
    [
        ([Found("batch_2", sure=True)], [[("x-1", Reply(200))], [GOOD_A, GOOD_B]], [GOOD_A[1], GOOD_B[1]]),
        ([None], [[("x-1", Reply(200))]], [Reply(gone="not run")] * 2),
        ([Found("batch_2", sure=False)], [[("x-1", Reply(200))]], [MISSED] * 2),
    ],
)
async def test_after_a_strangers_batch_ours_is_looked_for_once(
    founds: list[Found | None], readings: list[Any], replies: list[Reply], tmp_path: Path
) -> None:
    one = Watched(tmp_path, Scripted([DONE], readings))
    one.kept.created("ours", "batch_1", sure=False)
    one.service.founds = [*founds, None]
    await one.watch.to_its_end("ours")
    assert one.replies() == replies
    assert one.waited >= 1
    assert "batch_1 of p:m is not ours" in "\n".join(one.told)
    one.kept.close()


async def test_a_batch_that_is_only_presumed_to_be_ours_is_never_cancelled(tmp_path: Path) -> None:
    one = Watched(tmp_path, Scripted([DONE], [[GOOD_A, GOOD_B]]))
    one.kept.created("ours", "batch_1", sure=False)
    assert await one.watch.cancel() == 0
    assert one.service.asked == []
    assert "batch batch_1 of p:m is not cancelled" in one.told[0]
    assert [sent.id for sent in one.kept.open()] == ["batch_1"]
    one.kept.close()


@pytest.mark.parametrize("id", ["", "\ud800", "batch\n1", "é", 5])
async def test_an_id_that_no_address_could_hold_is_none(id: object) -> None:
    async with AnthropicServer(lambda body: "Four.") as server, OpenAIServer(lambda body: "Four.") as other:
        talks = [
            Talk(endpoint(server, "anthropic"), {"anthropic-version": VERSION}),
            Talk(endpoint(other, "openai-chat")),
        ]
        server.faults.append(("POST", whole({"id": id})))
        other.faults.extend([("POST /v1/files", whole({"id": "file-1"})), ("POST /v1/batches", whole({"id": id}))])
        for service in (AnthropicBatches(talks[0]), OpenAIBatches(talks[1], "/chat/completions")):
            with pytest.raises(MalformedError, match="without a usable id"):
                await service.create("ours", [b"{}"])
        for one in (server, other):
            one.faults.append(("GET", whole({"data": [{"id": id, "created_at": 5e9}], "has_more": True})))
        assert await AnthropicBatches(talks[0]).find("ours", {"a-1"}, 0, []) is None
        assert await OpenAIBatches(talks[1], "/chat/completions").find("ours", {"a-1"}, 0, []) is None
        for talk in talks:
            await talk.aclose()


async def test_a_batch_that_nobody_can_ask_for_is_not_sent_again(tmp_path: Path) -> None:
    class Nameless(Scripted):
        async def create(self, batch: str, lines: list[bytes]) -> str:
            self.asked.append("create")
            raise UnusableIdError("no usable id")

    one = Watched(tmp_path, Nameless([DONE], [[]]))
    one.service.founds = [None] * 100
    await one.watch.create("ours", [b"a", b"b"])
    await one.watch.to_its_end("ours")
    assert one.replies() == [MISSED] * 2
    assert one.waited >= 300
    assert one.service.asked == ["create"] + ["find"] * (len(one.service.asked) - 1)
    assert len(one.service.asked) > 5
    one.kept.close()


async def test_a_single_404_keeps_nothing_from_being_cancelled(tmp_path: Path) -> None:
    running, ended = DONE._replace(status="in_progress", ended=False, done=0), DONE._replace(status="cancelled", done=1)
    one = Watched(tmp_path, Scripted([UNKNOWN, running, ended], [[GOOD_A]]))
    assert await one.watch.cancel() == 1
    assert [asked.split()[0] for asked in one.service.asked] == ["look", "look", "cancel", "look", "read"]
    assert one.replies() == [GOOD_A[1], Reply(gone="cancelled")]
    one.kept.close()
