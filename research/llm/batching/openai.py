"""OpenAI's Batch: a file of requests goes up, a file of responses and one of errors come back.

Source: OpenAI's API reference, "Batch" and "Files", and its guide to batches: at most 50,000 requests and 200 MB
in a file, one model and one endpoint, names of up to 64 characters, each once; done or expired within 24 hours.
What expires or is cancelled half done is paid for as far as it is done.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from research.llm.batching.service import (
    CANCELLED,
    EXPIRED,
    MISSING,
    UNREADABLE,
    Found,
    Json,
    Progress,
    Reply,
    Talk,
    UnusableIdError,
    compact,
    identity,
)
from research.llm.wires import Encoded
from research.llm.wires.base import count, part, parts, words

ROOT = "/v1"  # of the paths that requests are told by
LABEL = "research"  # of the metadata that holds our own name of a batch
ENDED = ("completed", "failed", "expired", "cancelled")


@dataclass
class OpenAIBatches:
    """A `Service`. `path` is that of the endpoint that all its requests are for."""

    talk: Talk
    path: str
    most: int = 50_000
    largest: int = 200_000_000

    def line(self, name: str, encoded: Encoded) -> bytes:
        request = {"custom_id": name, "method": "POST", "url": ROOT + encoded.path, "body": encoded.body}
        return compact(request)

    async def create(self, batch: str, lines: list[bytes]) -> str:
        kind, form = _form(f"{batch}.jsonl", b"\n".join(lines) + b"\n")
        file = words(await self.talk.ask("POST", "/files", content=form, kind=kind), "id")
        wish = {"input_file_id": file, "endpoint": ROOT + self.path, "completion_window": "24h"}
        made = await self.talk.ask("POST", "/batches", content=compact({**wish, "metadata": {LABEL: batch}}))
        if not identity(made):
            raise UnusableIdError(f"{self.talk.endpoint.name} made a batch without a usable id. Try again.")
        return identity(made)

    async def find(self, batch: str, names: Collection[str], since: float, known: Collection[str]) -> Found | None:
        async with aclosing(self.talk.listed("/batches", "after", _created, since)) as batches:
            async for one in batches:
                id = identity(one)
                if id and id not in known and words(part(one, "metadata"), LABEL) == batch:
                    return Found(id, sure=True)
        return None

    async def look(self, id: str) -> Progress:
        batch = await self.talk.ask("GET", f"/batches/{quote(id, safe='')}")
        status, counts = words(batch, "status"), part(batch, "request_counts")
        done, failed, total = (count(counts, name) or 0 for name in ("completed", "failed", "total"))
        files = [identity(batch, name) for name in ("output_file_id", "error_file_id")]
        refused = {"error": _first(part(batch, "errors"))} if status == "failed" else None
        ended, outputs = status in ENDED, tuple(file for file in files if file)
        return Progress(status, ended, done, failed, total, refused, outputs, ended and done > 0 and not files[0])

    async def results(self, progress: Progress) -> AsyncGenerator[tuple[str, Reply], None]:
        for file in progress.outputs:
            async for line in self.talk.lines(f"/files/{quote(file, safe='')}/content"):
                yield UNREADABLE if line is None else (words(line, "custom_id"), _reply(line))

    async def cancel(self, id: str) -> None:
        await self.talk.ask("POST", f"/batches/{quote(id, safe='')}/cancel")


def _reply(line: Json) -> Reply:
    response, error = part(line, "response"), part(line, "error")
    code = words(error, "code")
    if "expired" in code:
        return Reply(gone=EXPIRED)
    if "cancel" in code:
        return Reply(gone=CANCELLED)
    if response:
        status = count(response, "status_code")
        return Reply(status, response.get("body")) if status else Reply(gone=MISSING)
    return Reply(0, {"error": error}) if error else Reply(gone=MISSING)


def _first(errors: Json) -> Json:
    """Why a file was refused: the first reason, and where there are more, how many."""
    listed = parts(errors, "data")
    if not listed:
        return {"message": "the provider gives no reason"}
    first = dict(listed[0])
    if isinstance(first.get("line"), int):
        first["message"] = f"line {first['line']}: {words(first, 'message')}"
    if len(listed) > 1:
        first["message"] = f"{words(first, 'message')} (and {len(listed) - 1:,} more)"
    return first


def _created(batch: Json) -> float:
    at: Any = batch.get("created_at")
    return float(at) if isinstance(at, int | float) else 0.0


def _form(name: str, data: bytes) -> tuple[str, bytes]:
    """A form with the file in it (RFC 7578), and its content type."""
    mark = f"research-{uuid4().hex}"
    before = (
        f'--{mark}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{mark}\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n'
        "content-type: application/jsonl\r\n\r\n"
    )
    return f"multipart/form-data; boundary={mark}", b"".join([before.encode(), data, f"\r\n--{mark}--\r\n".encode()])
