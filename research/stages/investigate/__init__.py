"""question → answer, by a model in a loop that decides itself when to search, what to read and when to stop.

    wording    what the model is told, from files
    turns      one turn, kept for good
    sources    every address under one number
    tools      calls checked, allowed, done
    served     those of servers that the user has set up
    actions    replies as calls: natively, or as structured actions
    history    the conversation, kept in bounds
    loop       the loop itself
    keyed      the answer of a model that works by actions
    answering  the final text as an answer with citations

Its searches and pages have the very keys of the stages `search` and `fetch`, so that
pipelines and loops share them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...kinds import Kind, Params, Sampling
from ...pipeline import Stage
from ...records import Answer, Ending, Question
from .. import fetch, search
from ..job import Job
from . import wording
from .turns import COMPACT, TURN


class InvestigateParams(Params):
    steps: int = Field(12, ge=1, le=100)  # replies of the model, before a last one without tools
    searches: int = Field(12, ge=1, le=200)
    pages: int = Field(12, ge=1, le=200)
    served: int = Field(24, ge=1, le=500)  # calls of servers' tools
    at_once: int = Field(6, ge=1, le=50)  # calls of one reply
    top: int = Field(10, ge=1, le=50)  # results of each search
    share: int = Field(8_000, ge=500, le=1_000_000)  # characters of a page that one result shows
    first: int = Field(5, ge=1, le=50)  # results, and `glance` characters of a page, that a model is shown which
    glance: int = Field(1_500, ge=500, le=1_000_000)  # works by actions: it answers from the best passages anyhow
    window: int = Field(60_000, ge=1_000)  # tokens of history, beyond which its older part is shortened
    keep: int = Field(3, ge=1, le=50)  # exchanges that are not shortened then
    tools_as: Literal["native", "schema"] | None = Field(None)  # schema: structured actions; else as suits the model


async def investigate(job: Job, question: Question, as_of: str = "", web_date: str = "") -> Answer:
    """Raises: WebError where nothing was found for failures of the web alone; what `Loop.run` raises."""
    from ...llm.messages import Message
    from .actions import listed, way
    from .answering import answered
    from .history import History
    from .loop import Limits, Loop
    from .sources import Sources
    from .tools import Caps, Toolbox

    params, sources = job.params(InvestigateParams), Sources.of(question.text)
    words = {name: wording.read(name, file.text) for name, file in job.tools.items()}
    by_actions = params.tools_as == "schema"
    shown = (params.glance, params.first) if by_actions else (params.share, params.top)
    caps = Caps(params.searches, params.pages, params.at_once, params.served, *shown)
    tools = Toolbox(job, question.text, web_date, words, caps, sources)
    actions = job.further["actions"].fill({"tools": listed(tools)})[1]
    talking = way(params.tools_as or "native", tools, actions)
    assert job.prompt is not None
    system, text = job.prompt.fill({"question": question.text, "as_of": as_of, "steps": str(params.steps)})
    history = History(talking.system(system), Message("user", text))
    limits = Limits(params.steps, params.window, params.keep)
    conclusion = await Loop(job, question.text, as_of, tools, talking, limits, history).run()
    answer = answered(job, question.text, as_of, sources, conclusion)
    if tools.failures and answer.ending is Ending.NOT:
        if not any(source.hit or source.readable for source in sources.all):
            raise tools.failures[0]
        job.receipt.passing = True  # another time the web may answer
    return answer


def parts(stage: Stage) -> dict[str, Stage]:
    """What the loop calls on. A search and a page of it are those of any pipeline."""
    assert isinstance(stage.params, InvestigateParams)
    from .served import TOOL

    bare = stage._replace(
        takes={}, prompt=None, prompts={}, tools={}, servers=(), params=Params(), model="", sampling=None
    )
    shortening = bare._replace(kind=COMPACT, model="cheap", prompt=stage.prompts["compact"])
    return {
        "turn": bare._replace(kind=TURN, model=stage.model, sampling=stage.sampling),
        "compact": shortening._replace(sampling=Sampling(max_tokens=COMPACT.max_tokens)),
        "search": bare._replace(kind=search.KIND, params=search.SearchParams(top=stage.params.top)),
        "fetch": bare._replace(kind=fetch.KIND),
        **({"mcp": bare._replace(kind=TOOL, servers=stage.servers)} if stage.servers else {}),
    }


KIND = Kind(
    name="investigate",
    version=2,
    run=investigate,
    gives=Answer,
    takes={"question": Question},
    optional={"as_of": str, "web_date": str},
    unprompted=frozenset({"web_date"}),
    prompted=frozenset({"steps"}),
    prompts={
        "compact": frozenset({"question", "turns"}),
        "actions": frozenset({"tools"}),
        "sentences": frozenset({"question", "as_of", "facts"}),
    },
    params=InvestigateParams,
    model=True,
    max_tokens=2000,
    tool=wording.read,
    always=wording.ALWAYS,
    servers=wording.SERVERS,
    parts=parts,
)
