"""What the built-in extractive model achieves: `python -m bench.extractive [--limit N] [--seed S]`.

Three tables. *End to end*, on qa-freshqa-wiki's questions about what does not change fast
and whose premise holds, over a local index of its articles: plan, search, rerank, the best
four pages narrowed, extract, synthesize. *Gate*: the share of answerable and of
unanswerable questions that are answered, with the passages that come with them. *Sample
web*: the same end to end over the bundled pages. The order of the hits on rank-noveleval
stands beside the engine's own.

Its thresholds were chosen on these same questions, so that all figures but one are of
development: nothing was ever chosen by qa-hotpotqa (with its gold passages, and with the
others alone), whose questions take two passages to answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bench.data import data
from research.llm.extractive import ExtractiveModel
from research.llm.messages import Message, Request
from research.records import Outcome, Page
from research.relevance import narrow
from research.sentences import words
from research.web.index import LocalWeb, build
from research.web.merging import merge
from research.web.reading import read_page
from research.web.urls import canonical

Row = dict[str, Any]
T = TypeVar("T")
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
PAGES = 4  # that are read
SHARE = 12_000  # characters of each
GATES = ("qa-nomiracl", "qa-clapnq", "qa-rgb", "qa-hotpotqa")


class Direct:
    """Reads pages in this process."""

    async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page:
        return read_page(body, url=url, content_type=content_type, status=status)


@dataclass
class Result:
    """One question's way through the pipeline."""

    answer: str
    facts: list[Row]
    cited: list[Row] = field(default_factory=list)

    @property
    def answered(self) -> bool:
        return not self.answer.startswith("NOT ANSWERED")


async def told(purpose: str, **given: object) -> str:
    request = Request("", (Message("user"),), max_tokens=2_000, purpose=purpose, given=given)
    return (await ExtractiveModel().complete(request)).text


async def from_pages(question: str, pages: Sequence[Page]) -> Result:
    """Extraction from each page, and the answer made of it."""
    facts: list[Row] = []
    for source, page in enumerate(pages, start=1):
        text = narrow(page.text, question, SHARE).text
        given = {"title": page.title, "site": page.site, "date": page.date, "text": text}
        for fact in json.loads(await told("extract", question=question, **given))["facts"]:
            assert fact["quote"] in text
            facts.append({"id": len(facts) + 1, "source": source, **given, **fact, "url": page.url})
    result = Result(await told("synthesize", question=question, as_of="", facts=facts), facts)
    result.cited = [fact for fact in facts if f"[{fact['id']}]" in result.answer]
    return result


async def from_web(question: str, web: LocalWeb) -> Result:
    queries = json.loads(await told("plan", question=question, as_of=""))["queries"]
    hits = merge([await web.search(query, 10) for query in queries])
    rows = [{"id": hit.rank, "title": hit.title, "snippet": hit.snippet, "url": hit.url} for hit in hits]
    ranking = json.loads(await told("rerank", question=question, hits=rows, keep=PAGES))["ranking"]
    pages: list[Page] = []
    for number in ranking:
        page = await web.fetch(hits[number - 1].url)
        if page.outcome is Outcome.OK and len(pages) < PAGES:
            pages.append(page)
    return await from_pages(question, pages)


def holds(text: str, answers: Iterable[str]) -> bool:
    """Whether a reference answer stands in `text`, word for word in normal form."""
    plain = f" {' '.join(words(text))} "
    return any(f" {' '.join(words(answer))} " in plain for answer in answers if words(answer))


def share(rows: Sequence[Any], is_so: Callable[[Any], bool]) -> str:
    count = sum(map(is_so, rows))
    return f"{count / len(rows):.3f} ({count} of {len(rows)})" if rows else "–"


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def drawn(rows: list[T], options: argparse.Namespace) -> list[T]:
    """`--limit` of them, by `--seed`; all where there is no limit."""
    if options.limit and len(rows) > options.limit:
        return random.Random(options.seed).sample(rows, options.limit)
    return rows


async def end_to_end(options: argparse.Namespace, scratch: Path) -> None:
    folder = data("qa-freshqa-wiki")
    await build(scratch / "wiki.db", folder / "shared" / "corpus.jsonl", Direct())
    asked = [row for row in lines(folder / "dev" / "questions.jsonl") if row["meta"]["fact_type"] != "fast-changing"]
    asked = drawn(asked, options)
    with LocalWeb(scratch / "wiki.db", "freshqa") as web:
        results = [(row, await from_web(row["question"], web)) for row in asked]
    true = [(row, result) for row, result in results if row["meta"]["false_premise"] == "FALSE"]
    false = [(row, result) for row, result in results if row["meta"]["false_premise"] == "TRUE"]
    print("end to end, qa-freshqa-wiki (never- and slow-changing)")
    print("  answered                                 ", share(true, lambda pair: pair[1].answered))
    print("  answer holds a reference answer          ", share(true, lambda pair: right(*pair)))
    print("  cited quotes hold a reference answer     ", share(true, lambda pair: quoted(pair[0], pair[1].cited)))
    print("  some extracted quote holds one           ", share(true, lambda pair: quoted(pair[0], pair[1].facts)))
    print("  a citation names a gold page             ", share(true, lambda pair: gold(*pair)))
    print("  false premise: answered nevertheless     ", share(false, lambda pair: pair[1].answered))


def right(row: Row, result: Result) -> bool:
    return result.answered and holds(result.answer, row["answers"])


def quoted(row: Row, facts: Sequence[Row]) -> bool:
    return holds("\n".join(fact["quote"] for fact in facts), row["answers"])


def gold(row: Row, result: Result) -> bool:
    wanted = {canonical(url) for url in row["gold_urls"]}
    return any(canonical(fact["url"]) in wanted for fact in result.cited)


def gate_rows(name: str) -> list[tuple[str, bool, Row]]:
    """Rows as (group, answerable, row). Where the set marks no row as unanswerable, each row
    counts twice: with documents that answer, and with the others alone."""
    rows = lines(data(name) / "dev" / "questions.jsonl")
    if "answerable" in rows[0]["meta"]:
        return [(f"{name} {row['meta'].get('lang', 'en')}", row["meta"]["answerable"], row) for row in rows]
    found = []
    for row in rows:
        group = f"{name} {row['meta'].get('lang', 'en')}"
        good, others = parted(row)
        if good:
            found.append((group, True, {**row, "docs": good + others[:2]}))
        found.append((group, False, {**row, "docs": others[:8]}))
    return found


def parted(row: Row) -> tuple[list[Row], list[Row]]:
    """At most two documents of a row that answer it, and those that don't."""
    if "kind" in row["docs"][0]:
        good = [doc for doc in row["docs"] if doc["kind"] == "positive"]
        return good[:2], [doc for doc in row["docs"] if doc["kind"] == "noise"][:4]
    wanted = set(row["gold_urls"])
    return [doc for doc in row["docs"] if doc["url"] in wanted][:2], [
        doc for doc in row["docs"] if doc["url"] not in wanted
    ]


async def gate(options: argparse.Namespace) -> None:
    print("gate: share answered of the answerable, and of the unanswerable")
    for name in GATES:
        groups: dict[str, dict[bool, list[bool]]] = {}
        rows = gate_rows(name)
        for group, answerable, row in drawn(rows, options):
            pages = [
                Page(url=doc["url"], outcome=Outcome.OK, title=doc["title"], text=doc["text"]) for doc in row["docs"]
            ]
            answered = (await from_pages(row["question"], pages)).answered
            for key in {group, group if group.endswith(" en") else f"{name} not English"}:
                groups.setdefault(key, {True: [], False: []})[answerable].append(answered)
        for key, marks in groups.items():
            print(f"  {key:24} {share(marks[True], bool):24} {share(marks[False], bool)}")


async def sample_web(scratch: Path) -> None:
    await build(scratch / "sample.db", FIXTURES / "web" / "pages.jsonl", Direct())
    with LocalWeb(scratch / "sample.db", "sample web") as web:
        good = [(row, await from_web(row["question"], web)) for row in lines(FIXTURES / "questions.jsonl")]
        bad = [(row, await from_web(row["question"], web)) for row in lines(FIXTURES / "unanswerable.jsonl")]
    print("sample web")
    print("  answered                                 ", share(good, lambda pair: pair[1].answered))
    print("  answer holds a reference answer          ", share(good, lambda pair: right(*pair)))
    print("  unanswerable: ends as not answered       ", share(bad, lambda pair: not pair[1].answered))
    for row, result in [pair for pair in good if not right(*pair)] + [pair for pair in bad if pair[1].answered]:
        print(f"    {row['question']}\n      {result.answer[:240]}")


async def ranking() -> None:
    """nDCG@10 with gains 2^grade - 1."""
    scores: dict[str, list[float]] = {"engine": [], "built-in": []}
    for row in lines(data("rank-noveleval") / "dev" / "questions.jsonl"):
        docs = sorted(row["docs"], key=lambda doc: doc["google_rank"])
        hits = [{"id": n, "title": doc["title"], "snippet": doc["text"], "url": ""} for n, doc in enumerate(docs)]
        order = json.loads(await told("rerank", question=row["question"], hits=hits, keep=10))["ranking"]
        grades = [doc["grade"] for doc in docs]
        best = gain(sorted(grades, reverse=True)) or 1.0
        scores["engine"].append(gain(grades) / best)
        scores["built-in"].append(gain([grades[number] for number in order]) / best)
    means = ", ".join(f"{name} {sum(found) / len(found):.3f}" for name, found in scores.items())
    print(f"ranking, rank-noveleval, nDCG@10: {means}")


def gain(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades[:10]))


async def measure(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        if "fresh" in options.only:
            await end_to_end(options, Path(scratch))
        if "gate" in options.only:
            await gate(options)
        if "sample" in options.only:
            await sample_web(Path(scratch))
        if "rank" in options.only:
            await ranking()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=0, help="questions of each set (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--only", nargs="*", default=["fresh", "gate", "sample", "rank"], help="fresh gate sample rank")
    started = time.perf_counter()
    asyncio.run(measure(parser.parse_args()))
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
