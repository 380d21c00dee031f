"""Numbers and dates in their different spellings."""

from __future__ import annotations

import time

import pytest

from research.evidence.quantities import quantities


def said(claim: str, source: str) -> bool:
    """Whether all numbers and dates of `claim` are borne out by `source`."""
    ours, theirs = quantities(claim), quantities(source)
    assert ours.numbers or ours.dates
    numbers = all(any(number.says(other) for other in theirs.numbers) for number in ours.numbers)
    return numbers and all(any(date.says(other) for other in theirs.dates) for date in ours.dates)


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("3.0 percent", "3 %"),
        ("3 per cent", "3.0%"),
        ("1.2 million people", "1,200,000 people"),
        ("1.2 million people", "1,234,567 people"),
        ("1,200,000", "1.2 million"),
        ("about 3 %", "2.96 percent"),
        ("3 %", "2.96 percent"),
        ("about 1,200 people", "1,234 people"),
        ("$5 billion", "US$5bn"),
        ("$5 billion", "5 billion dollars"),
        ("3.1 percent", "| June | 3.1 |"),
        ("five percent", "5%"),
        ("3 lines", "three lines"),
        ("3,5 %", "3.5 %"),
        ("5 June 2023", "2023-06-05"),
        ("June 5, 2023", "5 June 2023"),
        ("June 2023", "on June 5th, 2023"),
        ("in 2023", "on 05/06/2023"),
        ("6 May 2023", "05/06/2023"),
        ("5. Juni 2023", "June 5, 2023"),
        ("2023年6月5日", "June 5, 2023"),
        ("1400万人", "14 million"),
        ("-5 degrees", "−5 degrees"),
        ("the 21st", "21"),
    ],
)
def test_the_same(claim: str, source: str) -> None:
    assert said(claim, source)


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("3.1 percent", "3.2 percent"),
        ("3.15 percent", "3.1 percent"),
        ("3 percent", "3.4 percent"),
        ("30 percent", "3.0 percent"),
        ("5 percent", "$5"),
        ("5 percent", "5 percentage points"),
        ("1.2 million", "1.2 billion"),
        ("1,200 people", "1,234 people"),
        ("about 2 people", "3 people"),
        ("in 2023", "in 2024"),
        ("June 5, 2023", "June 2023"),
        ("June 2023", "July 2023"),
        ("5 degrees", "-5 degrees"),
        ("2,023 people", "in 2023"),
    ],
)
def test_not_the_same(claim: str, source: str) -> None:
    assert not said(claim, source)


def test_time_is_linear() -> None:
    start = time.process_time()
    for unit in ("1", "1,", "1 ", "may ", "$", "2 million ", "1.", " "):
        quantities(unit * (30_000 // len(unit)))
    assert time.process_time() - start < 10
