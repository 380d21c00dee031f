"""An answer as text to read: for a terminal and as Markdown. Links and sources are written here, by the program."""

from __future__ import annotations

import re
import textwrap

from .evidence.untrusted import clean
from .records import Answer, Citation, Ending, Grade

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
LONGEST_QUOTE = 300  # characters shown under a source


def by_number(answer: Answer) -> dict[int, list[Citation]]:
    """The citations of each source, in the order of their numbers, each quote once."""
    sources: dict[int, dict[str, Citation]] = {}
    for citation in sorted(answer.citations, key=lambda one: one.number):
        sources.setdefault(citation.number, {}).setdefault(citation.fact.quote, citation)
    return {number: list(quotes.values()) for number, quotes in sources.items()}


def plain(answer: Answer, width: int = 88) -> str:
    """For a terminal: no control characters, wrapped to `width` columns."""
    parts = [_wrapped(paragraph, width) for paragraph in _told(answer).split("\n") if paragraph.strip()]
    lines = []
    for number, citations in by_number(answer).items():
        fact = citations[0].fact
        lines.append(_wrapped(f"[{number}] {_source(fact.title, fact.site, fact.date)}", width, "    "))
        lines.append(f"    {clean(fact.url)}")
        lines += [_wrapped(f"    {_quoted(one)}", width, "    ") for one in citations]
    if lines:
        parts += ["Sources", "\n".join(lines)]
    parts += [_wrapped(f"Note: {clean(note)}", width, "      ") for note in answer.notes]
    return "\n\n".join(parts) + "\n"


def markdown(question: str, answer: Answer) -> str:
    """A document with the question as its heading; whatever came from a page is escaped."""
    parts = [f"# {_escaped(question)}", *(_escaped(part) for part in _told(answer).split("\n") if part.strip())]
    if answer.as_of:
        parts.append(f"*As of {answer.as_of}.*")
    lines = []
    for number, citations in by_number(answer).items():
        fact = citations[0].fact
        lines.append(f"{number}. {_escaped(_source(fact.title, fact.site, fact.date))} <{_link(fact.url)}>")
        lines += [f"   > {_escaped(_quoted(one))}" for one in citations]
    if lines:
        parts += ["## Sources", "\n".join(lines)]
    parts += [f"Note: {_escaped(note)}" for note in answer.notes]
    return "\n\n".join(parts) + "\n"


def _told(answer: Answer) -> str:
    """The answer's text, and how it ended where that is not a plain answer."""
    text = clean(answer.text).strip()
    if answer.ending is Ending.NOT:
        return f"Not answered: {clean(answer.reason)}."
    if answer.ending is Ending.PARTLY:
        return f"{text}\nPartly answered; missing: {clean(answer.reason).rstrip('.')}."
    return text


def _source(title: str, site: str, date: str | None) -> str:
    named = [clean(part).replace("\n", " ") for part in (title, site, date or "") if part]
    return " · ".join(dict.fromkeys(named))


def _quoted(citation: Citation) -> str:
    quote = " ".join(clean(citation.fact.quote).split())
    short = quote if len(quote) <= LONGEST_QUOTE else f"{quote[:LONGEST_QUOTE].rstrip()}…"
    grade = "" if citation.fact.grade in (Grade.EXACT, Grade.NORMALISED) else f" ({citation.fact.grade})"
    return f"“{short}”{grade}"


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _escaped(text: str) -> str:
    """Plain text as Markdown that shows it; the answer's own markers stay as they are."""
    escaped = _MARKDOWN.sub(r"\\\1", clean(text).replace("\n", " "))
    return re.sub(r"\\\[(\d+(?:, ?\d+)*)\\\]", r"[\1]", escaped)


def _link(url: str) -> str:
    return re.sub(r"[<>\s]", "", clean(url))
