"""hits → facts without reading a page: each snippet as a quote of the lowest grade.

With `pages`, only those of the best hits count whose page could not be read: their snippets join the `facts`
of the pages that could.
"""

from __future__ import annotations

from pydantic import Field

from ..kinds import Kind, Params
from ..records import Fact, Grade, Hit, Page
from ..store import digest
from .job import Job


class QuoteParams(Params):
    keep: int = Field(8, ge=1, le=50)  # hits whose snippets are taken


async def quote(
    job: Job, hits: list[Hit], pages: list[Page] | None = None, facts: list[Fact] | None = None
) -> list[Fact]:
    keep = job.params(QuoteParams).keep
    if pages is None:
        best = [hit for hit in hits if hit.snippet.strip()][:keep]
    else:
        read = {url for page in pages for url in (page.url, page.asked)}
        best = [hit for hit in hits[:keep] if hit.snippet.strip() and hit.url not in read]
    return [*(facts or ()), *map(as_fact, best)]


def as_fact(hit: Hit) -> Fact:
    from ..web.urls import site

    return Fact(
        claim=hit.snippet, quote=hit.snippet, start=0, end=len(hit.snippet), grade=Grade.SNIPPET,
        url=hit.url, title=hit.title, site=site(hit.url), date=hit.date, page=digest(hit.snippet),
    )  # fmt: skip


KIND = Kind(
    name="quote",
    version=1,
    run=quote,
    gives=list[Fact],
    takes={"hits": list[Hit]},
    optional={"pages": list[Page], "facts": list[Fact]},
    params=QuoteParams,
)
