"""query → hits, and the hits of all queries → one list without duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from ..kinds import Kind, Params
from ..ledger import Call
from ..records import Hit
from .job import Job


class SearchParams(Params):
    top: int = Field(10, ge=1, le=50)  # results of each query
    per_site: int | None = Field(None, ge=1)  # of the merged results


async def search(job: Job, query: str, web_date: str = "") -> list[Hit]:
    hits = await job.web.search(query, job.params(SearchParams).top)
    job.receipt.calls.append(Call("search", job.web.name))
    return hits


def joined(results: Sequence[list[Hit]], params: Any) -> list[Hit]:
    from ..web.merging import merge

    return merge(results, per_site=params.per_site)


KIND = Kind(
    name="search",
    version=1,
    run=search,
    gives=list[Hit],
    takes={"query": str},
    optional={"web_date": str},
    params=SearchParams,
    web="search",
    join=joined,
)
