"""url → page, whatever became of it; a page without text that can be used is replaced by the next in rank."""

from __future__ import annotations

from urllib.parse import urlsplit

from ..kinds import Kind
from ..ledger import Call
from ..records import Outcome, Page
from .job import Job


async def fetch(job: Job, url: str, web_date: str = "") -> Page:
    page = await job.web.fetch(url)
    job.receipt.calls.append(Call("fetch", urlsplit(url).hostname or "file"))
    job.receipt.outcome = f"{page.outcome} (PDF)" if page.media_type == "application/pdf" else str(page.outcome)
    return page if page.url == url else page.model_copy(update={"asked": url})


def unreadable(page: Page) -> str | None:
    return None if page.outcome is Outcome.OK else f"{page.outcome}: {page.url}"


KIND = Kind(
    name="fetch",
    version=1,
    run=fetch,
    gives=Page,
    takes={"url": str},
    optional={"web_date": str},
    web="fetch",
    refetchable=True,
    dropped=unreadable,
)
