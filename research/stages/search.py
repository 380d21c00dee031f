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
    from ..web.base import Hits

    hits = await job.web.search(query, job.params(SearchParams).top)
    engine = (hits.engine if isinstance(hits, Hits) else "") or job.web.name
    job.receipt.calls.append(Call("search", engine, usd=job.fee(engine.partition("@")[0])))
    for skipped in hits.skipped if isinstance(hits, Hits) else ():
        job.note(f"skipped {skipped}")
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
