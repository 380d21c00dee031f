"""Copies count once, and no page can speak for another."""

from __future__ import annotations

from research.evidence.folding import fold
from research.records import Fact, Grade, Outcome, Page
from research.store import digest

STORY = (
    "The harbour of Lindau froze over on Tuesday for the first time since 1963, the port authority said. "
    "Ferries stayed at their berths, and some two hundred people walked out to the lighthouse before the police "
    "closed the ice. The water at the mole had cooled to 0.4 degrees. Meteorologists expect a thaw by the weekend. "
    "In 1963 the whole lake was closed for five weeks, and a procession crossed it from Hagnau to Münsterlingen."
)


def page(host: str, text: str, date: str | None = None) -> Page:
    return Page(url=f"https://{host}/", outcome=Outcome.OK, title=host, site=host, text=text, date=date)


def fact(page: Page, quote: str) -> Fact:
    start = page.text.index(quote)
    return Fact(
        claim="c", quote=quote, start=start, end=start + len(quote), grade=Grade.EXACT, url=page.url, title=page.title,
        site=page.site, date=page.date, page=digest(page.text), before=page.text[:start], after=page.text[start + len(quote) :],
    )  # fmt: skip


def test_a_copys_facts_become_those_of_the_earliest_page() -> None:
    copy = page("copy.example", f"Wire story.\n{STORY}\nMore news: sport, weather, traffic.", "2025-02-13")
    first = page("first.example", STORY, "2025-02-12")
    found = fold([fact(copy, "cooled to 0.4 degrees"), fact(first, "closed for five weeks")], [copy, first])
    assert [one.url for one in found.facts] == ["https://first.example/"] * 2
    assert [STORY[one.start : one.end] for one in found.facts] == ["cooled to 0.4 degrees", "closed for five weeks"]
    assert all(one.quote == STORY[one.start : one.end] and one.page == digest(STORY) for one in found.facts)
    assert [(one.url, one.copy_of) for one in found.copies] == [("https://copy.example/", "https://first.example/")]


def test_the_same_quote_of_two_copies_is_one_fact() -> None:
    one, two = page("one.example", STORY), page("two.example", STORY.replace("Tuesday", "Wednesday"))
    found = fold([fact(one, "a thaw by the weekend"), fact(two, "a thaw by the weekend")], [one, two])
    assert [fact.url for fact in found.facts] == ["https://one.example/"]
    assert [copy.url for copy in found.copies] == ["https://two.example/"]


def test_what_a_copy_says_differently_stays_its_own() -> None:
    honest = page("honest.example", STORY, "2025-02-12")
    forged = page("forged.example", STORY.replace("0.4 degrees", "9.4 degrees"), "2025-02-11")
    facts = [fact(honest, "cooled to 0.4 degrees"), fact(forged, "cooled to 9.4 degrees")]
    assert fold(facts, [honest, forged]).facts == facts
    assert fold(facts, [honest, forged]).copies == ()


def test_other_pages_stay_as_they_are() -> None:
    one, two = (
        page("one.example", STORY),
        page("two.example", "Quite another matter: the price of eggs rose to 4.95 dollars."),
    )
    facts = [fact(one, "closed for five weeks"), fact(two, "rose to 4.95 dollars")]
    assert fold(facts, [one, two]).facts == facts
    assert fold([], []).facts == []


def test_without_pages_the_passages_decide() -> None:
    one, two = page("one.example", STORY), page("two.example", STORY)
    found = fold(
        [fact(one, "closed for five weeks"), fact(two, "closed for five weeks"), fact(two, "crossed it from Hagnau")]
    )
    assert [(fact.url, fact.quote) for fact in found.facts] == [
        ("https://one.example/", "closed for five weeks"),
        ("https://two.example/", "crossed it from Hagnau"),  # nothing shows that the other page says it too
    ]
    assert found.copies == ()
