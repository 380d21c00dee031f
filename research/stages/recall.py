"""question → answer from the model's memory alone: the baseline that says what searching is worth.

Such an answer has no source and can't be checked. It is marked as one without a search,
and says so in its first note.
"""

from __future__ import annotations

from ..kinds import Kind
from ..records import Answer, Ending, Question
from .job import Job
from .synthesize import BUILTIN, instructions, told

UNSEARCHED = (
    "Closed book, a baseline: answered from the model's memory alone. Nothing here was looked up or has a source."
)
KNOWS_NOTHING = "the built-in extractive model knows nothing by itself"


async def recall(job: Job, question: Question, as_of: str = "") -> Answer:
    if job.model.name.startswith(BUILTIN):
        return _not_answered(KNOWS_NOTHING, as_of)
    from ..evidence.drafts import read
    from ..evidence.markers import cite

    given = {"question": question.text, "as_of": as_of}
    draft = read((await told(job, job.request(given, given))).text, instructions(job))
    if draft.refused:
        return _not_answered(draft.refused, as_of).model_copy(update={"cause": draft.cause})
    return Answer(
        text=cite(draft.text, []).text,
        ending=Ending.WITHOUT_SEARCH,
        reason=f"missing: {draft.missing}" if draft.missing else "no search is made",
        notes=(UNSEARCHED,),
        as_of=as_of,
    )


def _not_answered(why: str, as_of: str) -> Answer:
    return Answer(text="", ending=Ending.NOT, reason=why, cause="no evidence", notes=(UNSEARCHED,), as_of=as_of)


KIND = Kind(
    name="recall",
    version=1,
    run=recall,
    gives=Answer,
    takes={"question": Question},
    optional={"as_of": str},
    model=True,
    max_tokens=600,
)
