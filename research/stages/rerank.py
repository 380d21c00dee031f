"""question, hits → ranked: the most relevant and authoritative hits first.

A model names the best few; the others follow in their old order, so that a page that
can't be read has a next in rank. Ids that name no hit or come twice are passed over.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ..kinds import Kind, Params, Reply
from ..records import Hit, Question
from .job import Job


class RerankParams(Params):
    keep: int = Field(4, ge=1, le=50)  # how many the model is asked to name


class RerankReply(Reply):
    ranking: list[int]


async def rerank(job: Job, question: Question, hits: list[Hit]) -> list[Hit]:
    if len(hits) < 2:
        return hits
    keep = min(job.params(RerankParams).keep, len(hits))
    rows = [as_row(number, hit) for number, hit in enumerate(hits, start=1)]
    shown = {
        "question": question.text,
        "hits": "\n".join(job.fenced(told(row), f"result {row['id']}") for row in rows),
        "keep": str(keep),
    }
    given = {"question": question.text, "hits": rows, "keep": keep}
    reply = await job.ask(job.request(given, shown), RerankReply)
    return reordered(hits, reply.ranking)


def reordered(hits: list[Hit], ranking: list[int]) -> list[Hit]:
    """`hits` with those named in `ranking` (ids from 1) first, in that order; ranks anew."""
    best = dict.fromkeys(number for number in ranking if 1 <= number <= len(hits))
    order = [*best, *(number for number in range(1, len(hits) + 1) if number not in best)]
    return [hits[number - 1].model_copy(update={"rank": rank}) for rank, number in enumerate(order, start=1)]


def as_row(number: int, hit: Hit) -> dict[str, Any]:
    return {"id": number, "title": hit.title, "snippet": hit.snippet, "url": hit.url, "date": hit.date}


def told(row: dict[str, Any]) -> str:
    dated = f" ({row['date']})" if row["date"] else ""
    return f"{row['title']}{dated}\n{row['url']}\n{row['snippet']}"


KIND = Kind(
    name="rerank",
    version=1,
    run=rerank,
    gives=list[Hit],
    takes={"question": Question, "hits": list[Hit]},
    prompted=frozenset({"keep"}),
    params=RerankParams,
    model=True,
    max_tokens=300,
)
