"""A sentence's status follows from its quotes, and never flatters it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from research.evidence.checks import SUPPORTED, citation_precision, citation_recall, judge, score
from research.evidence.markers import cite
from research.records import Answer, Ending, Fact, Grade

RISE = "Consumer prices rose 3.1 percent in the 12 months to June 2023, the Bureau of Labor Statistics said."


def fact(quote: str, url: str = "https://a.example", title: str = "", date: str | None = None) -> Fact:
    return Fact(
        claim=quote, quote=quote, start=0, end=len(quote), grade=Grade.EXACT, url=url, page="p", title=title, date=date
    )


@pytest.mark.parametrize(
    ("sentence", "quotes", "status", "reason"),
    [
        ("Consumer prices rose 3.1 percent in June 2023 [1].", [RISE], "supported", ""),
        ("According to the BLS, prices rose by 3.1 % [1].", [RISE], "supported", ""),
        ("Consumer prices rose about 3 percent over 12 months.", [RISE], "supported", ""),
        ("Consumer prices rose 3.2 percent in June.", [RISE], "unsupported", "3.2 percent stands in no cited quote"),
        (
            "Consumer prices rose 3.1 percent in the 12 months to June 2022.",
            [RISE],
            "partly",
            "June 2022 stands in no cited quote",
        ),
        (
            "Prices rose 4 percent and 5 percent.",
            [RISE],
            "unsupported",
            "4 percent and 5 percent stand in no cited quote",
        ),
        (
            "Consumer prices did not rise in the 12 months to June 2023.",
            [RISE],
            "partly",
            "one of sentence and quote says “not”, the other does not",
        ),
        ("Cats sleep for most of the day.", [RISE], "unsupported", "few of its words stand there"),
        ("Prices rose.", [], "uncited", "no source is cited"),
        ("The capital is Canberra.", ["Canberra is the capital of Australia."], "supported", ""),
        ("東京都の人口は約1400万人です。", ["東京都の人口は約1400万人です。"], "supported", ""),
        (
            "Die Verbraucherpreise sind in einem Jahr um 3,1 Prozent gestiegen.",
            [RISE],
            "partly",
            "written in another language than its quotes: only numbers, dates and names were compared",
        ),
    ],
)
def test_judge(sentence: str, quotes: Sequence[str], status: str, reason: str) -> None:
    assert judge(sentence, [fact(quote) for quote in quotes]) == (status, reason)


def test_several_quotes_count_together() -> None:
    quotes = ["The tower was built in 1889.", "The tower is 330 metres tall."]
    sentence = "The tower was built in 1889 and is 330 metres tall."
    assert judge(sentence, [fact(quote) for quote in quotes]) == ("supported", "")
    assert judge(sentence, [fact(quotes[0])])[0] == "partly"


def test_a_title_lends_names_but_no_numbers() -> None:
    quote = "It was built in 1889 by an engineer."
    assert judge("The Eiffel Tower was built in 1889.", [fact(quote, title="Eiffel Tower")])[0] == "supported"
    assert judge("It was built in 1887.", [fact(quote, title="Built in 1887")])[0] != "supported"


def test_a_sources_date_may_be_named() -> None:
    found = judge("As of 5 June 2023, the tower is open.", [fact("The tower is open.", date="2023-06-05")])
    assert found == ("supported", "")


def answer(text: str, facts: Sequence[Fact]) -> Answer:
    cited = cite(text, facts)
    return Answer(text=cited.text, ending=Ending.ANSWERED, citations=cited.citations, sentences=cited.sentences)


def test_recall_and_precision() -> None:
    facts = [
        fact("The tower was built in 1889."),
        fact("The tower is 330 metres tall.", "https://b.example"),
        fact("Cats sleep a lot every day.", "https://c.example"),
    ]
    text = "The tower was built in 1889 [1][3]. The tower is 350 metres tall [2]. It is old."
    # Sentences: supported, unsupported, uncited. Citations: 1 needed, 3 idle, 2 under an unsupported sentence.
    assert citation_recall(answer(text, facts)) == pytest.approx(1 / 3)
    assert citation_precision(answer(text, facts)) == pytest.approx(1 / 3)
    both = "The tower was built in 1889 and is 330 metres tall [1][2]."
    assert citation_recall(answer(both, facts)) == 1
    assert citation_precision(answer(both, facts)) == 1
    assert citation_recall(answer("", facts)) is None
    assert citation_precision(answer("It is old.", facts)) is None


@pytest.mark.heavy
def test_the_rules_tell_supported_claims_from_others(data: Callable[[str], Path]) -> None:
    lines = (data("claim-wice") / "dev" / "claims.jsonl").read_text(encoding="utf-8").splitlines()
    told: dict[bool, list[bool]] = {True: [], False: []}
    for row in map(json.loads, lines):
        told[row["label"] == "supported"].append(score(row["claim"], row["evidence_sentences"]) >= SUPPORTED)
    balanced = (sum(told[True]) / len(told[True]) + 1 - sum(told[False]) / len(told[False])) / 2
    assert balanced >= 0.72  # 0.50 for "always supported", 0.59 for an overlap of half the words
