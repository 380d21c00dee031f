"""Links that a model wrote, taken out: links and lists of sources are the program's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_LINK = re.compile(
    r"!?\[(?P<label>(?:[^\[\]\n]|\[[^\[\]\n]{0,300}\]){0,500}?)\]"
    r"\(\s{0,3}(?:<[^<>\n]{0,2000}>|(?:[^\s()]|\([^\s()]{0,500}\)){0,2000})"
    r"(?:\s{1,3}(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'))?\s{0,3}\)"
)
_TAG = re.compile(r"</?(?:a|img|iframe|script|style|link|form|object|embed|svg|video|audio|sup)\b[^<>]{0,4000}>", re.I)
_DEFINITION = re.compile(r"^([ ]{0,3}\[[^\[\]\n]{1,200}\]):[ \t]{0,10}(?=\S)", re.MULTILINE)
_ADDRESS = re.compile(
    r"<?(?:(?:https?|ftp|file)://?|\b(?:mailto:|www\.))(?P<rest>[^\s<>\[\]【】\"'`|]{1,4000})>?", re.I
)
_SCRIPT = re.compile(r"\b(?:javascript|data|vbscript):(?=\S)", re.I)
_HOST = re.compile(r"(?:[^/?#@\s]{0,200}@)?(?:www\.)?([\w.\-]{1,253})")
_TRAILING = ".,;:!?)»”’。、"
_ROUNDS = 5  # an image inside a link inside a link


@dataclass(frozen=True)
class ParsedText:
    """A text without links, and how many it had."""

    text: str
    links: int


def delinked(text: str, code_spans: Callable[[str], list[tuple[int, int]]], marker: re.Pattern[str]) -> ParsedText:
    """`text` with links reduced to their words and addresses to their host, outside of code.

    A link around a marker leaves the marker. Definitions of links lose their colon, so
    that no Markdown reader turns a marker into a link to a model's address.
    """
    links = 0
    for _ in range(_ROUNDS):
        made, place = [], 0
        found = 0
        for start, end in [*code_spans(text), (len(text), len(text))]:
            prose, count = _without_links(text[place:start], marker)
            found += count
            made += [prose, text[start:end]]
            place = end
        text = "".join(made)
        links += found
        if not found:
            break
    return ParsedText(text, links)


def _without_links(prose: str, marker: re.Pattern[str]) -> tuple[str, int]:
    def label(match: re.Match[str]) -> str:
        words = match["label"]
        return f"[{words}]" if marker.fullmatch(f"[{words}]") else words

    count = 0
    steps = ((_TAG, ""), (_LINK, label), (_LINK, label), (_DEFINITION, r"\1 "), (_ADDRESS, _host), (_SCRIPT, ""))
    for pattern, replacement in steps:
        prose, replaced = pattern.subn(replacement, prose)
        count += replaced
    return prose, count


def _host(match: re.Match[str]) -> str:
    address = match["rest"]
    tail = address[len(address.rstrip(_TRAILING)) :]
    host = _HOST.match(address)
    name = host[1].rstrip(".-") if host else ""
    return name + tail.replace(")", "", 1) if "(" in address else name + tail
