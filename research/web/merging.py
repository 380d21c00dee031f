"""Several lists of hits made into one: deduplicated, fused, folded, capped per site."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum

from ..records import Hit
from .urls import canonical, site

# Cormack, Clarke, Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual
# rank learning methods", SIGIR 2009: a document scores the sum of 1 / (k + rank), k = 60.
K = 60

# Shorter snippets ("Please enable cookies") may be alike on pages that are not.
LONG_ENOUGH = 80  # characters


def merge(lists: Sequence[Sequence[Hit]], *, per_site: int | None = None) -> list[Hit]:
    """The hits of all lists, best first by reciprocal-rank fusion, each page once.

    Pages are told apart by canonical URL, and carry that URL. A copy under another
    address is folded into the better hit. With `per_site`, at most that many hits of one
    host stay. Ranks count from 1 again; ties stand in order of first appearance. Hits
    whose URL is neither http(s) nor a file's are left out.
    """
    pages: dict[str, Hit] = {}
    shares: dict[str, list[float]] = {}
    for hits in lists:
        for rank, (url, hit) in enumerate(_once(hits), 1):
            pages[url] = _filled(pages[url], hit) if url in pages else hit.model_copy(update={"url": url})
            shares.setdefault(url, []).append(1 / (K + rank))
    # fsum is exact, so that the order in which lists are given changes no score.
    ordered = sorted(pages.values(), key=lambda hit: -fsum(shares[hit.url]))
    kept = _capped(_folded(ordered), per_site)
    return [hit.model_copy(update={"rank": rank}) for rank, hit in enumerate(kept, 1)]


def _once(hits: Iterable[Hit]) -> list[tuple[str, Hit]]:
    """Each page of one list at its best place."""
    found: dict[str, Hit] = {}
    for hit in hits:
        try:
            found.setdefault(canonical(hit.url), hit)
        except ValueError:
            continue
    return list(found.items())


def _filled(hit: Hit, other: Hit) -> Hit:
    """`hit`, with what it lacks taken from another hit of the same page."""
    lacking = {name: getattr(other, name) for name in ("title", "snippet", "date") if not getattr(hit, name)}
    return hit.model_copy(update=lacking) if lacking else hit


def _folded(hits: Iterable[Hit]) -> list[Hit]:
    """The hits without copies of better ones: an address that differs in scheme or `www.`
    only and has the same title, or another site's page with the same title and snippet."""
    kept: list[Hit] = []
    addresses: set[tuple[str, str]] = set()
    contents: dict[tuple[str, str], str] = {}
    for hit in hits:
        title, snippet, host = _plain(hit.title), _plain(hit.snippet), site(hit.url)
        address = (hit.url.partition("://")[2].removeprefix("www."), title)
        content = (title, snippet)
        if address in addresses or contents.get(content, host) != host:
            continue
        kept.append(hit)
        addresses.add(address)
        if title and len(snippet) >= LONG_ENOUGH:
            contents.setdefault(content, host)
    return kept


def _capped(hits: Iterable[Hit], per_site: int | None) -> list[Hit]:
    if per_site is None:
        return list(hits)
    seen: Counter[str] = Counter()
    kept = []
    for hit in hits:
        host = site(hit.url)
        seen[host] += bool(host)  # files belong to no site
        if seen[host] <= per_site:
            kept.append(hit)
    return kept


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
