"""question, hit → yes or no: the re-ranking for models that can't order a list."""

from __future__ import annotations

from ..kinds import Kind, Reply
from ..records import Hit, Question, Record
from .job import Job
from .rerank import as_row, told


class Screened(Record):
    """A hit, and whether a model thinks that it bears on the question."""

    hit: Hit
    relevant: bool


class ScreenReply(Reply):
    relevant: bool


async def screen(job: Job, question: Question, hit: Hit) -> Screened:
    row = as_row(1, hit)
    shown = {"question": question.text, "hit": job.fenced(told(row), "result")}
    reply = await job.ask(job.request({"question": question.text, "hit": row}, shown), ScreenReply)
    return Screened(hit=hit, relevant=reply.relevant)


def irrelevant(screened: Screened) -> str | None:
    return None if screened.relevant else f"not relevant: {screened.hit.url}"


KIND = Kind(
    name="screen",
    version=1,
    run=screen,
    gives=Screened,
    takes={"question": Question, "hit": Hit},
    model=True,
    max_tokens=50,
    dropped=irrelevant,
)
