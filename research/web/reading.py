"""From a body of bytes to a page: type by content, characters, main text, metadata, outcome.

Runs in the parser process (`reader.py`), where it can be killed; it may also be called
directly. Pure: the same bytes and address give the same page, whatever was read before.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, TypedDict

from .charset import decode
from .markup import drop_hidden, fewer_attributes, parse, source, visible_text
from .media import sniff
from .metadata import host, page_metadata
from .outcomes import Ending, Evidence, by_content, by_status
from .pdf import MOST_BYTES, read_pdf
from .plain import Content, read_feed, read_json, read_plain, text_type
from .tidy import shorten, tidy

if TYPE_CHECKING:
    from lxml.html import HtmlElement

    from ..records import Page

MOST_MARKUP = 4_000_000  # bytes of anything but PDF that are parsed; the rest is cut off
_TOO_LITTLE = 250  # characters of main text below which the fallback is tried
_MUCH_MORE = 3  # times as much text must the fallback find to be believed
_MOST_ELEMENTS = 40_000  # trafilatura takes minutes over 100,000; large real pages have 20,000
_MOST_DEEP_TAGS = 20_000  # Lexbor takes quadratic time over nested elements

_EMPTY_ROWS = re.compile(r"^(?=[ \t:-]*+\|)[ \t|:-]++\n", re.MULTILINE)
_OUTER_BARS = re.compile(r"^[ \t]*\|[ \t]|[ \t]\|[ \t]*$", re.MULTILINE)

# What the parsers are known to raise on odd input, none of which says anything about our own code:
# they are called through one place only, `_main_text`.
_PARSER_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Fields(TypedDict, total=False):
    """A page's fields as JSON knows them; see `records.Page`."""

    url: str
    outcome: Ending
    title: str
    site: str
    text: str
    date: str | None
    date_origin: str
    language: str
    media_type: str
    charset: str
    cut: bool
    detail: str


def read_page(body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page:
    """The page that `body` is, sent for `url` with this header and status.

    Never raises, whatever the bytes: each body ends in a page with an outcome. Only an
    `ok` page has text. `body` is decoded already (no gzip), and may be cut short.
    """
    from ..records import Page

    return Page.model_validate(read_fields(body, url=url, content_type=content_type, status=status))


def read_fields(body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Fields:
    """`read_page` without pydantic."""
    if settled := by_status(status):
        return _without_text(url, settled[0], settled[1])
    if not body.strip():
        return _without_text(url, "empty", "the body is empty")
    media_type = sniff(body)
    if media_type == "application/pdf":
        return _pdf(body, url)
    if media_type:
        return _without_text(url, "wrong type", f"{media_type} can't be read as text", media_type)
    return _text(body, url, content_type)


def _without_text(url: str, outcome: Ending, detail: str, media_type: str = "") -> Fields:
    return {"url": url, "outcome": outcome, "detail": detail, "site": host(url), "media_type": media_type}


def _pdf(body: bytes, url: str) -> Fields:
    if len(body) > MOST_BYTES:
        detail = f"a PDF of more than {MOST_BYTES:,} bytes"
        return _without_text(url, "too large", detail, "application/pdf")
    found = read_pdf(body)
    if found.problem:
        return _without_text(url, "empty", found.problem, "application/pdf")
    return {
        **_without_text(url, "ok", "", "application/pdf"),
        "title": found.title,
        "text": found.text,
        "date": found.date,
        "date_origin": "PDF CreationDate" if found.date else "",
        "cut": found.cut,
    }


def _text(body: bytes, url: str, content_type: str) -> Fields:
    cut = len(body) > MOST_MARKUP
    markup, charset = decode(body[:MOST_MARKUP], content_type)
    media_type = text_type(markup, content_type, url)
    if media_type in ("application/xml", "image/svg+xml"):
        return _without_text(url, "wrong type", "XML that is neither a page nor a feed", media_type)
    if media_type == "text/html":
        fields = _html(markup, url)
    else:
        fields = _content(_read_plainly(markup, media_type), url)
    text, shortened = shorten(fields.get("text", ""))
    return {**fields, "text": text, "media_type": media_type, "charset": charset, "cut": cut or shortened}


def _read_plainly(text: str, media_type: str) -> Content:
    if media_type == "application/json":
        return read_json(text)
    if media_type.endswith(("rss+xml", "atom+xml")):
        return read_feed(text)
    return read_plain(text, media_type)


def _content(found: Content, url: str) -> Fields:
    if not found.text:
        return _without_text(url, "empty", "there is no text in it")
    return {
        **_without_text(url, "ok", ""),
        "title": found.title,
        "text": found.text,
        "date": found.date,
        "date_origin": found.date_origin,
    }


def _html(markup: str, url: str) -> Fields:
    html = fewer_attributes(markup)
    tree, whole = parse(html)
    if tree is None or not whole:
        return _deep(html, url)
    found = page_metadata(tree, url)
    drop_hidden(tree)
    text = _main_text(tree, html, url)
    outcome, detail = by_content(Evidence(html, found.title, text, url, found.paid))
    return {
        "url": url,
        "outcome": outcome,
        "title": found.title,
        "site": found.site,
        "text": text if outcome == "ok" else "",
        "date": found.date,
        "date_origin": found.date_origin,
        "language": found.language,
        "detail": detail,
    }


def _deep(html: str, url: str) -> Fields:
    """A page that lxml can't hold: its visible text, or none where that would take too long."""
    if html.count("<") > _MOST_DEEP_TAGS:
        return _without_text(url, "empty", "its elements are nested too deeply to be read")
    text = tidy(visible_text(html, furniture=False))
    outcome, detail = by_content(Evidence(html, "", text, url))
    return {**_without_text(url, outcome, detail), "text": text if outcome == "ok" else ""}


def _main_text(tree: HtmlElement, html: str, url: str) -> str:
    text = tidy(_table_rows(_by_trafilatura(tree, url))) if _elements(html) <= _MOST_ELEMENTS else ""
    if len(text) < _TOO_LITTLE:
        fallback = tidy(_table_rows(visible_text(source(tree), furniture=False)))
        if len(fallback) >= _MUCH_MORE * len(text):
            return fallback
    return text


def _elements(html: str) -> int:
    """About how many there are: start tags, by their brackets."""
    return html.count("<") - html.count("</")


def _table_rows(text: str) -> str:
    """Rows as `a | b`: without outer bars, ruling lines, empty rows, and backslashes before bars within a cell."""
    if "|" not in text:
        return text
    return _OUTER_BARS.sub("", _EMPTY_ROWS.sub("", text.replace("\\|", "|")))


def _by_trafilatura(tree: HtmlElement, url: str) -> str:
    from lxml.etree import LxmlError
    from trafilatura import bare_extraction
    from trafilatura.settings import Document

    logging.getLogger("trafilatura").addHandler(logging.NullHandler())  # its remarks are not for our readers
    try:
        document = bare_extraction(tree, url=url, include_comments=False, include_tables=True)
    except (*_PARSER_ERRORS, LxmlError):
        return ""
    return (document.text or "") if isinstance(document, Document) else ""
