"""Values that differ for the same thing are shown; different things are left alone."""

from __future__ import annotations

import pytest

from research.evidence.differences import disagreements
from research.records import Fact, Grade


def fact(quote: str, site: str, date: str | None = None) -> Fact:
    return Fact(
        claim=quote, quote=quote, start=0, end=len(quote), grade=Grade.EXACT, url=f"https://{site}.example", page="p",
        site=site, date=date,
    )  # fmt: skip


def told(*quotes: str, dates: tuple[str | None, str | None] = (None, None)) -> list[str]:
    facts = [fact(quote, f"site{number}", dates[number % 2]) for number, quote in enumerate(quotes)]
    return [str(found) for found in disagreements(facts)]


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        (
            "The US inflation rate was 3.0 percent in January 2030, compared with 3.1 percent in January 2029.",
            "The annual US inflation rate in January 2030 was 2.9%, down from 3.4% in January 2029.",
            "3.0 percent (site0) against 2.9% (site1)",
        ),
        ("The Grey Tower is 330 metres tall.", "The Grey Tower is 312 metres tall.", "330 (site0) against 312 (site1)"),
        (
            "In 2020, the city of Arden had 1.2 million inhabitants.",
            "The city of Arden had 1,500,000 inhabitants in 2020.",
            "1.2 million (site0) against 1,500,000 (site1)",
        ),
        (
            "The bridge cost $12 million.",
            "According to the council, the bridge cost $15 million.",
            "$12 million (site0) against $15 million (site1)",
        ),
    ],
)
def test_different_values_of_one_thing(one: str, other: str, values: str) -> None:
    assert told(one, other) == [values]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The inflation rate was 3.0 percent in May 2030.", "The inflation rate was 2.9 percent in June 2030."),
        ("The inflation rate was 3.0 percent in May 2030.", "The inflation rate was 2.9 percent."),
        ("The inflation rate in France was 3.0 percent.", "The inflation rate in Spain was 2.9 percent."),
        ("The inflation rate in France was 3.0 percent.", "The inflation rate was 2.9 percent."),
        ("The inflation rate was 3.0 percent.", "The core inflation rate was 3.3 percent."),
        ("Prices rose 3.0 percent in May.", "Prices fell 2.0 percent in May."),
        ("The tower is 330 metres tall.", "The tower is 1,083 feet tall."),
        ("The unemployment rate was 3.0 percent.", "The inflation rate was 2.9 percent."),
        ("The monthly rate of inflation was 0.5 percent.", "The rate of inflation was 3.0 percent."),
        ("The inflation rate was 3 percent in May 2030.", "The inflation rate was 2.96 percent in May 2030."),
        ("The city has 1.2 million people.", "The city has 1,200,000 people."),
        ("It was 3 percent.", "It was 4 percent."),
        ("Rates were 3 percent and 4 percent in May.", "Rates were 5 percent and 6 percent in May."),
        ("The US inflation rate was 3.0 percent in May.", "The euro area inflation rate was 2.5 percent in May."),
        ("A year earlier the rate of inflation was 3 percent.", "A year earlier the rate of inflation was 4 percent."),
        ("The tower has 30 lifts. It weighs 30 tons of steel.", "The bridge has 40 lifts. It weighs 40 tons of steel."),
        ("Chapter 3 tells of the long war.", "Chapter 4 tells of the long war."),
    ],
)
def test_different_things_are_no_disagreement(one: str, other: str) -> None:
    assert told(one, other) == []


def test_pages_of_different_years_may_differ() -> None:
    quotes = ("The city of Arden has 1.2 million people.", "The city of Arden has 1.3 million people.")
    assert told(*quotes, dates=("2010-01-01", "2020-01-01")) == []
    assert told(*quotes, dates=("2020-01-01", "2020-05-01")) == [
        "1.2 million (site0, 2020-01-01) against 1.3 million (site1, 2020-05-01)"
    ]


def test_titles_tell_what_and_when() -> None:
    def found(quote: str, other: str, title: str, titled: str) -> bool:
        one = fact(quote, "one").model_copy(update={"title": title})
        two = fact(other, "two").model_copy(update={"title": titled})
        return bool(disagreements([one, two]))

    population = ("The population was 29,987 at the last census.", "The population was 1,126 at the last census.")
    assert not found(*population, "Arden", "Belmont")
    points = ("The Rovers scored 327 points.", "The Rovers scored 282 points.")
    assert not found(*points, "1984 Rovers season", "1983 Rovers season")
    assert found(*points, "1984 Rovers season", "The Rovers in 1984")
    assert not found("The 486th Test Squadron flies.", "The 514th Test Squadron flies.", "", "")


def test_one_page_does_not_disagree_with_itself() -> None:
    quotes = ("The Grey Tower is 330 metres tall.", "The Grey Tower is 312 metres tall.")
    assert disagreements([fact(quote, "one") for quote in quotes]) == []


def test_agreeing_sources_stand_beside_the_one_that_differs() -> None:
    found = told(
        "The Grey Tower is 330 metres tall.", "The Grey Tower is 330 metres tall.", "The Grey Tower is 312 metres tall."
    )
    assert found == ["330 (site0) against 330 (site1) against 312 (site2)"]
