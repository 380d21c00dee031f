"""DuckDuckGo without JavaScript: https://html.duckduckgo.com/html/ and https://lite.duckduckgo.com/lite/.

There is no public description of these pages; the selectors follow recorded ones of 2015 to 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from ..base import Options
from .base import MOST_BOXES, TOO_INTRICATE, Call, EngineReply, Row, asked, page, reply, without_results

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_RECENCY = {"day": "d", "week": "w", "month": "m", "year": "y"}
_LINES = 8  # between a title and its snippet, the white space between the lines included
_REGIONS = {"gb": "uk"}  # where DuckDuckGo's code differs from ISO 3166


@dataclass(frozen=True)
class DuckDuckGo:
    """`base` is the page that is asked; the lite one is parsed as well."""

    base: str = "https://html.duckduckgo.com/html/"
    name: str = "duckduckgo"
    disabled: str = ""

    def request(self, query: str, top: int, options: Options) -> Call:
        params = {"q": asked(query)}
        if options.region and options.language:
            region = _REGIONS.get(options.region.lower(), options.region.lower())
            params["kl"] = f"{region}-{options.language.lower()}"
        if options.recency:
            params["df"] = _RECENCY[options.recency]
        return Call("GET", self.base, params)

    def parse(self, status: int, body: bytes) -> EngineReply:
        tree = page(body)
        if tree is None:
            return TOO_INTRICATE
        rows = [*_boxes(tree), *_lines(tree)]
        if rows and status < 300:
            return reply(rows)
        return without_results(status, body, empty=_says_none(tree))


def _boxes(tree: LexborHTMLParser) -> Iterator[Row]:
    """Results of the html page and of the JavaScript one: a box each, with title, snippet, or an ad's mark."""
    for box in tree.css(".results_links, article[data-testid=result]")[:MOST_BOXES]:
        title = box.css_first("a.result__a, a[data-testid=result-title-a], .links_main > a.large")
        if title is None or "result--ad" in (box.attributes.get("class") or ""):
            continue
        snippet = box.css_first(".result__snippet, .snippet, [data-result=snippet]")
        yield from _row(title, snippet)


def _lines(tree: LexborHTMLParser) -> Iterator[Row]:
    """Results of the lite page: a table's row with the title, the next but one or so with the snippet."""
    for title in tree.css("a.result-link")[:MOST_BOXES]:
        line = title.parent.parent if title.parent else None
        if line is None or "result-sponsored" in (line.attributes.get("class") or ""):
            continue
        yield from _row(title, _snippet_below(line))


def _snippet_below(line: LexborNode) -> LexborNode | None:
    below = line.next
    for _ in range(_LINES):
        if below is None or below.css_matches("a.result-link"):
            return None
        if below.tag == "tr" and (snippet := below.css_first(".result-snippet")):
            return snippet
        below = below.next
    return None


def _row(title: LexborNode, snippet: LexborNode | None) -> Iterator[Row]:
    url = _target(title.attributes.get("href") or "")
    if url is not None:
        yield Row(url, title.text(), snippet.text() if snippet else "")


def _target(href: str) -> str | None:
    """Where a result's link leads; None for an ad and for DuckDuckGo's own searches.

    >>> _target("//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.org%2F&rut=1")
    'https://example.org/'
    """
    url = f"https:{href}" if href.startswith("//") else href
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query, max_num_fields=50)
    except ValueError:
        return url  # no URL at all: it is dropped, and counted, with the others of its kind
    host = parts.hostname or ""
    if host != "duckduckgo.com" and not host.endswith(".duckduckgo.com"):
        return url
    if parts.path == "/y.js" or ("q" in query and parts.path in ("", "/", "/html/", "/lite/")):
        return None
    return query["uddg"][0] if parts.path == "/l/" and "uddg" in query else url


def _says_none(tree: LexborHTMLParser) -> bool:
    if tree.css_first(".no-results, .no-results__container, .result--no-result"):
        return True
    return any(
        re.fullmatch(r"No\s+(?:more\s+)?results\.?", cell.text().strip())
        for cell in tree.css("td, .results")[:MOST_BOXES]
    )
