"""question, page → facts: what bears on the question, each with a quote that stands in the page.

A quote is looked up in the page's text; a claim whose quote stands nowhere is dropped and
counted. A page longer than its share is narrowed to its best passages first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from ..kinds import Kind, Params, Reply
from ..records import Fact, Page, Question
from ..store import digest
from .ahead import import_checks
from .job import Job

if TYPE_CHECKING:
    from ..evidence.quotes import Located

LONGEST_CLAIM = 600  # characters


class ExtractParams(Params):
    share: int = Field(12_000, ge=500, le=1_000_000)  # characters of a page that the model is shown
    most: int = Field(6, ge=1, le=50)  # facts of one page


class Claimed(Reply):
    claim: str
    quote: str


class ExtractReply(Reply):
    facts: list[Claimed]


async def extract(job: Job, question: Question, page: Page) -> list[Fact]:
    from ..relevance import narrow

    params = job.params(ExtractParams)
    narrowed = narrow(page.text, question.text, params.share)
    if len(narrowed.text) < len(page.text):
        job.note(f"narrowed from {len(page.text):,} to {len(narrowed.text):,} characters: {list(narrowed.spans)}")
    told = f"{page.title}\n{page.site}{f', {page.date}' if page.date else ''}\n\n{narrowed.text}"
    shown = {"question": question.text, "page": job.fenced(told, "page"), "most": str(params.most)}
    given = {
        "question": question.text,
        "title": page.title,
        "site": page.site,
        "date": page.date,
        "text": narrowed.text,
    }
    import_checks()
    reply = await job.ask(job.request(given, shown), ExtractReply)
    return located(job, page, reply.facts[: params.most])


def located(job: Job, page: Page, claims: list[Claimed]) -> list[Fact]:
    """The claims whose quotes stand in the page, outside its bibliography, navigation and comments."""
    from ..evidence.leaks import without_prompt
    from ..evidence.quotes import locate, non_evidence_spans

    assert job.prompt is not None
    barred = non_evidence_spans(page.text)
    facts: dict[tuple[int, int], Fact] = {}
    for claim in claims:
        place = locate(claim.quote, page.text)
        if place is not None and not any(start <= place.start < end for start, end in barred):
            told = without_prompt(claim.claim, job.prompt.text, [page.text])[0][:LONGEST_CLAIM]
            facts.setdefault((place.start, place.end), as_fact(page, told, place))
    if lost := len(claims) - len(facts):
        job.note(f"{lost} of {len(claims)} quotes dropped: not found in the page, or found twice")
    return list(facts.values())


def as_fact(page: Page, claim: str, place: Located) -> Fact:
    from ..evidence.quotes import surroundings

    before, after = surroundings(page.text, place.start, place.end)
    return Fact(
        claim=claim,
        quote=page.text[place.start : place.end],
        start=place.start,
        end=place.end,
        grade=place.grade,
        url=page.url,
        title=page.title,
        site=page.site,
        date=page.date,
        page=digest(page.text),
        before=before,
        after=after,
    )


KIND = Kind(
    name="extract",
    version=2,
    run=extract,
    gives=list[Fact],
    takes={"question": Question, "page": Page},
    prompted=frozenset({"most"}),
    params=ExtractParams,
    model=True,
    max_tokens=1500,
)
