"""`research show RUN --evidence`: what each sentence of an answer rests on, quote by quote."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import TextIO

from .. import output
from ..records import Answer, Citation, Fact, Sentence

# Terminals that are known to make links of OSC 8, by what they set (as in the npm package supports-hyperlinks).
_KNOWN = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM", "ALACRITTY_WINDOW_ID", "GHOSTTY_RESOURCES_DIR")
_PROGRAMS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "Tabby")
_OLDEST_VTE = 5000


def links(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether `stream` is a terminal that makes links of OSC 8. `FORCE_HYPERLINK` (0 or 1) decides where it is set."""
    forced = environment.get("FORCE_HYPERLINK")
    if forced is not None:
        return forced not in ("", "0", "false")
    if not stream.isatty() or environment.get("TERM", "dumb") in ("dumb", "linux"):
        return False
    vte = environment.get("VTE_VERSION", "")
    recent = vte.isdigit() and int(vte) >= _OLDEST_VTE
    return recent or environment.get("TERM_PROGRAM") in _PROGRAMS or any(name in environment for name in _KNOWN)


def show(answer: Answer) -> None:
    """Prints the evidence of an answer."""
    from .columns import columns

    for line in lines(answer, links(sys.stdout), columns()):
        print(line)


def lines(answer: Answer, linked: bool = False, width: int = 88) -> Iterator[str]:
    """The view, line by line; with `linked`, addresses open the page at the quote."""
    from ..evidence.checks import citation_precision, citation_recall

    if not answer.sentences:
        reason = output.on_one_line(answer.reason) or "no sentence cites a source"
        yield _wrapped(f"{answer.ending.value.capitalize()}: {reason}.", width)
    for sentence in answer.sentences:
        yield from _sentence(answer, sentence, linked, width)
    for one in answer.disagreements:
        yield from ("", "Sources differ")
        for value in one.values:
            yield from _quote(value.fact, f"{output.on_one_line(value.value)}", linked, width)
    shares = {"recall": citation_recall(answer), "precision": citation_precision(answer)}
    told = ", ".join(f"{name} {share:.2f}" for name, share in shares.items() if share is not None)
    if told:
        yield from ("", _wrapped(f"Citations: {told}. {_checked(answer)}", width))


def _checked(answer: Answer) -> str:
    how = {"none": "by rules", "done": "by rules and by a model", "failed": "by rules; the check by a model failed"}
    return f"Checked {how[answer.verification]}."


def _sentence(answer: Answer, sentence: Sentence, linked: bool, width: int) -> Iterator[str]:
    yield ""
    yield _wrapped(output.on_one_line(answer.text[sentence.start : sentence.end]), width)
    reason = f": {output.on_one_line(sentence.reason)}" if sentence.reason else ""
    yield _wrapped(f"  {sentence.status}{reason}", width, "  ")
    for citation in _cited(answer, sentence):
        yield from _quote(citation.fact, f"[{citation.number}]", linked, width)


def _cited(answer: Answer, sentence: Sentence) -> list[Citation]:
    return [one for one in answer.citations if sentence.start <= one.start and one.end <= sentence.end]


def _quote(fact: Fact, label: str, linked: bool, width: int) -> Iterator[str]:
    """A quote between «» in its surroundings, and where it stands."""
    source = " · ".join(output.on_one_line(part) for part in (fact.title, fact.site, fact.date or "") if part)
    yield ""
    yield _wrapped(f"  {label} {source} ({fact.grade})", width, "      ")
    before, quote, after = (output.on_one_line(part) for part in (fact.before, fact.quote, fact.after))
    opening, closing = ("… " if before else "", " …" if after else "")
    told = " ".join(part for part in (f"{opening}{before}".strip(), f"«{quote}»", f"{after}{closing}".strip()) if part)
    yield _wrapped(f"      {told}", width, "      ")
    address = output.web_address(fact.url)
    shown = address or output.on_one_line(fact.url)
    yield "      " + (output.terminal_link(output.at_quote(fact.url, fact.quote), shown) if linked else shown)


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
