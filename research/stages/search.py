"""query → hits, and the hits of all queries → one list without duplicates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from ..errors import WebError
from ..kinds import Kind, Params
from ..records import Hit
from .job import Job


class SearchParams(Params):
    top: int = Field(10, ge=1, le=50)  # results of each query
    per_site: int | None = Field(None, ge=1)  # of the merged results


async def search(job: Job, query: str, web_date: str = "") -> list[Hit]:
    from ..web.base import Hits
    from .fees import Fees

    fees = Fees(job)
    await fees.reserve()
    try:
        hits = await job.web.search(query, job.params(SearchParams).top)
    except WebError as error:
        fees.failed(error.asked, type(error).__name__)
        raise
    except asyncio.CancelledError:
        fees.cancelled()
        raise
    engine = (hits.engine if isinstance(hits, Hits) else "") or job.web.name
    fees.answered(engine, hits.asked if isinstance(hits, Hits) else ())
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
