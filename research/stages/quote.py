"""hits → facts without reading a page: each snippet as a quote of the lowest grade."""

from __future__ import annotations

from pydantic import Field

from ..kinds import Kind, Params
from ..records import Fact, Grade, Hit
from ..store import digest
from .job import Job


class QuoteParams(Params):
    keep: int = Field(8, ge=1, le=50)  # hits whose snippets are taken


async def quote(job: Job, hits: list[Hit]) -> list[Fact]:
    best = [hit for hit in hits if hit.snippet.strip()][: job.params(QuoteParams).keep]
    return [as_fact(hit) for hit in best]


def as_fact(hit: Hit) -> Fact:
    from ..web.urls import site

    return Fact(
        claim=hit.snippet, quote=hit.snippet, start=0, end=len(hit.snippet), grade=Grade.SNIPPET,
        url=hit.url, title=hit.title, site=site(hit.url), date=hit.date, page=digest(hit.snippet),
    )  # fmt: skip


KIND = Kind(name="quote", version=1, run=quote, gives=list[Fact], takes={"hits": list[Hit]}, params=QuoteParams)
