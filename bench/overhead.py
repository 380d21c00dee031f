"""What executor and store cost when all stages are instant: `python -m bench.overhead [--questions N]`.

Prints milliseconds of our own processor time for each question of a run through the fixed
pipeline's shape: 3 queries, 30 hits, 4 pages.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import resource
import statistics
import tempfile
from pathlib import Path
from typing import Any

from research.app import App, Dates, load_pipeline
from research.llm.scripted import ScriptedModel
from research.llm.messages import Request
from research.records import Hit, Outcome, Page, Question
from research.settings import Settings

SENTENCE = "The index of item {n} rose 3.0 percent over the 12 months to January."
TEXT = " ".join(f"{SENTENCE.format(n=n)} It fell in other places by as much." for n in range(40))


class InstantWeb:
    """Ten hits for every query, and a page of some 4,000 characters for every URL."""

    name, source, date = "instant", "instant", "2025-03-01"

    async def search(self, query: str, top: int) -> list[Hit]:
        word = query.split()[-1]
        return [Hit(url=f"https://{word}.example/{n}", title=f"Page {n}", snippet=query, rank=n) for n in range(1, 11)]

    async def fetch(self, url: str) -> Page:
        return Page(url=url, outcome=Outcome.OK, title=url, site="site", text=f"{url} {TEXT}")


def reply(request: Request) -> Any:
    if request.purpose == "plan":
        words = request.given["question"].split()
        return {"needs_search": True, "queries": [f"{words[-1]} query {n}{words[-1]}" for n in "abc"], "reason": ""}
    if request.purpose == "rerank":
        return {"ranking": [3, 1, 4, 2]}
    if request.purpose == "extract":
        return {"facts": [{"claim": f"It rose ({n}).", "quote": SENTENCE.format(n=n)} for n in range(3)]}
    return "The index of item 0 rose 3.0 percent over the 12 months to January [1]. So did others [2, 4]."


async def run(questions: int, home: Path) -> float:
    model = ScriptedModel(reply)
    app = App(Settings(home), {"cheap": model, "capable": model})
    pipeline, web, dates = load_pipeline("fixed"), InstantWeb(), Dates("2025-03-01", "2025-03-01")
    await app.ask(Question(text="warm up"), pipeline, web, dates)
    began = resource.getrusage(resource.RUSAGE_SELF)
    for number in range(questions):
        asked = await app.ask(Question(text=f"what is the index of number{number}"), pipeline, web, dates)
        assert len(asked.answer.citations) == 3, asked.answer
        model.requests.clear()
    ended = resource.getrusage(resource.RUSAGE_SELF)
    app.close()
    return (ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime) / questions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    logging.disable()
    each = []
    for _ in range(arguments.times):
        with tempfile.TemporaryDirectory() as home:
            each.append(asyncio.run(run(arguments.questions, Path(home))))
    print(f"{arguments.questions:,} questions: {statistics.median(each) * 1000:.1f} ms each (reach ≤ 20)")


if __name__ == "__main__":
    main()
