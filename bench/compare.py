"""What comparisons claim and what they cost to make: `python -m bench.compare [--repetitions N] [--rows N]`.

*Claims*: simulated comparisons without any true difference, and how many of their reports claim one (5 % at most is
what the tests promise); the same with differences of stated size, beside the power worked out by hand. *Time*: CPU
seconds for figures and HTML of a report over so many questions and four pipelines, and its size.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Iterator, Sequence

from research.ledger import Total
from research.records import Answer, Citation, Ending, Fact, Grade, Sentence
from research.report import Report, Setup, Trial
from research.report.figures import Figures
from research.report.gathering import Tokens, Took
from research.report.rendering import rendered

PAIRS = ((0.30, 0.05), (0.20, 0.05), (0.15, 0.05))  # shares of questions in which only one of two is right
TEXT = " ".join(f"The tower number {n} of this answer is {n}61 metres tall, they say [1]." for n in range(12))


def took(usd: float, seconds: float) -> Took:
    nano = round(usd * 1e9)
    return Took(nano, nano, seconds, Total(usd=nano), {"capable": Tokens("made:up", 1, 1000, 0, 0, 100)}, ())


def trial(
    question: str, pipeline: str, right: float, usd: float = 0.01, seconds: float = 1.0, **other: object
) -> Trial:
    given = {"text": question, "ending": "answered", "scores": {"right": right}, "took": took(usd, seconds), **other}
    return Trial(question, pipeline=pipeline, **{"answer": Answer(text="It is.", ending=Ending.ANSWERED), **given})  # type: ignore[arg-type]


def alike(chance: random.Random, questions: int) -> Iterator[Trial]:
    """Two pipelines without a difference, three repeats each; some questions are easier than others for both."""
    for number in range(questions):
        easier = chance.gauss(0, 0.2)
        for name in ("a", "b"):
            for sample in range(3):
                usd, seconds = (math.exp(chance.gauss(0, 0.5)) for _ in range(2))
                right = float(chance.random() < min(1.0, max(0.0, 0.7 + easier)))
                yield trial(f"q{number}", name, right, 0.01 * usd, seconds, sample=sample)


def differing(chance: random.Random, questions: int, up: float, down: float) -> Iterator[Trial]:
    for number in range(questions):
        draw = chance.random()
        pair = (0, 1) if draw < up else (1, 0) if draw < up + down else (1, 1)
        yield from (trial(f"q{number}", name, right) for name, right in zip("ab", pair, strict=True))


def power(questions: int, up: float, down: float, comparisons: int = 3) -> float:
    """How often the exact test, for so many comparisons, comes to less than 5 %."""
    total = 0.0
    for d in range(questions + 1):
        for u in range(d + 1):
            tail = sum(math.comb(d, i) for i in range(min(u, d - u) + 1)) / 2**d
            if comparisons * min(1.0, 2 * tail) < 0.05:
                share = math.comb(d, u) * up**u * down ** (d - u)
                total += math.comb(questions, d) * share * (1 - up - down) ** (questions - d)
    return total


def claimed(trials: Sequence[Trial]) -> list[str]:
    return [one.metric for one in Figures.of(trials).differences if one.claimed]


def claims(repetitions: int, questions: int) -> None:
    chance = random.Random(1)
    false = sum(bool(claimed([*alike(chance, questions)])) for _ in range(repetitions))
    share = f"{false} of {repetitions} reports claim one ({false / repetitions:.1%})"
    print(f"no true difference, {questions} questions × 3 repeats: {share}")
    for up, down in PAIRS:
        found = sum("right" in claimed([*differing(chance, questions, up, down)]) for _ in range(repetitions))
        theory = power(questions, up, down)
        print(f"{up:.0%} only b right, {down:.0%} only a: found in {found / repetitions:.1%}, by hand {theory:.1%}")


def fact(number: int) -> Fact:
    quote = f"Tower {number} is {number}61 metres tall. " * 4
    address = f"https://towers.example/{number}"
    return Fact(claim="", quote=quote, start=0, end=len(quote), grade=Grade.EXACT, url=address, page="")


def large(rows: int) -> list[Trial]:
    chance = random.Random(2)
    facts = [fact(n) for n in range(6)]
    answer = Answer(
        text=TEXT,
        ending=Ending.ANSWERED,
        citations=tuple(Citation(number=n + 1, start=0, end=len(TEXT), fact=fact) for n, fact in enumerate(facts)),
        sentences=(Sentence(start=0, end=len(TEXT), status="supported"),),
    )
    return [
        trial(f"q{n}", name, float(chance.random() < 0.7), chance.random() / 100, chance.random() * 10, answer=answer)
        for n in range(rows)
        for name in ("fixed", "top-n", "snippets", "tool-use")
    ]


def times(rows: int) -> None:
    trials = large(rows)
    began = time.process_time()
    report = Report(Figures.of(trials), "2025-03-01", Setup())
    between = time.process_time()
    page = rendered(report, ".html")
    took_html = time.process_time() - between
    size = len(page.encode()) / 1e6
    print(f"{rows} questions × 4 pipelines: figures {between - began:.2f} s, HTML {took_html:.2f} s CPU, {size:.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--rows", type=int, nargs="*", default=[100, 400])
    options = parser.parse_args()
    claims(options.repetitions, options.questions)
    for rows in options.rows:
        times(rows)


if __name__ == "__main__":
    main()
