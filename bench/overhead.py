"""What executor and store cost when all stages are instant: `python -m bench.overhead [--questions N]`.

Prints milliseconds of our own processor time for each question of a run of the fixed
pipeline: 3 queries, 30 hits, 4 pages of 4,000 characters, 12 facts. Everything but the
work of the stages themselves is real.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import tempfile
from pathlib import Path
from typing import Any

from research.app import App, Dates
from research.llm.scripted import ScriptedModel
from research.loading import load
from research.pipeline import Pipeline
from research.records import Answer, Citation, Ending, Fact, Grade, Hit, Outcome, Page, Plan, Question
from research.settings import PIPELINES, Settings
from research.stages import KINDS

TEXT = "The index rose 3.0 percent over the 12 months to January, as it had in other places. " * 47
DATES = Dates("2025-03-01", "2025-03-01")


class InstantWeb:
    name, source, date = "instant", "instant", "2025-03-01"


async def plan(job: Any, question: Question, as_of: str) -> Plan:
    word = question.text.split()[-1]
    return Plan(needs_search=True, queries=(f"{word} a", f"{word} b", f"{word} c"))


async def search(job: Any, query: str, web_date: str) -> list[Hit]:
    host = query.replace(" ", "-")
    return [Hit(url=f"https://{host}.example/{n}", title=f"Page {n}", snippet=TEXT[:200], rank=n) for n in range(10)]


def joined(results: Any, params: Any) -> list[Hit]:
    return [hit for hits in results for hit in hits]


async def rerank(job: Any, question: Question, hits: list[Hit]) -> list[Hit]:
    return hits[::-1]


async def fetch(job: Any, url: str, web_date: str) -> Page:
    return Page(url=url, outcome=Outcome.OK, title=url, site="site", text=f"{url} {TEXT}")


async def extract(job: Any, question: Question, page: Page) -> list[Fact]:
    quotes = [(at, page.text[at : at + 80]) for at in (100, 400, 900)]
    return [
        Fact(claim=quote, quote=quote, start=at, end=at + 80, grade=Grade.EXACT, url=page.url, page="p" * 64)
        for at, quote in quotes
    ]


async def synthesize(job: Any, question: Question, facts: list[Fact], **_: Any) -> Answer:
    citations = tuple(Citation(number=n, start=0, end=80, fact=fact) for n, fact in enumerate(facts[:4], start=1))
    return Answer(text=TEXT[:400], ending=Ending.ANSWERED, citations=citations)


INSTANT = {stage.__name__: stage for stage in (plan, search, rerank, fetch, extract, synthesize)}


def instant() -> Pipeline:
    """The fixed pipeline, with the work taken out of its stages."""
    kinds = {name: kind._replace(run=INSTANT.get(name, kind.run)) for name, kind in KINDS.items()}
    kinds["search"] = kinds["search"]._replace(join=joined)
    return load(PIPELINES / "fixed.toml", kinds)


async def run(questions: int, home: Path) -> float:
    model = ScriptedModel([])
    app = App(Settings(home), {"cheap": model, "capable": model})
    pipeline, web = instant(), InstantWeb()
    await app.ask(Question(text="warm up"), pipeline, web, DATES)  # type: ignore[arg-type]
    began = resource.getrusage(resource.RUSAGE_SELF)
    for number in range(questions):
        asked = await app.ask(Question(text=f"what of number{number}"), pipeline, web, DATES)  # type: ignore[arg-type]
        assert len(asked.answer.citations) == 4
    ended = resource.getrusage(resource.RUSAGE_SELF)
    app.close()
    return (ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime) / questions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--times", type=int, default=9)
    arguments = parser.parse_args()
    each = []
    for _ in range(arguments.times):
        with tempfile.TemporaryDirectory() as home:
            each.append(asyncio.run(run(arguments.questions, Path(home))))
    print(f"{arguments.questions:,} questions: {statistics.median(each) * 1000:.1f} ms each (reach ≤ 20)")


if __name__ == "__main__":
    main()
