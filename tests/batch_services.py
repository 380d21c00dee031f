"""Both providers' batch interfaces on loopback, after their references: what they refuse, each state on the way, results
in another order than the requests, and on purpose whatever may go wrong with them.

    async with OpenAIServer(replies) as server:
        server.endings.append("expired")     # of the next batch; "completed" or "ended" unless one is named
        server.fates.append(lambda name, body: {"gone": "expired"})   # of its requests; None where it is answered
        server.spoil = lambda read, data: data if read else b""       # of results: the first reading gets none

`replies` makes the text of a completion from a request's body. `paid` counts what was run, by what was sent.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.faults import Act, FaultServer, Received, reply
from tests.providers import KEY, completed, status, whole

Json = dict[str, Any]
Fate = Callable[[str, Json], Json | None]  # name, body → {"gone": "expired"} or {"status": 500, "message": "…"}
ROLES = {"system", "developer", "user", "assistant", "tool"}


class Everything(dict[str, Act]):
    """All paths lead to one act."""

    def __init__(self, act: Act) -> None:
        super().__init__()
        self.act = act

    def get(self, key: str, default: Any = None) -> Any:
        return self.act


@dataclass
class Sent:
    """A batch at the provider. It takes a step each time that it is looked at."""

    id: str
    requests: dict[str, Json]
    ending: str
    fate: Fate
    steps: list[str]
    created: float = field(default_factory=time.time)
    metadata: Json = field(default_factory=dict)
    endpoint: str = ""
    refused: list[Json] = field(default_factory=list)
    results: list[tuple[str, Json]] | None = None  # name and what came of it, once it has ended

    @property
    def state(self) -> str:
        return self.steps[0]


class BatchServer(FaultServer):
    """`faults` are played first, one a request whose method and path fit, and what they fit is told by a pattern."""

    dialect = ""
    way: tuple[str, ...] = ()  # states before the ending
    usual = ""  # the ending

    def __init__(self, replies: Callable[[Json], str], key: str = KEY) -> None:
        super().__init__(Everything(self._act), "127.0.0.1")
        self.replies = replies
        self.key = key
        self.batches: dict[str, Sent] = {}
        self.endings: deque[str] = deque()
        self.fates: deque[Fate] = deque()
        self.faults: deque[tuple[str, Act]] = deque()
        self.paid: Counter[str] = Counter()
        self.refusals: list[str] = []
        self.held_from = 1_000  # batches from this one on stay where they are
        self.usage = (1000, 10)
        self.spoil: Callable[[int, bytes], bytes | None] = lambda read, data: data
        self.reads = 0
        self._ids = itertools.count(1)

    async def _act(self, writer: asyncio.StreamWriter, request: Received) -> None:
        if self.faults and re.match(self.faults[0][0], f"{request.method} {request.path}"):
            await self.faults.popleft()[1](writer, request)
            return
        given = request.header("x-api-key") or (request.header("authorization") or "")[len("Bearer ") :]
        act = self.answer(request) if given == self.key else status(401, "invalid x-api-key")
        await act(writer, request)

    def answer(self, request: Received) -> Act:
        raise NotImplementedError

    def results(self, data: bytes) -> Act:
        """A file of results, as it is spoiled for its so manieth reading (from 0); a 404 in place of None."""
        told = self.spoil(self.reads, data)
        self.reads += 1
        kind = {"Content-Type": "application/octet-stream"}
        return status(404, "not_found_error") if told is None else reply(told, headers=kind)

    def refuse(self, why: str) -> Act:
        self.refusals.append(why)
        return status(400, f"invalid_request_error: {why}")

    def begin(self, requests: dict[str, Json], **more: Any) -> Sent:
        ending = self.endings.popleft() if self.endings else self.usual
        fate: Fate = self.fates.popleft() if self.fates else lambda name, body: None
        id = f"batch_{next(self._ids)}"
        self.batches[id] = Sent(id, requests, ending, fate, [*self.way, ending], **more)
        return self.batches[id]

    def step(self, batch: Sent) -> None:
        """One state on, unless it is held; at its end each request is run once, and paid for where it is answered."""
        held = [*self.batches].index(batch.id) >= self.held_from
        if len(batch.steps) > 1 and not held:
            batch.steps.pop(0)
        if len(batch.steps) == 1 and batch.results is None:
            batch.results = [] if batch.refused else [(name, self.run(batch, name)) for name in batch.requests]
            batch.results.reverse()

    def run(self, batch: Sent, name: str) -> Json:
        body = batch.requests[name]
        if (fate := batch.fate(name, body)) is not None:
            return fate
        self.paid[json.dumps(body, sort_keys=True)] += 1
        return {"body": completed(self.dialect, self.replies(body), self.usage, None)}

    def cancel(self, batch: Sent) -> None:
        """What is not run yet is not run."""
        if batch.results is None:
            batch.fate = lambda name, body: {"gone": "cancelled"}
            batch.steps = [*self.cancelled]

    cancelled: tuple[str, ...] = ()

    def twice(self) -> list[str]:
        """What was paid for more than once."""
        return [body for body, times in self.paid.items() if times > 1]


class OpenAIServer(BatchServer):
    """/v1/files and /v1/batches."""

    dialect = "openai-chat"
    way = ("validating", "in_progress", "finalizing")
    usual = "completed"
    cancelled = ("cancelling", "cancelled")

    def __init__(self, replies: Callable[[Json], str], path: str = "/v1/chat/completions", key: str = KEY) -> None:
        super().__init__(replies, key)
        self.path = path
        self.dialect = "openai-responses" if path == "/v1/responses" else "openai-chat"
        self.files: dict[str, bytes] = {}

    def answer(self, request: Received) -> Act:
        place, parts = urlsplit(request.path), urlsplit(request.path).path.split("/")[2:]
        if (request.method, place.path) == ("POST", "/v1/files"):
            return self.upload(request)
        if (request.method, place.path) == ("POST", "/v1/batches"):
            return self.create(json.loads(request.body))
        if (request.method, place.path) == ("GET", "/v1/batches"):
            return self.list(parse_qs(place.query))
        if parts[0] == "batches" and parts[1] in self.batches:
            batch = self.batches[parts[1]]
            if request.method == "POST" and parts[2:] == ["cancel"]:
                self.cancel(batch)
            else:
                self.step(batch)
            return whole(self.shown(batch))
        if parts[0] == "files" and parts[2:] == ["content"] and parts[1] in self.files:
            return self.results(self.files[parts[1]])
        return status(404, "no such thing")

    def upload(self, request: Received) -> Act:
        kind = request.header("content-type") or ""
        found = re.fullmatch(r"multipart/form-data; boundary=(\S+)", kind)
        if found is None:
            return self.refuse(f"no form: {kind}")
        fields = dict(_fields(request.body, found[1].encode()))
        if fields.get("purpose") != b"batch" or "file" not in fields:
            return self.refuse(f"the form holds {[*fields]}, purpose {fields.get('purpose')!r}")
        if len(fields["file"]) > 200_000_000:
            return self.refuse("the file is larger than 200 MB")
        id = f"file-{next(self._ids)}"
        self.files[id] = fields["file"]
        return whole({"id": id, "object": "file", "purpose": "batch", "bytes": len(fields["file"])})

    def create(self, wish: Json) -> Act:
        if {*wish} - {"metadata"} != {"input_file_id", "endpoint", "completion_window"}:
            return self.refuse(f"a batch of {[*wish]}")
        if wish["completion_window"] != "24h" or wish["endpoint"] not in ("/v1/chat/completions", "/v1/responses"):
            return self.refuse(f"{wish['completion_window']}, {wish['endpoint']}")
        if wish["input_file_id"] not in self.files:
            return self.refuse("no such file")
        metadata = wish.get("metadata", {})
        if len(metadata) > 16 or any(len(key) > 64 or len(value) > 512 for key, value in metadata.items()):
            return self.refuse("metadata")
        lines = [json.loads(line) for line in self.files[wish["input_file_id"]].splitlines()]
        requests = {str(line.get("custom_id")): line.get("body", {}) for line in lines}
        batch = self.begin(requests, metadata=metadata, endpoint=wish["endpoint"])
        if faults := [*self.wrong(lines, wish["endpoint"])]:
            self.refusals += [fault["message"] for fault in faults]
            batch.refused, batch.ending = faults, "failed"
        elif batch.ending == "failed":
            batch.refused = [{"code": "told_so", "message": "This file was refused.", "line": 1, "param": None}]
        elif batch.ending.startswith("failed:"):
            batch.refused = [{"code": batch.ending.partition(":")[2], "message": "Enqueued token limit reached."}]
        if batch.refused:
            batch.steps = ["validating", "failed"]
        return whole(self.shown(batch))

    def wrong(self, lines: list[Json], endpoint: str) -> Iterator[Json]:
        seen: set[str] = set()
        if len(lines) > 50_000 or not lines:
            yield {"code": "size", "message": f"{len(lines)} requests"}
        if len({line.get("body", {}).get("model") for line in lines}) != 1:
            yield {"code": "mismatched_model", "message": "one model a file"}
        for number, line in enumerate(lines, 1):
            name, body = line.get("custom_id"), line.get("body")
            if {*line} != {"custom_id", "method", "url", "body"} or line["method"] != "POST" or line["url"] != endpoint:
                yield {"code": "invalid_request", "message": f"{line.get('method')} {line.get('url')}", "line": number}
            elif not isinstance(name, str) or not 0 < len(name) <= 64 or name in seen:
                yield {"code": "duplicate_custom_id", "message": f"{name!r}", "line": number}
            elif not isinstance(body, dict) or not body.get("model") or body.get("stream"):
                yield {"code": "invalid_body", "message": "no model, or a stream", "line": number}
            elif not _spoken(body.get("messages", body.get("input")), ROLES):
                yield {"code": "invalid_body", "message": "roles", "line": number}
            seen.add(str(name))

    def list(self, query: dict[str, list[str]]) -> Act:
        listed = sorted(self.batches.values(), key=lambda batch: -batch.created)
        ids = [batch.id for batch in listed]
        begin = ids.index(query["after"][0]) + 1 if "after" in query else 0
        page = listed[begin : begin + int(query.get("limit", ["20"])[0])]
        more = begin + len(page) < len(listed)
        return whole({"object": "list", "data": [self.shown(batch) for batch in page], "has_more": more})

    def shown(self, batch: Sent) -> Json:
        answered = [result for _, result in batch.results or () if "body" in result]
        total = 0 if batch.state == "validating" else len(batch.requests)
        counts = {"total": total, "completed": len(answered), "failed": len(batch.results or ()) - len(answered)}
        files = self.written(batch) if len(batch.steps) == 1 and batch.results is not None else {}
        return {
            "id": batch.id, "object": "batch", "endpoint": batch.endpoint, "status": batch.state.partition(":")[0],
            "completion_window": "24h", "created_at": int(batch.created), "metadata": batch.metadata,
            "request_counts": counts, "output_file_id": None, "error_file_id": None, **files,
            "errors": {"object": "list", "data": batch.refused} if batch.state.startswith("failed") else None,
        }  # fmt: skip

    def written(self, batch: Sent) -> Json:
        """The files of results, each only where there is something in it."""
        out, errors = [], []
        for number, (name, result) in enumerate(batch.results or ()):
            line: Json = {"id": f"batch_req_{number}", "custom_id": name, "response": None, "error": None}
            if "body" in result:
                out.append(line | {"response": {"status_code": 200, "request_id": "r", "body": result["body"]}})
            elif result.get("gone") == "expired":
                errors.append(line | {"error": {"code": "batch_expired", "message": "It expired."}})
            elif "status" in result:
                body = {"error": {"message": result["message"], "type": "told"}}
                errors.append(line | {"response": {"status_code": result["status"], "request_id": "r", "body": body}})
        files = {}
        for field_name, lines in (("output_file_id", out), ("error_file_id", errors)):
            if lines:
                files[field_name] = f"file-{batch.id}-{field_name}"
                self.files[files[field_name]] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        return files


class AnthropicServer(BatchServer):
    """/v1/messages/batches."""

    dialect = "anthropic"
    way = ("in_progress", "in_progress")
    usual = "ended"
    cancelled = ("canceling", "ended")

    def answer(self, request: Received) -> Act:
        place = urlsplit(request.path)
        parts = place.path.split("/")[4:]
        if request.header("anthropic-version") != "2023-06-01":
            return self.refuse("no version")
        if not place.path.startswith("/v1/messages/batches"):
            return status(404, "not_found_error")
        if not parts:
            query = parse_qs(place.query)
            return self.create(json.loads(request.body)) if request.method == "POST" else self.list(query)
        batch = self.batches.get(parts[0])
        if batch is None:
            return status(404, "not_found_error")
        if parts[1:] == ["results"]:
            lines = [{"custom_id": name, "result": _result(result)} for name, result in batch.results or ()]
            return self.results(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        if request.method == "POST" and parts[1:] == ["cancel"]:
            self.cancel(batch)
        else:
            self.step(batch)
        return whole(self.shown(batch))

    def create(self, wish: Json) -> Act:
        requests = wish.get("requests")
        if {*wish} != {"requests"} or not isinstance(requests, list) or not 0 < len(requests) <= 100_000:
            return self.refuse("requests")
        names = [request.get("custom_id") for request in requests]
        if len({*names}) != len(names) or not all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(name)) for name in names):
            return self.refuse("custom_id")
        for request in requests:
            params = request.get("params", {})
            if {*request} != {"custom_id", "params"} or not params.get("model") or not params.get("max_tokens"):
                return self.refuse("params")
            if params.get("stream") or not _spoken(params.get("messages"), {"user", "assistant"}):
                return self.refuse("messages")
        return whole(self.shown(self.begin({request["custom_id"]: request["params"] for request in requests})))

    def list(self, query: dict[str, list[str]]) -> Act:
        listed = sorted(self.batches.values(), key=lambda batch: -batch.created)
        ids = [batch.id for batch in listed]
        begin = ids.index(query["after_id"][0]) + 1 if "after_id" in query else 0
        page = listed[begin : begin + int(query.get("limit", ["20"])[0])]
        return whole({"data": [self.shown(one) for one in page], "has_more": begin + len(page) < len(listed)})

    def shown(self, batch: Sent) -> Json:
        ended = batch.state == "ended"
        kinds = Counter(_result(result)["type"] for _, result in batch.results or ())
        counts = {name: kinds[name] for name in ("succeeded", "errored", "canceled", "expired")}
        at = datetime.fromtimestamp(batch.created, UTC).isoformat().replace("+00:00", "Z")
        return {
            "id": batch.id, "type": "message_batch", "processing_status": batch.state, "created_at": at,
            "request_counts": {"processing": len(batch.requests) - sum(counts.values()), **counts},
            "results_url": f"https://api.anthropic.com/v1/messages/batches/{batch.id}/results" if ended else None,
        }  # fmt: skip


def _result(result: Json) -> Json:
    if "body" in result:
        return {"type": "succeeded", "message": result["body"]}
    if "gone" in result:
        return {"type": {"cancelled": "canceled"}.get(result["gone"], result["gone"])}
    kind = {529: "overloaded_error", 500: "api_error"}.get(result["status"], "invalid_request_error")
    return {"type": "errored", "error": {"type": "error", "error": {"type": kind, "message": result["message"]}}}


def _spoken(turns: Any, roles: set[str]) -> bool:
    """Whether a conversation is one that the provider takes: known roles, the last word not the assistant's."""
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, dict) for turn in turns):
        return False
    said = [turn.get("role") for turn in turns]
    if not {*said} <= roles or said[-1] == "assistant" or not all(turn.get("content") for turn in turns):
        return False
    return "tool" in roles or (said[0] == "user" and all(one != other for one, other in itertools.pairwise(said)))


def _fields(body: bytes, mark: bytes) -> Iterator[tuple[str, bytes]]:
    """Of a form (RFC 7578)."""
    pieces = body.split(b"--" + mark)
    assert pieces[0] == b""
    assert pieces[-1] == b"--\r\n"
    for piece in pieces[1:-1]:
        head, _, value = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        found = re.search(rb'name="(\w+)"', head)
        assert found is not None
        yield found[1].decode(), value.removesuffix(b"\r\n")
