"""question, facts → answer: a text written from numbered facts alone, each sentence with its sources.

The model sees the facts' numbers, quotes, source names and dates, never a URL. Without
facts it is not asked at all, unless the plan found that no search was needed. It says
`NOT ANSWERED: …` on the first line if the facts don't answer the question, and
`MISSING: …` on the last if they answer it in part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from ..errors import MalformedError, RefusedError, TruncatedError
from ..evidence.markers import Cited, cite
from ..kinds import Kind, Params
from ..llm.messages import Completion, Message, Request
from ..records import Answer, Ending, Fact, Plan, Question
from .job import Job

BUILTIN = "builtin:"
HONEST = (
    "Made by the built-in extractive model: quoted sentences, no language model. Bind a real one for a written answer."
)
UNSEARCHED = "Answered without a search: the plan found none needed, so nothing here has a source."

_NOT = re.compile(r"\s*NOT ANSWERED:?[ \t]*(.*)", re.IGNORECASE | re.DOTALL)
_MISSING = re.compile(r"(?:^|\n)[ \t]*MISSING:?[ \t]*(.*?)\s*$", re.IGNORECASE | re.DOTALL)


class SynthesizeParams(Params):
    form: Literal["text", "keyed"] = "text"  # keyed: one sentence per source, for weak models
    most: int = Field(40, ge=1, le=500)  # facts that the model is shown, shared out over the sources


@dataclass(frozen=True)
class Draft:
    """A model's reply, taken apart."""

    text: str
    refused: str = ""  # why it says that the facts don't answer
    missing: str = ""  # what it says is missing


async def synthesize(
    job: Job, question: Question, facts: list[Fact], plan: Plan | None = None, as_of: str = ""
) -> Answer:
    params = job.params(SynthesizeParams)
    notes = (HONEST,) if job.model.name.startswith(BUILTIN) else ()
    if plan is not None and not plan.needs_search:
        draft = parted(await told(job, asked(job, question, [], as_of)))
        text = cite(draft.text, []).text
        return Answer(
            text=text, ending=Ending.WITHOUT_SEARCH, reason=plan.reason, notes=(UNSEARCHED, *notes), as_of=as_of
        )
    if not facts:
        return Answer(text="", ending=Ending.NOT, reason="no evidence was found", notes=notes, as_of=as_of)
    facts = shared_out(facts, params.most)
    request = asked(job, question, facts, as_of)
    draft, cited = await (keyed if params.form == "keyed" else written)(job, request, facts)
    return ended(draft, cited, notes, as_of)


def ended(draft: Draft, cited: Cited, notes: tuple[str, ...], as_of: str) -> Answer:
    """The answer, with the ending that its evidence allows."""
    if draft.refused or not draft.text.strip():
        reason = draft.refused or "what was read does not answer it"
        return Answer(text="", ending=Ending.NOT, reason=reason, notes=notes, as_of=as_of)
    ending = Ending.PARTLY if draft.missing else Ending.ANSWERED
    if not cited.citations:
        notes = ("No sentence of this answer cites a source.", *notes)
    if cited.removed_markers:
        notes = (f"{cited.removed_markers} citations of sources that are not there were removed.", *notes)
    return Answer(
        text=cited.text, ending=ending, reason=draft.missing, citations=cited.citations, sentences=cited.sentences,
        notes=(*cited.notes, *notes), removed_markers=cited.removed_markers, as_of=as_of,
    )  # fmt: skip


async def written(job: Job, request: Request, facts: list[Fact]) -> tuple[Draft, Cited]:
    """A free text with markers; asked for once more if it cites nothing or what is not there."""
    completion = await told(job, request)
    draft = parted(completion)
    cited = cite(draft.text, facts)
    if not draft.refused and (cited.removed_markers or not cited.citations):
        turns = (Message("assistant", completion.text), Message("user", repair(len(facts))))
        again = parted(await told(job, replace(request, messages=(*request.messages, *turns))))
        recited = cite(again.text, facts)
        if again.refused or len(recited.citations) >= len(cited.citations):
            draft, cited = again, recited
    return draft, cited


async def keyed(job: Job, request: Request, facts: list[Fact]) -> tuple[Draft, Cited]:
    """One sentence per source, by schema; the program adds the markers."""
    sources = by_source(facts)
    fields: dict[str, Any] = {f"source_{number}": (str, ...) for number in range(1, len(sources) + 1)}
    reply: type[BaseModel] = create_model("Keyed", **fields, missing=(str, ...))
    said: dict[str, str] = (await job.ask(request, reply)).model_dump()
    lines = []
    for number, positions in enumerate(sources.values(), start=1):
        if sentence := cite(said[f"source_{number}"], []).text.strip():
            marker = f" [{', '.join(str(position) for position in positions)}]"
            stop = sentence[-1] if sentence[-1] in ".!?。" else ""
            lines.append(f"{sentence.removesuffix(stop)}{marker}{stop or '.'}")
    text = " ".join(lines)
    return Draft(text, missing=said["missing"].strip()), cite(text, facts)


async def told(job: Job, request: Request) -> Completion:
    """A completion that is whole and meant as an answer.

    Raises: ProviderError or one of its kinds.
    """
    completion = await job.complete(request)
    if completion.finish == "length":
        remedy = "raise max_tokens in the pipeline file"
        raise TruncatedError(f"synthesize: the answer did not fit into {request.max_tokens:,} tokens; {remedy}")
    if completion.finish == "refusal":
        raise RefusedError(f"synthesize: {job.model.name} declined to answer; try another model for this stage")
    if not completion.text.strip():
        raise MalformedError(f"synthesize: {job.model.name} gave an empty reply; ask again")
    return completion


def parted(completion: Completion) -> Draft:
    if refused := _NOT.match(completion.text):
        return Draft("", refused=refused[1].strip() or "what was read does not answer it")
    missing = _MISSING.search(completion.text)
    if missing is None:
        return Draft(completion.text)
    return Draft(completion.text[: missing.start()], missing=missing[1].strip())


def asked(job: Job, question: Question, facts: list[Fact], as_of: str) -> Request:
    numbers = {url: number for number, url in enumerate(by_source(facts), start=1)}
    rows = [
        {
            "id": number,
            "source": numbers[fact.url],
            **fact.model_dump(include={"claim", "quote", "site", "date", "title"}),
        }
        for number, fact in enumerate(facts, start=1)
    ]
    keyed = job.params(SynthesizeParams).form == "keyed"
    given = {"question": question.text, "as_of": as_of, "facts": rows}
    text = "\n".join(job.fenced(line(row), f"source_{row['source']}" if keyed else f"fact {row['id']}") for row in rows)
    return job.request(given, {"question": question.text, "as_of": as_of, "facts": text or "(none)"})


def line(row: dict[str, Any]) -> str:
    dated = f", {row['date']}" if row["date"] else ""
    return f"{row['site']}{dated}: “{row['quote']}”"


def by_source(facts: list[Fact]) -> dict[str, list[int]]:
    """The facts' positions (from 1), grouped by the page that they stand in."""
    sources: dict[str, list[int]] = {}
    for position, fact in enumerate(facts, start=1):
        sources.setdefault(fact.url, []).append(position)
    return sources


def shared_out(facts: list[Fact], most: int) -> list[Fact]:
    """At most `most` facts: the first of each source, then the second of each, and so on; order kept."""
    place = {position: nth for group in by_source(facts).values() for nth, position in enumerate(group)}
    kept = sorted(sorted(place, key=lambda position: (place[position], position))[:most])
    return [facts[position - 1] for position in kept]


def repair(count: int) -> str:
    return (
        f"That text cites no fact, or facts that are not there. Write it again: each sentence ends with the numbers, "
        f"in square brackets, of the facts (1 to {count}) that it rests on, and says nothing that they don't."
    )


KIND = Kind(
    name="synthesize",
    version=1,
    run=synthesize,
    gives=Answer,
    takes={"question": Question, "facts": list[Fact]},
    optional={"plan": Plan, "as_of": str},
    unprompted=frozenset({"plan"}),
    params=SynthesizeParams,
    model=True,
    max_tokens=1200,
)
