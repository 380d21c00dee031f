"""question, facts → answer: a text written from numbered facts alone, each sentence with its sources.

The model sees the facts' numbers, quotes, source names and dates, never a URL. Without
facts it is not asked at all, unless the plan found that no search was needed. It says
`NOT ANSWERED: …` on the first line if the facts don't answer the question, and
`MISSING: …` on the last if they answer it in part. `pages`, where given, are what copies
of one text are told by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from ..errors import BudgetError, MalformedError, RefusedError, TruncatedError
from ..kinds import Kind, Params
from ..records import Answer, Ending, Fact, Page, Plan, Question
from .ahead import import_checks
from .job import Job

if TYPE_CHECKING:
    from ..evidence.drafts import Draft
    from ..evidence.markers import Cited
    from ..llm.messages import Completion, Request
    from .unfolding import Unfolding

BUILTIN = "builtin:"
HONEST = (
    "Made by the built-in extractive model: quoted sentences, no language model. Bind a real one for a written answer."
)
UNSEARCHED = "Answered without a search: the plan found none needed, so nothing here has a source."
REPAIR = Path(__file__).with_name("repair.md")  # the turn that asks for a text again


class SynthesizeParams(Params):
    form: Literal["text", "keyed"] = "text"  # keyed: one sentence per source, for weak models
    most: int = Field(40, ge=1, le=500)  # facts that the model is shown, shared out over the sources


async def synthesize(
    job: Job,
    question: Question,
    facts: list[Fact],
    plan: Plan | None = None,
    as_of: str = "",
    pages: list[Page] | None = None,
) -> Answer:
    params = job.params(SynthesizeParams)
    notes = (HONEST,) if job.model.name.startswith(BUILTIN) else ()
    if plan is not None and not plan.needs_search:
        return await unsearched(job, question, plan.reason, as_of, notes)
    if not facts:
        reason = "no evidence was found"
        return Answer(text="", ending=Ending.NOT, reason=reason, cause="no evidence", notes=notes, as_of=as_of)
    from ..evidence.folding import fold

    found = fold(facts, pages or ())
    shown = shared_out(found.facts, params.most)
    request = asked(job, question, shown, as_of)
    draft, cited = await (keyed if params.form == "keyed" else written)(job, request, shown)
    from ..evidence.answers import Asked, finished

    return finished(draft, cited, Asked(question.text, as_of, found), notes)


async def unsearched(job: Job, question: Question, why: str, as_of: str, notes: tuple[str, ...]) -> Answer:
    """An answer from the model alone, to what needs no source."""
    from ..evidence.drafts import read
    from ..evidence.markers import cite

    draft = read((await told(job, asked(job, question, [], as_of))).text, instructions(job))
    if draft.refused:
        return Answer(text="", ending=Ending.NOT, reason=draft.refused, cause=draft.cause, notes=notes, as_of=as_of)
    text = cite(draft.text, []).text
    return Answer(text=text, ending=Ending.WITHOUT_SEARCH, reason=why, notes=(UNSEARCHED, *notes), as_of=as_of)


async def written(job: Job, request: Request, facts: list[Fact]) -> tuple[Draft, Cited]:
    """A free text with markers; asked for once more if it cites nothing or what is not there."""
    from ..llm.messages import Message

    import_checks()
    heard = read_aloud(job, facts)
    completion = await told(job, request, heard)
    from ..evidence.drafts import read
    from ..evidence.markers import cite

    draft = read(completion.text, instructions(job), facts)
    cited = cite(draft.text, facts)
    if not draft.refused and (cited.removed_markers or not cited.citations):
        turns = (Message("assistant", completion.text), Message("user", repair(len(facts))))
        try:
            again = await told(job, replace(request, messages=(*request.messages, *turns)), heard)
        except BudgetError:  # an answer that could be better is worth more than none
            job.receipt.passing = True
            return draft, cited
        second = read(again.text, instructions(job), facts)
        recited = cite(second.text, facts)
        if second.refused or len(recited.citations) >= len(cited.citations):
            draft, cited = second, recited
    return draft, cited


async def keyed(job: Job, request: Request, facts: list[Fact]) -> tuple[Draft, Cited]:
    """One sentence per source, by schema; the program adds the markers."""
    from pydantic import create_model

    from ..evidence.drafts import Draft, lacked
    from ..evidence.leaks import without_prompt
    from ..evidence.markers import cite

    sources = by_source(facts)
    fields: dict[str, Any] = {f"source_{number}": (str, ...) for number in range(1, len(sources) + 1)}
    reply: type[BaseModel] = create_model("Keyed", **fields, missing=(str, ...))
    said: dict[str, str] = (await job.ask(request, reply, read_aloud(job, facts))).model_dump()
    text, withheld = joined(job, said, facts)
    missing = without_prompt(said.pop("missing"), instructions(job))[0]
    cause, missing = lacked(missing, [*said.values()])
    return Draft(text, missing=missing, cause=cause, withheld=withheld), cite(text, facts)


def joined(job: Job, said: Mapping[str, str], facts: list[Fact]) -> tuple[str, int]:
    """The sentences that are there, each with the markers of its source, and how many repeated the prompt."""
    from ..evidence.leaks import without_prompt
    from ..evidence.markers import cite

    lines, withheld = [], 0
    for number, positions in enumerate(by_source(facts).values(), start=1):
        own = [facts[position - 1].quote for position in positions]
        sentence, removed = without_prompt(said.get(f"source_{number}", ""), instructions(job), own)
        withheld += removed
        if sentence := cite(sentence, []).text.strip():
            marker = f" [{', '.join(str(position) for position in positions)}]"
            stop = sentence[-1] if sentence[-1] in ".!?。" else ""
            lines.append(f"{sentence.removesuffix(stop)}{marker}{stop or '.'}")
    return " ".join(lines), withheld


def read_aloud(job: Job, facts: list[Fact]) -> Unfolding | None:
    """Who tells the answer while it is written, if somebody listens; a refusal to answer is told at the end."""
    if job.hear is None:
        return None
    from ..llm.partial import strings
    from .unfolding import Unfolding, whole_sentences, whole_strings

    def drafted(came: str) -> str:
        from ..evidence.drafts import read  # imported meanwhile

        draft = read(came, instructions(job), facts)
        return "" if draft.refused else draft.text

    if job.params(SynthesizeParams).form == "keyed":
        return Unfolding(job.hear, facts, whole_strings, lambda came: joined(job, strings(came), facts)[0])
    return Unfolding(job.hear, facts, whole_sentences, drafted)


async def told(job: Job, request: Request, on_text: Unfolding | None = None) -> Completion:
    """A completion that is whole and meant as an answer.

    Raises: ProviderError or one of its kinds.
    """
    completion = await job.complete(request, on_text)
    if completion.finish == "length":
        remedy = "raise max_tokens in the pipeline file"
        raise TruncatedError(f"synthesize: the answer did not fit into {request.max_tokens:,} tokens; {remedy}")
    if completion.finish == "refusal":
        raise RefusedError(f"synthesize: {job.model.name} declined to answer; try another model for this stage")
    if not completion.text.strip():
        raise MalformedError(f"synthesize: {job.model.name} gave an empty reply; ask again")
    return completion


def instructions(job: Job) -> str:
    """The prompt's own text, which no answer repeats."""
    assert job.prompt is not None
    return job.prompt.text


def asked(job: Job, question: Question, facts: list[Fact], as_of: str) -> Request:
    """The facts as they are shown. In the form `keyed` it is their quotes alone: small models copy names, dates and
    marks around a quote as if they were part of it, and where it stands is told below the answer anyway."""
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
    text = "\n".join(
        job.fenced(row["quote"], f"source_{row['source']}") if keyed else job.fenced(line(row), f"fact {row['id']}")
        for row in rows
    )
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
    from ..prompts import Prompt

    return Prompt(REPAIR.name, REPAIR.read_text(encoding="utf-8")).fill({"count": str(count)})[1]


KIND = Kind(
    name="synthesize",
    version=4,
    run=synthesize,
    gives=Answer,
    takes={"question": Question, "facts": list[Fact]},
    optional={"plan": Plan, "as_of": str, "pages": list[Page]},
    unprompted=frozenset({"plan", "pages"}),
    params=SynthesizeParams,
    model=True,
    max_tokens=1200,
)
