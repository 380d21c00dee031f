"""How many gold pages the local index finds: `python -m bench.recall`.

Builds the index of qa-freshqa-wiki's articles in a temporary folder and asks it the
set's questions. A question counts the share of its gold pages among the first k hits.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.data import data
from research.records import Page
from research.web.index import LocalWeb, build
from research.web.urls import canonical

DEPTHS = (1, 5, 10)


class NoReader:
    """The articles are text already: there is nothing to read."""

    async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page:
        raise AssertionError(f"{url} was to be read")


@dataclass(frozen=True)
class Recall:
    questions: int
    documents: int
    at: dict[int, float]  # depth → mean share of gold pages found
    build_seconds: float
    search_ms: list[float]


async def measure(folder: Path, scratch: Path) -> Recall:
    """`folder` is the data set's; the index is made in `scratch`."""
    started = time.perf_counter()
    report = await build(scratch / "index.db", folder / "shared" / "corpus.jsonl", NoReader())
    built = time.perf_counter() - started
    rows = [json.loads(line) for line in (folder / "dev" / "questions.jsonl").read_text("utf-8").splitlines()]
    shares: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    times = []
    with LocalWeb(scratch / "index.db", "freshqa") as web:
        for row in rows:
            started = time.perf_counter()
            hits = await web.search(row["question"], max(DEPTHS))
            times.append(1_000 * (time.perf_counter() - started))
            gold = {canonical(url) for url in row["gold_urls"]}
            for depth in DEPTHS:
                shares[depth].append(len(gold & {hit.url for hit in hits[:depth]}) / len(gold))
    means = {depth: statistics.fmean(values) for depth, values in shares.items()}
    return Recall(len(rows), report.added, means, built, times)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        found = asyncio.run(measure(data("qa-freshqa-wiki"), Path(scratch)))
    print(f"{found.questions} questions, {found.documents} pages, indexed in {found.build_seconds:.1f} s")
    for depth, share in found.at.items():
        print(f"recall@{depth:<3} {share:.3f}")
    print(f"search median {statistics.median(found.search_ms):.1f} ms, slowest {max(found.search_ms):.1f} ms")


if __name__ == "__main__":
    main()
