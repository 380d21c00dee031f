"""When a page was published, and which of its elements says so.

The ladder, best first: meta elements, JSON-LD, microdata, `time` elements, the address,
the visible text (by htmldate), and last a date of change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_EARLIEST, _LATEST = 1900, 2099  # years
_PUBLISHED = (
    "article:published_time", "article:published", "og:article:published_time", "og:published_time", "datepublished",
    "citation_publication_date", "citation_online_date", "citation_date", "dcterms.issued", "dc.date.issued",
    "dcterms.created", "dc.date.created", "dc.date", "dcterms.date", "dc:date", "parsely-pub-date", "sailthru.date",
    "cxenseparse:recs:publishtime", "bt:pubdate", "rnews:datepublished", "publication_date", "publish_date",
    "publish-date", "published_date", "published-date", "published_time", "publishdate", "pubdate", "pdate",
    "article.published", "article.created", "originalpublicationdate", "date", "created", "prism.publicationdate",
)  # fmt: skip
_MODIFIED = (
    "article:modified_time",
    "og:updated_time",
    "datemodified",
    "last-modified",
    "dcterms.modified",
    "dc.date.modified",
)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d?)-(\d\d?)(?!\d)")
_SLASHED = re.compile(r"\b((?:19|20)\d\d)[/.](\d\d?)[/.](\d\d?)(?!\d)")
_COMPACT = re.compile(r"(?<!\d)((?:19|20)\d\d)([01]\d)([0-3]\d)(?!\d)")
_DOTTED = re.compile(
    r"(?<![\d.])(\d\d?)\.(\d\d?)\.((?:19|20)\d\d)(?!\d)"
)  # 31.12.2024: day first wherever dots are used
_WORDED = ("%B %d, %Y", "%b %d, %Y", "%b. %d, %Y", "%d %B %Y", "%d %b %Y", "%A, %B %d, %Y", "%Y %b %d")
_IN_PATH = re.compile(r"/((?:19|20)\d\d)[/-](\d\d?)[/-](\d\d?)(?=[/_.-]|$)|/((?:19|20)\d\d)([01]\d)([0-3]\d)(?=[/_-])")
_PUBLISHED_CLASS = re.compile(r"publi|posted|entry-date|post-date|pubdate|created|dateline", re.IGNORECASE)


def publication_date(
    tree: HtmlElement, meta: Mapping[str, str], json_ld: Mapping[str, str], url: str
) -> tuple[str | None, str]:
    """The date as YYYY-MM-DD and its origin ("meta article:published_time"); (None, "") where none is found.

    `meta` and `json_ld` map names (of `meta` in lower case) to values. The date is the one
    written, in whatever time zone it was written.
    """
    for origin, value in _declared(tree, meta, json_ld):
        if day := parse_date(value):
            return day, origin
    if day := _date_in_path(url):
        return day, "URL"
    if day := _in_visible_text(tree):
        return day, "visible text"
    for origin, value in _changed(meta, json_ld):
        if day := parse_date(value):
            return day, origin
    return None, ""


def parse_date(value: str) -> str | None:
    """YYYY-MM-DD for an ISO 8601, RFC 2822, compact, dotted or English date; None for anything else.

    >>> parse_date("2020-07-10T14:15:42+00:00"), parse_date("July 10, 2020"), parse_date("10/7/2020")
    ('2020-07-10', '2020-07-10', None)
    """
    value = " ".join(value[:100].split())
    for pattern in (_ISO, _SLASHED, _COMPACT):
        if found := pattern.search(value):
            return _valid(found[1], found[2], found[3])
    if found := _DOTTED.search(value):
        return _valid(found[3], found[2], found[1])
    return _worded(value)


def _worded(value: str) -> str | None:
    for form in _WORDED:
        try:
            day = datetime.strptime(value, form).date()
        except ValueError:
            continue
        return _valid(day.year, day.month, day.day)
    try:
        day = parsedate_to_datetime(value).date()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return _valid(day.year, day.month, day.day)


def _valid(year: str | int, month: str | int, day: str | int) -> str | None:
    try:
        found = date(int(year), int(month), int(day))
    except ValueError:
        return None
    return found.isoformat() if _EARLIEST <= found.year <= _LATEST else None


def _declared(tree: HtmlElement, meta: Mapping[str, str], json_ld: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in _PUBLISHED:
        if name in meta:
            yield f"meta {name}", meta[name]
    for name in ("datePublished", "dateCreated", "uploadDate"):
        if name in json_ld:
            yield f"JSON-LD {name}", json_ld[name]
    for name in ("datePublished", "dateCreated"):
        for element in tree.xpath(f'(.//*[contains(@itemprop, "{name}")])[position() <= 20]'):
            yield f"microdata {name}", element.get("content") or element.get("datetime") or element.text_content()
    for element in _publication_times(tree):
        yield "time element", element.get("datetime") or element.text_content()


def _changed(meta: Mapping[str, str], json_ld: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in _MODIFIED:
        if name in meta:
            yield f"meta {name}", meta[name]
    if "dateModified" in json_ld:
        yield "JSON-LD dateModified", json_ld["dateModified"]


def _publication_times(tree: HtmlElement) -> Iterator[HtmlElement]:
    """The `time` elements that are about this page: named as such, else the first within its article."""
    times = tree.xpath("(.//time)[position() <= 50]")
    for element in times:
        if "pubdate" in element.attrib or _PUBLISHED_CLASS.search(element.get("class", "")):
            yield element
    articles = tree.xpath("(.//article | .//main)[1]")
    if articles:
        yield from articles[0].xpath("(.//time)[1]")
    elif len({element.get("datetime") for element in times}) == 1:
        yield times[0]


def _date_in_path(url: str) -> str | None:
    found = _IN_PATH.search(url.partition("?")[0])
    if not found:
        return None
    return _valid(found[1] or found[4], found[2] or found[5], found[3] or found[6])


def _in_visible_text(tree: HtmlElement) -> str | None:
    """A date in the elements that usually hold one; without the guesses that read it from any number."""
    from htmldate import find_date

    body = deepcopy(tree.find("body"))
    if body is None:
        return None
    for script in list(body.iter("script", "style", "noscript", "template")):
        script.drop_tree()
    found = find_date(
        body, extensive_search=False, original_date=True, url="", min_date="1995-01-01", max_date=f"{_LATEST}-12-31"
    )
    return found if isinstance(found, str) else None
