"""question → plan: is a search needed, and what shall engines be asked?

The user's words are often a bad query, so a model writes one to three. A plan that needs
a search always has a query: where the model gave none, the question itself. Small models
can't tell what needs no search, and lose what was asked: with `always` they only write
queries, and the user's own words come before these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field

from ..errors import MalformedError, TruncatedError
from ..kinds import Kind, Params, Reply
from ..records import Plan, Question
from .job import Job

if TYPE_CHECKING:
    from ..llm.messages import Request

LONGEST_QUERY = 300  # characters; engines cut or refuse longer ones


class PlanParams(Params):
    most: int = Field(3, ge=1, le=10)  # queries
    always: bool = False  # a search is made whatever was asked, with the user's own words first


class Queries(Reply):
    queries: list[str]


class PlanReply(Reply):
    needs_search: bool
    queries: list[str]
    reason: str


async def plan(job: Job, question: Question, as_of: str = "") -> Plan:
    params = job.params(PlanParams)
    given = {"question": question.text, "as_of": as_of}
    request = job.request(given, {**given, "most": str(params.most)})
    if params.always:
        queries = told_apart([question.text, *await written(job, request)])
        return Plan(needs_search=True, queries=queries[: params.most])
    reply = await job.ask(request, PlanReply)
    if not reply.needs_search:
        return Plan(needs_search=False, reason=reply.reason)
    queries = told_apart(reply.queries)[: params.most] or (question.text,)
    return Plan(needs_search=True, queries=queries, reason=reply.reason)


async def written(job: Job, request: Request) -> list[str]:
    """A model's queries; none of a reply that can't be used, since there is one query without it."""
    try:
        return (await job.ask(request, Queries)).queries
    except (MalformedError, TruncatedError) as error:
        job.note(f"the question alone is searched: {error}")
        job.receipt.passing = True
        return []


def told_apart(queries: Iterable[str]) -> tuple[str, ...]:
    """The queries in one line each, none twice and none empty."""
    lines = (" ".join(query.split())[:LONGEST_QUERY] for query in queries)
    return tuple({line.casefold(): line for line in reversed([*filter(None, lines)])}.values())[::-1]


KIND = Kind(
    name="plan",
    version=1,
    run=plan,
    gives=Plan,
    takes={"question": Question},
    optional={"as_of": str},
    prompted=frozenset({"most"}),
    params=PlanParams,
    model=True,
    max_tokens=500,
)
