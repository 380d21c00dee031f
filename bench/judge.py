"""How far the judge agrees with people: `python -m bench.judge [--capable PROVIDER:MODEL] [--limit N]`.

*Pairs* (judge-ragchecker-pairs): two answers to a question with a person's preference from −2 to 2; ties of the person
are left out of the agreement, and told apart. *Ratings* (judge-alce-utility): a person's marks from 1 to 5 for the
answers of several systems to one question; of each two with different marks, the judge should prefer the higher.
Each pair is judged in both orders. Without `--capable`, or with --scripted, two scripted judges stand in, which say
how much a guess gets and whether the counting is right: one prefers the longer answer, one always the first.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import random
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.data import data
from research.errors import ResearchError
from research.judging import Judge, Pair, Verdict
from research.ledger import NANO
from research.llm.messages import Request
from research.llm.scripted import ScriptedModel
from research.report.statistics import bootstrap
from research.settings import Settings
from research.store import Store
from research.tiers import Tiers

AT_ONCE = 4
_MARKERS = re.compile(r"\[\d+\]")


@dataclass(frozen=True)
class Labelled:
    """A pair with what a person prefers: −1 the first, 1 the second, 0 neither."""

    pair: Pair
    preferred: int


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def pairs() -> Iterator[Labelled]:
    """The labels tell by how much the second model is better: words of the reference answer stand in the answer with
    the better label twice as often as in the other."""
    for row in lines(data("judge-ragchecker-pairs") / "dev" / "pairs.jsonl"):
        label = float(row["overall_label"])
        answers = (_MARKERS.sub("", row[name]["response"]) for name in ("model1", "model2"))
        yield Labelled(Pair(row["query"], [row["gt_answer"]], *answers), (label > 0) - (label < 0))


def ratings() -> Iterator[Labelled]:
    questions: dict[str, list[dict[str, Any]]] = {}
    for row in lines(data("judge-alce-utility") / "dev" / "ratings.jsonl"):
        questions.setdefault(row["qid"], []).append(row)
    for rows in questions.values():
        for first, second in itertools.combinations(rows, 2):
            apart = second["utility_score"] - first["utility_score"]
            if apart:
                answers = (_MARKERS.sub("", row["output"]) for row in (first, second))
                yield Labelled(Pair(first["question"], [], *answers), (apart > 0) - (apart < 0))


def longer(request: Request) -> dict[str, str]:
    first, second = len(request.given["first"]), len(request.given["second"])
    return {"reason": "it is longer", "verdict": "first better" if first > second else "second better"}


def always_first(_: Request) -> dict[str, str]:
    return {"reason": "it stands first", "verdict": "first better"}


async def measure(judge: Judge, labelled: Sequence[Labelled], until: float) -> list[tuple[Labelled, Verdict]]:
    """What the judge says of all pairs that begin before `until` (of the monotonic clock)."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(item: Labelled) -> tuple[Labelled, Verdict] | None:
        async with slots:
            if time.monotonic() > until:
                return None
            try:
                return item, await judge.compare(item.pair)
            except ResearchError as error:
                print(f"  not judged: {error}")
                return None

    return [found for found in await asyncio.gather(*map(one, labelled)) if found is not None]


def tell(name: str, found: Sequence[tuple[Labelled, Verdict]]) -> None:
    decided = [(item, verdict) for item, verdict in found if item.preferred]
    spoken = [(item, verdict) for item, verdict in decided if verdict.preference]
    agreed = bootstrap([float(item.preferred == verdict.preference) for item, verdict in spoken])
    swayed = sum(verdict.swayed for _, verdict in found)
    usd = sum(verdict.usd or 0 for _, verdict in found) / NANO
    print(f"  {name}: {len(found)} pairs, a person prefers one in {len(decided)}")
    if agreed is not None:
        ends = "" if agreed.low is None or agreed.high is None else f" ({agreed.low:.1%} to {agreed.high:.1%})"
        print(f"    agrees in {agreed.mean:.1%}{ends} of the {len(spoken)} in which it prefers one too")
    equal = f"equal to the judge: {len(decided) - len(spoken)} of {len(decided)}"
    same = sum(_sign(verdict.forward) == _sign(verdict.backward) for _, verdict in found)
    print(f"    {equal}; both orders say the same in {same}; the order decided in {swayed}; ${usd:.4f} as if cold")


def _sign(weight: int) -> int:
    return (weight > 0) - (weight < 0)


async def run(options: argparse.Namespace) -> None:
    sets = {"pairs": [*pairs()], "ratings": [*ratings()]}
    if options.limit:
        sets = {
            name: random.Random(options.seed).sample(rows, min(options.limit, len(rows))) for name, rows in sets.items()
        }
    settings = Settings.read({"capable": options.capable} if options.capable else {})
    tiers = Tiers(settings, print, os.environ)
    model = None if options.scripted or not options.capable else tiers.models(["capable"])["capable"]
    if model is None:
        print("No model is given (--capable PROVIDER:MODEL), so nothing is said of any real judge; scripted ones:")
        judges = {
            "the longer answer": ScriptedModel(longer, "scripted:longer"),
            "always the first": ScriptedModel(always_first, "scripted:first"),
        }
    else:
        judges = {model.name: model}  # type: ignore[dict-item]
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(settings.store if model is not None else Path(scratch))
        for name, one in judges.items():
            print(name)
            for which, rows in sets.items():
                until = time.monotonic() + options.minutes * 60 if options.minutes else math.inf
                tell(which, await measure(Judge(one, store, tiers.prices.price), rows, until))
        store.close()
    await tiers.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--capable", help="the model that judges, PROVIDER:MODEL")
    parser.add_argument("--scripted", action="store_true", help="scripted judges only")
    parser.add_argument("--limit", type=int, help="so many pairs of each set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="of each set, begin no further pair after so long")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
