"""question, page → facts: what bears on the question, each with a quote that stands in the page.

A quote is looked up in the page's text; a claim whose quote stands nowhere is dropped and
counted. A page longer than its share is narrowed to its best passages first.

Small models copy well and quote badly. In the form `copied` they write nothing but what they
copy, one key for each, and what stands nowhere letter by letter is held against the page's
own sentences: the passage that bears it out becomes the quote, or it is dropped likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from ..kinds import Kind, Params, Reply
from ..records import Fact, Page, Question
from ..store import digest
from .ahead import import_checks
from .job import Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

    from ..evidence.quotes import Located
    from ..llm.messages import Request
    from .locating import Passages

LONGEST_CLAIM = 600  # characters


class ExtractParams(Params):
    share: int = Field(12_000, ge=500, le=1_000_000)  # characters of a page that the model is shown
    most: int = Field(6, ge=1, le=50)  # facts of one page
    form: Literal["claims", "copied"] = "claims"  # copied: quotes alone, for weak models


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
    request = job.request(given, shown)
    if params.form == "copied":
        return await copied(job, request, page, params.most)
    reply = await job.ask(request, ExtractReply)
    return located(job, page, reply.facts[: params.most])


async def copied(job: Job, request: Request, page: Page, most: int) -> list[Fact]:
    """The passages that a model's copies of them lead to."""
    from pydantic import create_model

    from ..evidence.quotes import non_evidence_spans
    from .locating import Passages

    fields: dict[str, Any] = {f"quote_{number}": (str, ...) for number in range(1, most + 1)}
    reply: type[BaseModel] = create_model("Copied", **fields)
    said = [text for text in (await job.ask(request, reply)).model_dump().values() if text.strip()]
    barred, passages = non_evidence_spans(page.text), Passages(page)
    places = dict.fromkeys(filter(None, (_found(text, page.text, barred, passages) for text in said)))
    _count(job, len(said), len(places))
    return [as_fact(page, page.text[place.start : place.end], place) for place in places]


def _found(text: str, page: str, barred: Sequence[tuple[int, int]], passages: Passages) -> Located | None:
    """Where a copied text stands in the page, or the passage that bears all of it out."""
    from ..evidence.quotes import locate

    return locate(text, page, barred) or passages.bearing(text)


def _count(job: Job, said: int, found: int) -> None:
    if lost := said - found:
        job.note(f"{lost} of {said} quotes dropped: not found in the page, or found twice")


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
    _count(job, len(claims), len(facts))
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
