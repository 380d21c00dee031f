"""Text from what is no HTML page: plain text, Markdown, JSON and feeds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .dates import parse_date
from .markup import NOT_XML, XML_START, visible_text
from .tidy import line, tidy

if TYPE_CHECKING:
    from lxml.etree import _Element

_LEAD = r"\A(?:\s++|<!--(?>.*?-->)|<\?(?>.*?>))*+"
_START = re.compile(
    _LEAD + r"(?:<!doctype\b[^>\[]*+(?:\[[^\]]*+\])?[^>]*+>\s*+|<!--(?>.*?-->)\s*+)*+<([a-z][\w:.-]*)",
    re.IGNORECASE | re.DOTALL,
)
_HTML_START = re.compile(_LEAD + r"<!doctype\s+html", re.IGNORECASE | re.DOTALL)
_HTML_TAG = re.compile(
    r"</?(?:html|head|body|title|meta|script|div|p|table|tr|td|h[1-6]|ul|ol|li|span|a|br)\b[^<>]*>", re.I
)
_FEEDS = {"rss": "application/rss+xml", "feed": "application/atom+xml", "rdf:rdf": "application/rss+xml"}
_XML_ROOTS = frozenset({"svg", "urlset", "sitemapindex", "opml", "math", "xsl:stylesheet", "plist", "kml", "gpx"})
_HEADING = re.compile(r"^#{1,2}[ \t]+(.+)$", re.MULTILINE)
_MOST_ENTRIES = 500
_MOST_VALUES = 50_000


@dataclass(frozen=True)
class Content:
    text: str
    title: str = ""
    date: str | None = None
    date_origin: str = ""


def text_type(text: str, content_type: str, url: str) -> str:
    """The media type of decoded text, by what it starts with; the header decides between kinds of plain text only."""
    declared = content_type.partition(";")[0].strip().lower()
    if _HTML_START.match(text[:8192]):
        return "text/html"
    root = start[1].lower() if (start := _START.match(text[:8192])) else ""
    if root in _FEEDS:
        return _FEEDS[root]
    if root in _XML_ROOTS or (root and root != "html" and (XML_START.match(text) or declared.endswith("xml"))):
        return "image/svg+xml" if root == "svg" else "application/xml"
    if root or declared in ("text/html", "application/xhtml+xml"):
        return "text/html"
    if _is_json(text):
        return "application/json"
    if declared in ("", "application/octet-stream") and len(_HTML_TAG.findall(text[:4096])) >= 3:
        return "text/html"
    if declared == "text/markdown" or url.partition("?")[0].lower().endswith((".md", ".markdown")):
        return "text/markdown"
    return "text/plain"


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def read_plain(text: str, media_type: str) -> Content:
    """Plain text and Markdown as they are; the title is a Markdown heading's."""
    heading = _HEADING.search(text[:5000]) if media_type == "text/markdown" else None
    return Content(tidy(text), line(heading[1]) if heading else "")


def read_json(text: str) -> Content:
    """A line "path: value" for each value, numbers as they are written."""
    value = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    lines = [f"{path}: {found}" if path else found for path, found in _leaves(value)]
    title = value.get("title") if isinstance(value, dict) else None
    return Content(tidy("\n".join(lines)), line(title)[:300] if isinstance(title, str) else "")


def _leaves(value: Any) -> Iterator[tuple[str, str]]:
    """The path and text of each value that is neither list nor object, in order; at most `_MOST_VALUES`."""
    waiting: list[tuple[str, Any]] = [("", value)]
    given = 0
    while waiting and given < _MOST_VALUES:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend((f"{path}.{name}".lstrip("."), inner) for name, inner in reversed(value.items()))
        elif isinstance(value, list):
            waiting.extend((f"{path}[{place}]", inner) for place, inner in reversed(list(enumerate(value))))
        else:
            given += 1
            yield path[:200], " ".join(value.split()) if isinstance(value, str) else json.dumps(value)


def read_feed(text: str) -> Content:
    """RSS or Atom: its title, then title, date and text of each entry, a blank line between entries."""
    from lxml import etree

    # No entity is expanded and nothing is fetched: a feed is hostile XML.
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, remove_comments=True)
    source = NOT_XML.sub("", XML_START.sub("", text)).encode()
    try:
        root = etree.fromstring(source, parser)
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        return Content(tidy(visible_text(text)))
    channel = next((element for element in root.iter() if _name(element) == "channel"), root)
    title = line(_child_text(channel, "title"))
    entries = [element for element in root.iter() if _name(element) in ("item", "entry")][:_MOST_ENTRIES]
    day = parse_date(_child_text(channel, "pubDate", "lastBuildDate", "updated", "published", "date"))
    parts = [title, tidy(_plain(_child_text(channel, "description", "subtitle"))), *map(_entry, entries)]
    return Content(tidy("\n\n".join(filter(None, parts))), title[:300], day, "feed date" if day else "")


def _entry(entry: _Element) -> str:
    day = parse_date(_child_text(entry, "pubDate", "published", "updated", "date")) or ""
    body = _child_text(entry, "encoded", "content", "description", "summary")
    return "\n".join(filter(None, (line(_plain(_child_text(entry, "title"))), day, tidy(_plain(body)))))


def _child_text(element: _Element, *names: str) -> str:
    """The text of the first child that has one of `names`, the first name first; namespaces don't count."""
    for name in names:
        for child in element:
            if _name(child) == name and (text := "".join(child.itertext()).strip()):
                return text
    return ""


def _plain(text: str) -> str:
    return visible_text(text) if "<" in text or "&" in text else text


def _name(element: _Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
