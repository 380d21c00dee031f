"""How well pages are read, and what the parser process costs. Run as `python -m bench.text`.

Prints the mean 4-gram F1 on html-article-benchmark, the snippets found and leaked on
html-trafilatura-eval, the outcomes and slowest files of html-awkward, and the CPU of
reading through the parser process over that of reading in process, as the median of
interleaved pairs: starting and ending the process is counted.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import resource
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.data import data
from research.web.reader import Reader
from research.web.reading import read_page

PAIRS = 9
Row = dict[str, Any]


def rows(name: str, index: str = "pages.jsonl") -> Iterator[tuple[Row, Path]]:
    """Each row of a data set's index, and the folder that its paths start from."""
    folder = data(name) / "dev"
    for line in (folder / index).read_text(encoding="utf-8").splitlines():
        yield json.loads(line), folder


def body(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.name.endswith(".html.gz") else content


def grams(text: str) -> Counter[tuple[str, ...]]:
    """The 4-grams of the words of `text`; a shorter text is one gram."""
    words = re.findall(r"\w+", text)
    return Counter(tuple(words[start : start + 4]) for start in range(max(1, len(words) - 3))) if words else Counter()


def f1(found: str, wanted: str) -> float:
    ours, theirs = grams(found), grams(wanted)
    return 2 * (ours & theirs).total() / (ours.total() + theirs.total())


def articles() -> None:
    scores = [
        f1(read_page(body(folder / row["html_path"]), url=row["url"]).text, row["main_text"])
        for row, folder in rows("html-article-benchmark")
    ]
    print(f"html-article-benchmark: mean 4-gram F1 {statistics.mean(scores):.4f} over {len(scores)} pages")


def snippets() -> None:
    counts: Counter[str] = Counter()
    for row, folder in rows("html-trafilatura-eval"):
        text = " ".join(read_page(body(folder / row["html_path"]), url=row["url"]).text.split())
        for kind in ("must_have", "must_not"):
            counts[kind] += len(row[kind])
            counts[f"{kind} found"] += sum(" ".join(snippet.split()) in text for snippet in row[kind])
    print(
        f"html-trafilatura-eval: {counts['must_have found']} of {counts['must_have']} must-have snippets, "
        f"{counts['must_not found']} of {counts['must_not']} must-not ones"
    )


def awkward() -> None:
    taken: list[tuple[float, str]] = []
    outcomes: Counter[str] = Counter()
    for row, folder in rows("html-awkward", "manifest.jsonl"):
        start = time.perf_counter()
        outcomes[read_page(body(folder / row["path"]), url="https://site.example/").outcome] += 1
        taken.append((time.perf_counter() - start, row["path"]))
    print("html-awkward:", ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    print("html-awkward, slowest:", ", ".join(f"{path} {seconds:.2f} s" for seconds, path in sorted(taken)[-3:][::-1]))


def cpu() -> float:
    """Seconds of processor time of this process and of those it has waited for."""
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def in_process(pages: list[tuple[bytes, str]]) -> float:
    start = cpu()
    for content, url in pages:
        read_page(content, url=url)
    return cpu() - start


def through_reader(pages: list[tuple[bytes, str]]) -> float:
    async def read_all() -> None:
        async with Reader() as reader:
            for content, url in pages:
                await reader.read(content, url=url)

    start = cpu()
    asyncio.run(read_all())
    return cpu() - start


def process_cost() -> None:
    pages = [(body(folder / row["html_path"]), row["url"]) for row, folder in rows("html-article-benchmark")][::2]
    in_process(pages[:10])  # imports
    ratios = []
    for pair in range(PAIRS):
        first, second = (in_process, through_reader) if pair % 2 else (through_reader, in_process)
        cost = {first: first(pages), second: second(pages)}
        ratios.append(cost[through_reader] / cost[in_process])
    print(
        f"CPU through the parser process / in process: median {statistics.median(ratios):.3f} "
        f"({min(ratios):.3f} to {max(ratios):.3f}, {PAIRS} interleaved pairs of {len(pages)} pages)"
    )


if __name__ == "__main__":
    articles()
    snippets()
    awkward()
    process_cost()
