"""The text of a PDF, by PDFium."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .dates import parse_date
from .tidy import LONGEST_TEXT, line, shorten, tidy

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

MOST_BYTES = 30_000_000  # of a PDF: cut, it can't be read
MOST_PAGES = 300

_HYPHEN = re.compile("[\ufffe\x02]\\s*\n?")  # PDFium's sign for a hyphen at a line's end


@dataclass(frozen=True)
class PdfText:
    """`problem` says why there is no text, where there is none."""

    text: str = ""
    title: str = ""
    date: str | None = None
    cut: bool = False
    problem: str = ""


def read_pdf(body: bytes) -> PdfText:
    """The text layer of at most `MOST_PAGES` pages. Never raises for what stands in `body`."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        reason = "it is protected by a password" if "assword" in str(error) else "it is damaged"
        return PdfText(problem=f"the PDF can't be read: {reason}")
    with document:
        return _read(document)


def _read(document: PdfDocument) -> PdfText:
    parts: list[str] = []
    size = 0
    pages = min(len(document), MOST_PAGES)
    for number in range(pages):
        parts.append(_page_text(document, number))
        size += len(parts[-1])
        if size > LONGEST_TEXT:
            break
    text, cut = shorten(tidy("\n\n".join(parts)))
    facts = _metadata(document)
    return PdfText(
        text=text,
        title=line(facts.get("Title", ""))[:300],
        date=_date(facts.get("CreationDate", "")),
        cut=cut or len(document) > pages,
        problem="" if text else "the PDF has no text layer: its pages are pictures",
    )


def _page_text(document: PdfDocument, number: int) -> str:
    """One page's text, "" where PDFium can't load the page."""
    import pypdfium2

    try:
        page = document[number]
        try:
            text = page.get_textpage().get_text_bounded()
        finally:
            page.close()
    except pypdfium2.PdfiumError:
        return ""
    return _HYPHEN.sub("", text.replace("\r\n", "\n"))


def _metadata(document: PdfDocument) -> dict[str, str]:
    import pypdfium2

    try:
        return dict(document.get_metadata_dict(skip_empty=True))
    except (pypdfium2.PdfiumError, UnicodeError, ctypes.ArgumentError):
        return {}


def _date(value: str) -> str | None:
    """The day of a PDF date, `D:YYYYMMDDHHmmSS…`."""
    return parse_date(value[2:10]) if value.startswith("D:") else None
