"""Snippets as evidence: of all hits, or of those alone whose pages could not be read."""

from __future__ import annotations

from research.ledger import Receipt
from research.records import Fact, Grade, Hit, Outcome, Page
from research.stages.job import Job
from research.stages.quote import QuoteParams, quote

HITS = [Hit(url=f"https://a.test/{n}", title=f"T{n}", snippet=f"Snippet {n}.", rank=n) for n in range(1, 6)]


def job(keep: int) -> Job:
    return Job("quote", QuoteParams(keep=keep), Receipt(), b"")


def page(url: str, asked: str = "") -> Page:
    return Page(url=url, asked=asked, outcome=Outcome.OK, text="Text.")


async def test_without_pages_the_best_hits_that_have_a_snippet_count() -> None:
    hits = [HITS[0].model_copy(update={"snippet": " "}), *HITS[1:]]
    facts = await quote(job(2), hits)
    assert [(fact.url, fact.quote, fact.grade) for fact in facts] == [
        ("https://a.test/2", "Snippet 2.", Grade.SNIPPET),
        ("https://a.test/3", "Snippet 3.", Grade.SNIPPET),
    ]


async def test_with_pages_only_the_best_that_were_not_read_count() -> None:
    fact = Fact(claim="c", quote="Text.", start=0, end=5, grade=Grade.EXACT, url="https://a.test/1", page="p")
    pages = [page("https://a.test/1"), page("https://elsewhere.test/", asked="https://a.test/3")]
    facts = await quote(job(4), HITS, pages=pages, facts=[fact])
    assert facts[0] == fact
    assert [fact.url for fact in facts[1:]] == ["https://a.test/2", "https://a.test/4"]  # the fifth was never tried
    assert {fact.grade for fact in facts[1:]} == {Grade.SNIPPET}


async def test_where_no_page_could_be_read_all_of_the_best_count() -> None:
    assert [fact.url for fact in await quote(job(2), HITS, pages=[], facts=[])] == [
        "https://a.test/1",
        "https://a.test/2",
    ]
