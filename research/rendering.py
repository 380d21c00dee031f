"""An answer as text to read: for a terminal and as Markdown. Links and sources are written here, by the program.

A sentence that its quotes don't bear out is marked where it stands, and the reason is
told below. Nothing of a page or a model reaches the reader but through `output`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from . import output
from .output import clean, on_one_line
from .records import Answer, Citation, Ending, Fact, Grade, Sentence

LONGEST_QUOTE = 300  # characters shown under a source
LONGEST_SENTENCE = 100  # characters of one that is called into question
MARKS = {"partly": "(partly supported)", "unsupported": "(unsupported)", "uncited": "(no source)"}
Labels = Mapping[int, str]

_MARKERS = re.compile(r"\[\d{1,3}\](?:[ \t]?\[\d{1,3}\])*+")  # four digits are a year
_ESCAPED_MARKER = re.compile(r"\\\[(\d{1,4})\\\]")
_ITEM = re.compile(r"(?:[-*•]|(\d{1,3})[.)])[ \t]+(?=\S)")
_ENGLISH = "This is what the sources say about it, and it is what has been found in them."


def by_number(answer: Answer) -> dict[int, list[Citation]]:
    """The citations of each source, in the order of their numbers, each quote once."""
    sources: dict[int, dict[str, Citation]] = {}
    for citation in sorted(answer.citations, key=lambda one: one.number):
        sources.setdefault(citation.number, {}).setdefault(citation.fact.quote, citation)
    return {number: list(quotes.values()) for number, quotes in sources.items()}


def plain(answer: Answer, width: int = 88, by_name: bool = False) -> str:
    """For a terminal: no control characters, wrapped to `width` columns."""
    names = labels(answer, by_name)
    parts = [_wrapped(clean(line), width) for line in before(answer)]
    for is_code, block in blocks(told(answer, names)):
        parts.append(textwrap.indent(clean(block), "    ") if is_code else _wrapped(on_one_line(block), width))
    parts += [_wrapped(line, width) for line in after(answer)]
    for title, rows in (("Sources differ", differing(answer, names)), ("Sources", sources(answer, names))):
        if rows:
            parts += [title, "\n".join(row.plain(width) for row in rows)]
    if answer.uncited:
        parts.append(
            _wrapped(f"Read, not cited: {', '.join(_site(one.url, one.site) for one in answer.uncited)}", width)
        )
    if told_beside := [_wrapped(f"Note: {on_one_line(note)}", width, "      ") for note in notes(answer)]:
        parts.append("\n".join(told_beside))
    return "\n\n".join(parts) + "\n"


def markdown(question: str, answer: Answer, by_name: bool = False) -> str:
    """A document with the question as its heading; whatever came from a page or a model is escaped."""
    names = labels(answer, by_name)
    parts = [f"# {output.markdown(question)}", *(f"*{output.markdown(line)}*" for line in before(answer))]
    for is_code, block in blocks(told(answer, names)):
        parts.append(output.markdown_code(_inside(block)) if is_code else _paragraph(block))
    parts += [f"*{output.markdown(line)}*" for line in after(answer)]
    for title, rows in (("Sources differ", differing(answer, names)), ("Sources", sources(answer, names))):
        if rows:
            parts += [f"## {title}", "\n".join(row.markdown() for row in rows)]
    if answer.uncited:
        rows = [Row("", _source(one.title, one.site, one.date), one.url) for one in answer.uncited]
        parts += ["## Read, not cited", "\n".join(row.markdown() for row in rows)]
    parts += [f"Note: {output.markdown(note)}" for note in notes(answer)]
    return "\n\n".join(parts) + "\n"


class Row(NamedTuple):
    """A source as it is listed: what it is called by, what it is, where, and what it says."""

    label: str
    head: str
    url: str
    quotes: tuple[str, ...] = ()
    marker: str = ""  # of a source that is listed elsewhere too

    def plain(self, width: int) -> str:
        lines = [_wrapped(" ".join(part for part in (self.label, self.head, self.marker) if part), width, "    ")]
        lines.append(f"    {output.web_address(self.url) or on_one_line(self.url)}")
        return "\n".join([*lines, *(_wrapped(f"    {quote}", width, "    ") for quote in self.quotes)])

    def markdown(self) -> str:
        parts = [_unescaped(output.markdown(self.label)), output.markdown_within(self.head), self.marker]
        head = " ".join(["-", *filter(None, parts), output.markdown_link(self.url)])
        return "\n".join([head, *(f"  > {output.markdown(quote)}" for quote in self.quotes)])


def before(answer: Answer) -> list[str]:
    """What must be known before the answer is read."""
    if answer.ending is Ending.NOT and answer.text:
        return [f"Not answered{_cause(answer)}."]
    return list(answer.notes[:1]) if answer.ending is Ending.WITHOUT_SEARCH else []


def notes(answer: Answer) -> tuple[str, ...]:
    return answer.notes[1:] if answer.ending is Ending.WITHOUT_SEARCH else answer.notes


def after(answer: Answer) -> list[str]:
    """Under the answer: how it ended, what its sentences lack, and of when it is."""
    lines = []
    reason = on_one_line(answer.reason).rstrip(".")
    if answer.ending is Ending.NOT and not answer.text:
        lines.append(f"Not answered{_cause(answer)}: {reason}.")
    if answer.ending is Ending.PARTLY:
        lines.append(f"Partly answered; missing: {reason}.")
    wanting = [one for one in answer.sentences if one.status != "supported"]
    if wanting:
        lines.append(f"{len(answer.sentences) - len(wanting)} of {len(answer.sentences)} sentences are supported.")
        lines += [f"{MARKS[one.status]} {_short(answer, one)}: {one.reason}" for one in wanting if one.reason]
    if answer.as_of:
        newest = f" The newest cited source is of {clean(answer.newest)}." if answer.newest else ""
        lines.append(f"As of {clean(answer.as_of)}.{newest}")
    return lines


def _cause(answer: Answer) -> str:
    return f" ({answer.cause})" if answer.cause in ("false premise", "conflicting") else ""


def told(answer: Answer, names: Labels) -> str:
    """The answer's text with its marks, and with names for numbers where those are asked for."""
    edits = [(one.end, one.end, f" {MARKS[one.status]}") for one in answer.sentences if one.status != "supported"]
    if any(name != f"[{number}]" for number, name in names.items()):
        edits += _naming(answer, names)
    made, place = [], 0
    for start, end, shown in sorted(edits):
        made += [answer.text[place:start], shown]
        place = end
    return "".join([*made, answer.text[place:]])


def markers(text: str) -> list[tuple[int, int]]:
    """Where the citation markers of an answer's text stand; brackets in code are none."""
    if "`" not in text and "~~~" not in text:  # as nearly always; then nothing heavy is imported
        return [match.span() for match in _MARKERS.finditer(text)]
    from .evidence.markers import find

    return [(cluster.start, cluster.end) for cluster in find(text)]


def labels(answer: Answer, by_name: bool) -> dict[int, str]:
    """What each source is called by: its number, or its host, as its address (and not the page) says."""
    firsts = {number: citations[0].fact for number, citations in by_number(answer).items()}
    if not by_name:
        return {number: f"[{number}]" for number in firsts}
    names = {number: _site(fact.url, fact.site) for number, fact in firsts.items()}
    alike = {number: [other for other in names if names[other] == names[number]] for number in names}
    return {n: name if len(alike[n]) == 1 else f"{name} ({alike[n].index(n) + 1})" for n, name in names.items()}


def _naming(answer: Answer, names: Labels) -> Iterator[tuple[int, int, str]]:
    """Edits that put the names of sources for their numbers; none where the sentence names them itself."""
    from .evidence.languages import differ

    phrase = "" if differ(answer.text, _ENGLISH) else "according to "
    for start, end in markers(answer.text):
        sentence = next((one for one in answer.sentences if one.start <= start < one.end), None)
        told = answer.text[sentence.start : sentence.end].casefold() if sentence else ""
        numbers = dict.fromkeys(int(number) for number in re.findall(r"\d+", answer.text[start:end]))
        wanted = [names[number] for number in numbers if number in names and names[number].casefold() not in told]
        if wanted:
            yield start, end, f"({phrase}{' and '.join(wanted)})"
        else:
            yield start - (answer.text[start - 1 : start] == " "), end, ""


def sources(answer: Answer, names: Labels) -> list[Row]:
    rows = []
    for number, citations in by_number(answer).items():
        fact = citations[0].fact
        head = _source(fact.title, fact.site, fact.date) or _site(fact.url, "")
        label = names[number] if _MARKERS.fullmatch(names[number]) else f"{names[number]}:"
        rows.append(Row(label, head, fact.url, tuple(_quoted(one.fact) for one in citations)))
    return rows


def differing(answer: Answer, names: Labels) -> list[Row]:
    """The values of each disagreement, one under the other."""
    rows = []
    for value in (value for one in answer.disagreements for value in one.values):
        fact = value.fact
        head = " · ".join([_site(fact.url, fact.site), clean(fact.date or "no date")])
        name = names.get(value.number, "")
        marker = name if _MARKERS.fullmatch(name) else ""
        rows.append(Row(f"{on_one_line(value.value)}:", head, fact.url, (_quoted(fact),), marker))
    return rows


def blocks(text: str) -> list[tuple[bool, str]]:
    """`text` in lines that are not blank, and blocks of code (True), which stay whole."""
    found: list[tuple[bool, str]] = []
    place = 0
    for start, end in _fenced(text):
        found += [(False, line) for line in text[place:start].split("\n") if line.strip()]
        found.append((True, text[start:end].strip("\n")))
        place = end
    return found + [(False, line) for line in text[place:].split("\n") if line.strip()]


def _fenced(text: str) -> list[tuple[int, int]]:
    if "```" not in text and "~~~" not in text:
        return []
    from .evidence.markers import code_spans

    return [span for span in code_spans(text) if text[slice(*span)].lstrip().startswith(("```", "~~~"))]


def _inside(block: str) -> str:
    """A fenced block without its fences."""
    lines = block.split("\n")[1:]
    return "\n".join(lines[:-1] if lines and re.fullmatch(r" {0,3}(?:`{3,}|~{3,})[ \t]*", lines[-1]) else lines)


def _paragraph(line: str) -> str:
    """A line of the answer as Markdown: a list's item stays one, inline code stays code."""
    line = clean(line).strip()
    item = _ITEM.match(line)
    lead, line = ("", line) if item is None else (f"{item[1]}. " if item[1] else "- ", line[item.end() :])
    spans: list[tuple[int, int]] = []
    if "`" in line:
        from .evidence.markers import code_spans

        spans = code_spans(line)
    made, place = [], 0
    for start, end in spans:
        made += [output.markdown_within(line[place:start]), output.markdown_span(line[start:end].strip("`").strip())]
        place = end
    made.append(output.markdown_within(line[place:]))
    if not lead and not spans:
        return _unescaped(output.markdown(line))
    return lead + "".join(part if part.startswith("`") else _unescaped(part) for part in made)


def _unescaped(markdown: str) -> str:
    """The program's own markers, readable; nothing in the document defines a link of that name."""
    return _ESCAPED_MARKER.sub(r"[\1]", markdown)


def _short(answer: Answer, sentence: Sentence) -> str:
    text = on_one_line(_MARKERS.sub("", answer.text[sentence.start : sentence.end]))
    return f"“{text}”" if len(text) <= LONGEST_SENTENCE else f"“{text[:LONGEST_SENTENCE].rsplit(' ', 1)[0]} …”"


def _site(url: str, named: str) -> str:
    """The host of an address, or the name of a file; what a page calls itself only where there is neither."""
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(url)
        name = unquote(parts.path).rpartition("/")[2] if parts.scheme == "file" else parts.hostname or ""
    except ValueError:
        name = ""
    return on_one_line(name.removeprefix("www.") or named or url)


def _source(title: str, site: str, date: str | None) -> str:
    return " · ".join(dict.fromkeys(on_one_line(part) for part in (title, site, date or "") if part))


def _quoted(fact: Fact) -> str:
    quote = on_one_line(fact.quote)
    short = quote if len(quote) <= LONGEST_QUOTE else f"{quote[:LONGEST_QUOTE].rstrip()}…"
    return f"“{short}”" + ("" if fact.grade in (Grade.EXACT, Grade.NORMALISED) else f" ({fact.grade})")


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
