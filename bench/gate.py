"""What is answered and what is refused: `python -m bench.gate [--limit N] [-p small --cheap MODEL --capable MODEL]`.

Questions of qa-nomiracl and qa-clapnq whose passages people judged to answer them, and
questions whose passages don't: each through a whole shipped pipeline, with its own
passages as the web. Printed are the shares answered of both, which no threshold can set
apart from each other; a refusal counts, an error is listed. Without models the built-in
one answers, whose thresholds were chosen on these sets. A slow model is asked with
--keep FOLDER, where a measurement that was stopped goes on, and --minutes, after which no
further question begins: how many did is told.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from bench.data import data
from research.app import App, Dates, load_pipeline
from research.errors import ResearchError
from research.records import Ending, Hit, Outcome, Page, Question
from research.settings import Settings
from research.tiers import Tiers

Row = dict[str, Any]
SETS = ("qa-nomiracl", "qa-clapnq")
DATES = Dates("2025-03-01", "2025-03-01")
SNIPPET = 300  # characters of a passage that a search result shows


class Passages:
    """The web of one question: its own passages, in their order."""

    name, date = "passages", "2025-03-01"

    def __init__(self, row: Row) -> None:
        self.source = f"passages of {row['id']}"
        self.docs = {f"https://passages.example/{place}": doc for place, doc in enumerate(row["docs"], start=1)}

    async def search(self, query: str, top: int) -> list[Hit]:
        return [
            Hit(url=url, title=doc["title"], snippet=doc["text"][:SNIPPET], rank=rank)
            for rank, (url, doc) in enumerate(self.docs.items(), start=1)
        ]

    async def fetch(self, url: str) -> Page:
        doc = self.docs[url]
        return Page(url=url, outcome=Outcome.OK, title=doc["title"], site="Wikipedia", text=doc["text"])


@dataclass(frozen=True)
class Result:
    group: str
    answerable: bool
    ending: Ending | None  # None: it failed, as `error` says
    error: str = ""


def drawn(name: str, limit: int, seed: int) -> list[Row]:
    """The rows of a set; with a limit so many, half of them answerable, by seed."""
    path = data(name) / "dev" / "questions.jsonl"
    rows: list[Row] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if not limit:
        return rows
    halves = ([row for row in rows if row["meta"]["answerable"] is wanted] for wanted in (True, False))
    return in_turn(random.Random(seed).sample(half, min(len(half), limit // 2)) for half in halves)


def in_turn(lists: Iterable[Sequence[Any]]) -> list[Any]:
    """One of each list, then the next of each: so few of all are a fair part of them."""
    return [item for turn in zip_longest(*lists) for item in turn if item is not None]


async def asked(app: App, pipeline: Any, name: str, row: Row) -> Result:
    group, answerable = f"{name} {row['meta'].get('lang', 'en')}", row["meta"]["answerable"]
    try:
        done = await app.ask(Question(text=row["question"]), pipeline, Passages(row), DATES)
    except ResearchError as error:
        return Result(group, answerable, None, f"{row['id']}: {error}")
    return Result(group, answerable, done.answer.ending)


def table(results: Sequence[Result]) -> Iterator[str]:
    yield f"{'set and language':<18}  {'answerable: answered':<28}  {'unanswerable: answered':<28}"
    groups = dict.fromkeys(one.group for one in results)
    for name in SETS:
        own = [group for group in groups if group.startswith(name)]
        if len(own) > 1:
            yield _line(f"{name} all", [one for one in results if one.group in own])
        yield from (_line(group, [one for one in results if one.group == group]) for group in own)
    failed = [one.error for one in results if one.ending is None]
    yield f"{len(failed)} of {len(results)} failed" + "".join(f"\n  {error[:200]}" for error in failed[:20])


def _line(name: str, results: Sequence[Result]) -> str:
    return f"{name:<18}  {_share(results, True):<28}  {_share(results, False):<28}"


def _share(results: Sequence[Result], answerable: bool) -> str:
    """Answered and partly answered, of those that came to an ending."""
    rows = [one for one in results if one.answerable is answerable and one.ending is not None]
    wholly = sum(one.ending is Ending.ANSWERED for one in rows)
    answered = wholly + sum(one.ending is Ending.PARTLY for one in rows)
    return f"{answered / len(rows):.3f} ({answered} of {len(rows)}, {answered - wholly} partly)" if rows else "–"


async def measure(options: argparse.Namespace) -> list[Result]:
    pipeline = load_pipeline(options.pipeline)
    flags = {"cheap": options.cheap, "capable": options.capable}
    until = time.monotonic() + options.minutes * 60 if options.minutes else math.inf
    with tempfile.TemporaryDirectory() as scratch:
        tiers = Tiers(Settings.read(flags))
        app = App(Settings(options.keep or Path(scratch)), tiers.models_of(pipeline), price=tiers.prices.price)
        print(f"{options.pipeline}, with {', '.join(sorted({model.name for model in app.models.values()}))}")
        slots = asyncio.Semaphore(options.parallel)

        async def one(name: str, row: Row) -> Result | None:
            async with slots:
                return await asked(app, pipeline, name, row) if time.monotonic() < until else None

        rows = in_turn([(name, row) for row in drawn(name, options.limit, options.seed)] for name in SETS)
        try:
            begun = [one for one in await asyncio.gather(*(one(*pair) for pair in rows)) if one is not None]
            print(f"{len(begun)} of {len(rows)} questions")
            return begun
        finally:
            await tiers.aclose()
            app.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--limit", type=int, default=0, help="questions of each set, half of them answerable (default: all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--pipeline", "-p", default="fixed")
    parser.add_argument("--cheap", default="builtin:extractive", metavar="PROVIDER:MODEL")
    parser.add_argument("--capable", default="builtin:extractive", metavar="PROVIDER:MODEL")
    parser.add_argument("--parallel", type=int, default=4, help="questions at once")
    parser.add_argument("--minutes", type=float, help="begin no further question after so long")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the store there, and go on from it")
    options = parser.parse_args()
    started = time.perf_counter()
    print("\n".join(table(asyncio.run(measure(options)))))
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
