"""What a page says of itself: title, site, language, date, and whether it must be paid for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .dates import publication_date
from .tidy import line

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_TITLES = (
    "dc.title",
    "dcterms.title",
    "dc:title",
    "dcterm:title",
    "citation_title",
    "og:title",
    "twitter:title",
    "title",
)
_SITES = ("og:site_name", "application-name", "dc.publisher", "citation_journal_title")
_WANTED = frozenset({"headline", "datePublished", "dateCreated", "dateModified", "uploadDate", "isAccessibleForFree"})
_WORKS = re.compile(r"Article|Posting|Report|WebPage|Book|Dataset|Recipe|Review|Video|Podcast|Creative|QAPage|HowTo")
_LANGUAGE = re.compile(r"\A[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}\Z")
_SEPARATOR = re.compile(r"\s+[|\-–—·•»:/\\]+\s+")
_LONGEST_TITLE = 300
_LONGEST_JSON = 500_000  # characters of one JSON-LD block
_MOST_OBJECTS = 2_000


@dataclass(frozen=True)
class Metadata:
    title: str
    site: str
    date: str | None
    date_origin: str
    language: str
    paid: bool  # isAccessibleForFree is false


def page_metadata(tree: HtmlElement, url: str) -> Metadata:
    """What the page at `url` declares. Never raises for what stands in a page."""
    meta = _meta(tree)
    json_ld = _json_ld(tree)
    day, origin = publication_date(tree, meta, json_ld, url)
    site = line(next((meta[name] for name in _SITES if meta.get(name)), "") or json_ld.get("publisher", ""))[:100]
    return Metadata(
        title=_title(tree, meta, json_ld, site),
        site=site or host(url),
        date=day,
        date_origin=origin,
        language=_language(tree, meta),
        paid=json_ld.get("isAccessibleForFree", "").lower() == "false",
    )


def host(url: str) -> str:
    """The host of `url` without "www.", for a page that doesn't name its site."""
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def _meta(tree: HtmlElement) -> dict[str, str]:
    """Names, in lower case, to the first content that each is given."""
    found: dict[str, str] = {}
    for element in tree.iter("meta"):
        content = element.get("content", "").strip()
        names = element.get("property") or element.get("name") or element.get("itemprop") or element.get("http-equiv")
        for name in (names or "").lower().split() if content else ():
            found.setdefault(name, content)
    return found


def _json_ld(tree: HtmlElement) -> dict[str, str]:
    """The wanted properties of the page's schema.org objects; those of a work before any other's."""
    found: dict[str, str] = {}
    others: dict[str, str] = {}
    for thing in _objects(tree):
        target = found if _WORKS.search(str(thing.get("@type", ""))) else others
        for name in _WANTED & thing.keys():
            if isinstance(thing[name], (str, bool)):
                target.setdefault(name, str(thing[name]))
        publisher = thing.get("publisher")
        if isinstance(publisher, dict) and isinstance(publisher.get("name"), str):
            target.setdefault("publisher", publisher["name"])
    return others | found


def _objects(tree: HtmlElement) -> Iterator[dict[str, Any]]:
    seen = 0
    for script in tree.iter("script"):
        if "ld+json" not in script.get("type", "") or len(script.text or "") > _LONGEST_JSON:
            continue
        try:
            waiting = [json.loads(script.text or "", strict=False)]
        except (ValueError, RecursionError):
            continue
        while waiting and seen < _MOST_OBJECTS:
            value = waiting.pop(0)
            seen += 1
            if isinstance(value, list):
                waiting.extend(value[:100])
            elif isinstance(value, dict):
                yield value
                waiting.extend(value[name] for name in ("@graph", "mainEntity", "mainEntityOfPage") if name in value)


def _title(tree: HtmlElement, meta: dict[str, str], json_ld: dict[str, str], site: str) -> str:
    declared = tree.find(".//head/title")
    if declared is None:
        declared = tree.find(".//title")
    written = declared.text_content() if declared is not None else ""
    for candidate in (*(meta.get(name, "") for name in _TITLES), written, json_ld.get("headline", "")):
        title = line(candidate)
        if title and title != site:
            return _without_site(title, site, tree)[:_LONGEST_TITLE]
    headings = tree.xpath("(.//h1)[1]")
    return line(headings[0].text_content())[:_LONGEST_TITLE] if headings else ""


def _without_site(title: str, site: str, tree: HtmlElement) -> str:
    """`title` without the site's name at its end, or as a heading has it, where one of its parts is a heading."""
    parts = _SEPARATOR.split(title)
    if len(parts) < 2:
        return title
    if site and parts[-1].casefold() == site.casefold():
        return title[: title.rindex(parts[-1])].rstrip(" |-–—·•»:/\\")
    headings = {line(element.text_content()) for element in tree.xpath("(.//h1)[position() <= 3]")}
    return next((part for part in (parts[0], parts[-1]) if part in headings), title)


def _language(tree: HtmlElement, meta: dict[str, str]) -> str:
    """As declared, in the form of BCP 47; "" where it is not, or not in that form."""
    root = tree.getroottree().getroot()
    declared = (
        root.get("lang"),
        root.get("{http://www.w3.org/XML/1998/namespace}lang"),
        root.get("xml:lang"),
        meta.get("content-language"),
        meta.get("og:locale"),
    )
    for value in declared:
        tag = (value or "").split(",")[0].strip().replace("_", "-")
        if _LANGUAGE.match(tag):
            return tag
    return ""
