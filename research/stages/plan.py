"""question → plan: is a search needed, and what shall engines be asked?

The user's words are often a bad query, so a model writes one to three. A plan that needs
a search always has a query: where the model gave none, the question itself.
"""

from __future__ import annotations

from pydantic import Field

from ..kinds import Kind, Params, Reply
from ..records import Plan, Question
from .job import Job

LONGEST_QUERY = 300  # characters; engines cut or refuse longer ones


class PlanParams(Params):
    most: int = Field(3, ge=1, le=10)  # queries


class PlanReply(Reply):
    needs_search: bool
    queries: list[str]
    reason: str


async def plan(job: Job, question: Question, as_of: str = "") -> Plan:
    params = job.params(PlanParams)
    given = {"question": question.text, "as_of": as_of}
    request = job.request(given, {**given, "most": str(params.most)})
    reply = await job.ask(request, PlanReply)
    if not reply.needs_search:
        return Plan(needs_search=False, reason=reply.reason)
    queries = dict.fromkeys(" ".join(query.split())[:LONGEST_QUERY] for query in reply.queries if query.strip())
    return Plan(needs_search=True, queries=tuple(queries)[: params.most] or (question.text,), reason=reply.reason)


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
