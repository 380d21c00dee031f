"""answer → the same answer, each cited sentence checked against its quotes by a model as well.

A model may lower a mark as far as it likes and raise it by one step: what it reads may
have talked it round. The rules have the last word on numbers and dates that stand in no
cited quote. If the check fails the answer stands, marked as unchecked; that is not
stored, so that the next run tries again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from ..kinds import Kind, Reply, Sampling
from ..pipeline import Pipeline, Source, Stage
from ..records import Answer, Fact, Mark, Sentence
from .job import Job

_BEST_LAST: tuple[Mark, ...] = ("unsupported", "partly", "supported")


class Verdict(Reply):
    sentence: int
    verdict: Literal["supported", "partly", "unsupported"]
    reason: str


class VerifyReply(Reply):
    verdicts: list[Verdict]


async def verify(job: Job, answer: Answer) -> Answer:
    rows = {position: facts for position, facts in enumerate(cited(answer)) if facts}
    if not rows:
        return answer
    numbers = dict(enumerate(rows, start=1))
    told = [(number, said(answer, answer.sentences[place]), rows[place]) for number, place in numbers.items()]
    text = "\n".join(job.fenced(laid_out(sentence, facts), f"sentence {number}") for number, sentence, facts in told)
    given = {"sentences": [{"id": n, "text": s, "quotes": [f.quote for f in facts]} for n, s, facts in told]}
    reply = await job.ask(job.request(given, {"answer": text}), VerifyReply)
    verdicts = {numbers[one.sentence]: one for one in reply.verdicts if one.sentence in numbers}
    sentences = [
        judged(job, said(answer, sentence), sentence, rows[place], verdicts[place]) if place in verdicts else sentence
        for place, sentence in enumerate(answer.sentences)
    ]
    left = len(rows) - len(verdicts)
    note = f"Its sentences were checked by {job.model.name}" + (f", but for {left}." if left else ".")
    update = {"sentences": tuple(sentences), "verification": "done", "notes": (*answer.notes, note)}
    return answer.model_copy(update=update)


def cited(answer: Answer) -> list[list[Fact]]:
    """The facts that each sentence cites."""
    return [
        [one.fact for one in answer.citations if sentence.start <= one.start and one.end <= sentence.end]
        for sentence in answer.sentences
    ]


def said(answer: Answer, sentence: Sentence) -> str:
    """A sentence without its markers."""
    return re.sub(r"[ \t]?\[\d{1,4}\]", "", answer.text[sentence.start : sentence.end])


def laid_out(sentence: str, facts: list[Fact]) -> str:
    quotes = [f"{fact.site}{f', {fact.date}' if fact.date else ''}: “{fact.quote}”" for fact in facts]
    return "\n".join([f"Sentence: {sentence}", "Quotes:", *quotes])


def judged(job: Job, text: str, sentence: Sentence, facts: list[Fact], verdict: Verdict) -> Sentence:
    from ..evidence.checks import findings
    from ..evidence.drafts import reason
    from ..evidence.leaks import without_prompt

    assert job.prompt is not None
    said, ruled = _BEST_LAST.index(verdict.verdict), _BEST_LAST.index(sentence.status)
    if said > ruled and findings(text, facts).missing:
        return sentence
    mark = _BEST_LAST[min(said, ruled + 1)]
    why = reason(without_prompt(verdict.reason, job.prompt.text)[0]) if said <= ruled else sentence.reason
    default = "a model found it not borne out"
    return sentence.model_copy(update={"status": mark, "reason": "" if mark == "supported" else why or default})


def unchecked(inputs: Mapping[str, Any], error: Exception) -> Answer:
    """The answer that stands where the check failed."""
    answer: Answer = inputs["answer"]
    note = f"Not checked by a model, for it failed ({error}). The marks are those of the rules alone."
    return answer.model_copy(update={"verification": "failed", "notes": (*answer.notes, note)})


KIND = Kind(
    name="verify",
    version=1,
    run=verify,
    gives=Answer,
    takes={"answer": Answer},
    model=True,
    max_tokens=1500,
    instead=unchecked,
)


def with_verification(pipeline: Pipeline, tier: str = "cheap") -> Pipeline:
    """`pipeline` with a last stage that checks its answer, unless it has one of its own."""
    from ..prompts import Prompt
    from ..settings import PIPELINES

    if any(stage.kind.name == KIND.name for stage in pipeline.stages.values()):
        return pipeline
    name = "prompts/verify.md"
    prompt = Prompt(name, (PIPELINES / name).read_text(encoding="utf-8"))
    gives = f"verified_{pipeline.answer}"
    stage = Stage(
        KIND.name, KIND, gives, {"answer": Source(pipeline.answer)}, model=tier, prompt=prompt,
        sampling=Sampling(max_tokens=KIND.max_tokens),
    )  # fmt: skip
    table = f'[stage.{KIND.name}]\ntakes = {{ answer = "{pipeline.answer}" }}\ngives = "{gives}"\n'
    table += f'model = "{tier}"\nprompt = "{name}"\n'
    text = re.sub(r"^answer = .*$", f'answer = "{gives}"', pipeline.text, count=1, flags=re.MULTILINE)
    return pipeline._replace(
        answer=gives, stages={**pipeline.stages, stage.name: stage}, text=f"{text.rstrip()}\n\n{table}"
    )
