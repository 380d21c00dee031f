"""Facts of copies told as facts of the one page that counts for all of them.

A fact moves only if its quote stands in that page too, letter by letter or nearly so:
what a copy says differently stays the copy's own, so that nothing is attributed to a
page that does not say it, and no page can hide another by imitating it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..records import Fact, Grade, Page, Reference
from .duplicates import syndicated
from .normal import comparable
from .quotes import locate, non_evidence_spans, surroundings


@dataclass(frozen=True)
class Folded:
    """Facts, those of copies moved, and the pages that have no fact left of their own."""

    facts: list[Fact]
    copies: tuple[Reference, ...]


def fold(facts: Sequence[Fact], pages: Sequence[Page] = ()) -> Folded:
    """`facts` with copies counted once. Of a group of copies the earliest dated counts, else the first.

    Pages that are not given are judged by what their facts quote, with its surroundings.
    """
    texts = {page.url: page.text for page in pages}
    by_page: dict[str, list[Fact]] = {}
    for fact in facts:
        by_page.setdefault(fact.url, []).append(fact)
    urls = list(by_page)
    kept = _kept(by_page, [texts.get(url) or _passages(by_page[url]) for url in urls])
    moved: dict[tuple[str, int, int], Fact] = {}
    for fact in facts:
        home = kept[fact.url]
        there = fact if home == fact.url else _moved(fact, by_page[home], texts.get(home))
        there = there or fact
        moved.setdefault((there.url, there.start, there.end), there)
    found = list(moved.values())
    left = {fact.url for fact in found}
    copies = [_reference(by_page[url][0], kept[url]) for url in urls if url not in left]
    return Folded(found, tuple(copies))


def _kept(by_page: Mapping[str, Sequence[Fact]], texts: Sequence[str]) -> dict[str, str]:
    """For each page the one that counts for it: itself, unless it is a copy."""
    urls = list(by_page)
    kept = {}
    for group in syndicated(texts):
        first = min(group, key=lambda position: (by_page[urls[position]][0].date or "9999", position))
        kept.update(dict.fromkeys((urls[position] for position in group), urls[first]))
    return kept | {url: url for url in urls if url not in kept}


def _passages(facts: Sequence[Fact]) -> str:
    return "\n".join(f"{fact.before}{fact.quote}{fact.after}" for fact in facts)


def _moved(fact: Fact, homes: Sequence[Fact], text: str | None) -> Fact | None:
    """The fact as one of the page that counts; None if its quote does not stand there."""
    wanted = comparable(fact.quote)
    if (same := next((one for one in homes if wanted in comparable(one.quote)), None)) is not None:
        return same
    place = None if text is None else locate(fact.quote, text, non_evidence_spans(text))
    if text is None or place is None or place.grade not in (Grade.EXACT, Grade.NORMALISED):
        return None
    before, after = surroundings(text, place.start, place.end)
    here = {"quote": text[place.start : place.end], "start": place.start, "end": place.end, "grade": place.grade}
    home = homes[0].model_dump(include={"url", "title", "site", "date", "page"})
    return fact.model_copy(update={**home, **here, "before": before, "after": after})


def _reference(fact: Fact, kept: str) -> Reference:
    return Reference(url=fact.url, title=fact.title, site=fact.site, date=fact.date, copy_of=kept)
