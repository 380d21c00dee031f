"""Anthropic's Message Batches: requests go up in one body, results come back as JSON lines.

Source: Anthropic's API reference, "Message Batches", and its guide to batch processing: at most 100,000 requests
and 256 MB, names of 1 to 64 letters, digits, "-" and "_", each once; ended within 24 hours, results kept for 29
days. What is errored, canceled or expired is not paid for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from research.llm.batching.service import (
    CANCELLED,
    EXPIRED,
    MISSING,
    SKEW,
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
from research.llm.wires.base import count, part, words

PATH = "/v1/messages/batches"
FAILED = ("errored", "canceled", "expired")


@dataclass
class AnthropicBatches:
    """A `Service`."""

    talk: Talk
    most: int = 100_000
    largest: int = 250_000_000  # of 256 MB, which hold the frame as well

    def line(self, name: str, encoded: Encoded) -> bytes:
        return compact({"custom_id": name, "params": encoded.body})

    async def create(self, batch: str, lines: list[bytes]) -> str:
        body = b"".join([b'{"requests":[', b",".join(lines), b"]}"])
        made = await self.talk.ask("POST", PATH, content=body)
        if not identity(made):
            raise UnusableIdError(f"{self.talk.endpoint.name} made a batch without a usable id. Try again.")
        return identity(made)

    async def find(self, batch: str, names: Collection[str], since: float, known: Collection[str]) -> Found | None:
        """A batch here has no name of ours: it is presumed by its time and size, and known by its results alone."""
        async with aclosing(self.talk.listed(PATH, "after_id", _created, since)) as batches:
            async for one in batches:
                id = identity(one)
                if id and id not in known and _created(one) >= since - SKEW and await self._is(one, names):
                    return Found(id, sure=_progress(one).ended)
        return None

    async def _is(self, batch: Json, names: Collection[str]) -> bool:
        progress = _progress(batch)
        if progress.total != len(names):
            return False
        if not progress.ended:
            return True
        async with aclosing(self.results(progress)) as results:
            async for name, _ in results:
                if name:
                    return name in names
        return False

    async def look(self, id: str) -> Progress:
        return _progress(await self.talk.ask("GET", f"{PATH}/{quote(id, safe='')}"))

    async def results(self, progress: Progress) -> AsyncGenerator[tuple[str, Reply], None]:
        for path in progress.outputs:
            async for line in self.talk.lines(path):
                yield UNREADABLE if line is None else (words(line, "custom_id"), _reply(part(line, "result")))

    async def cancel(self, id: str) -> None:
        await self.talk.ask("POST", f"{PATH}/{quote(id, safe='')}/cancel", content=b"{}")


def _progress(batch: Json) -> Progress:
    """Results are asked for at the address that was configured, whatever `results_url` says: the key goes along."""
    status, counts = words(batch, "processing_status"), part(batch, "request_counts")
    done, failed = count(counts, "succeeded") or 0, sum(count(counts, name) or 0 for name in FAILED)
    total = done + failed + (count(counts, "processing") or 0)
    ended = status == "ended"
    there = ended and bool(batch.get("results_url")) and bool(identity(batch))
    outputs = (f"{PATH}/{quote(identity(batch), safe='')}/results",) if there else ()
    return Progress(status, ended, done, failed, total, None, outputs, ended and not there)


def _reply(result: Json) -> Reply:
    kind = words(result, "type")
    if kind == "succeeded":
        return Reply(200, result.get("message"))
    if kind in ("canceled", "expired"):
        return Reply(gone=CANCELLED if kind == "canceled" else EXPIRED)
    if kind == "errored":
        return Reply(0, part(result, "error") or {"error": {"message": "an error of which nothing is told"}})
    return Reply(gone=MISSING)


def _created(batch: Json) -> float:
    try:
        return datetime.fromisoformat(words(batch, "created_at")).timestamp()
    except ValueError:
        return 0.0
