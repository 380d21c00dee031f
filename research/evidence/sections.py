"""The parts of a page that are no evidence: reference lists, navigation, comments.

Recognised conservatively, by a heading and by what follows it: to drop an article's own
words would be worse than to keep a menu.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_END_MATTER = re.compile(
    r"(?:notes and |footnotes and )?references?(?: and notes)?|bibliography|works cited|literature cited|citations"
    r"|footnotes|endnotes|notes|sources|further reading|external links|see also|reference list"
    r"|einzelnachweise|literatur|quellen|weblinks|siehe auch|références|bibliographie|notes et références"
    r"|liens externes"
    r"|referencias|bibliografía|enlaces externos|véase también|bibliografia|note|collegamenti esterni|referências"
    r"|参考文献|脚注|注釈|外部リンク|参考资料|参考資料|외부 링크|각주|примечания|литература|ссылки",
    re.IGNORECASE,
)
_COMMENTS = re.compile(
    r"(?:\d{1,6} )?(?:reader |user )?(?:comments?|responses|replies|kommentare|commentaires|comentarios|commenti)"
    r"(?: ?\(\d{1,6}\)|: ?\d{1,6})?|leave a (?:comment|reply)|join the (?:conversation|discussion)|post a comment",
    re.IGNORECASE,
)
_COMMENT_SIGN = re.compile(
    r"\breply\b|\bsays:|\bwrote:|\b\d+ (?:minutes?|hours?|days?|weeks?|months?|years?) ago\b"
    r"|log ?in to (?:comment|reply)"
    r"|\b(?:up|down)vote|\breport abuse\b|your email address will not be published|antworten|répondre|responder",
    re.IGNORECASE,
)
_REFERENCE_SIGN = re.compile(
    r"https?://|www\.|\bdoi\b|\bisbn\b|\bissn\b|\bpp?\. ?\d|\bet al\b|\bvol\. ?\d|retrieved|accessed|archived"
    r"|\((?:1[5-9]|20)\d\d[a-z]?\)|^\W*\[?\d{1,3}[\].)] ?|^\W*\^|\babgerufen\b|consulté le",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_MENU_WORDS = (
    "home|about|about us|contact|contact us|log in|login|sign in|sign up|register|subscribe|privacy|privacy policy|"
    "terms|terms of use|terms of service|terms and conditions|cookie policy|cookies|menu|search|newsletter|"
    "skip to content|skip to main content|skip to navigation|advertise|advertise with us|careers|jobs|sitemap|site map|"
    "faq|help|share|facebook|twitter|x|instagram|linkedin|youtube|pinterest|whatsapp|rss|my account|cart|shop|"
    "accessibility|next|previous|read more|more|follow us|back to top|email|print|donate|impressum|datenschutz|kontakt|"
    "startseite|anmelden|accueil|mentions légales|inicio|contacto|アクセス|お問い合わせ|ホーム"
)
_MENU = frozenset(_MENU_WORDS.split("|"))
_PARTS = re.compile(r"\s*[|·•»›/]\s*")
_LONGEST_HEADING = 60
_PROSE = 160  # characters: a line this long that looks like no reference ends a list of references
_RUN = 5  # short lines in a row that may be a menu
_KNOWN = 3  # of them, or of the parts of one line, that menus are known for


class _Line(NamedTuple):
    start: int
    end: int
    text: str  # without list and heading signs

    def is_heading(self, pattern: re.Pattern[str]) -> bool:
        return len(self.text) <= _LONGEST_HEADING and pattern.fullmatch(self.text.strip(" :.")) is not None


def non_evidence_spans(text: str) -> list[tuple[int, int]]:
    """Where `text` is no evidence, as (start, end) in order, none overlapping."""
    lines = list(_lines(text))
    found = [*_menus(lines), *_end_matter(text, lines), *_comments(text, lines)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _lines(text: str) -> Iterator[_Line]:
    for match in re.finditer(r"[^\n]+", text):
        line = match[0].strip().strip("#*_=- \t")
        if line:
            yield _Line(match.start(), match.end(), line)


def _menus(lines: list[_Line]) -> Iterator[tuple[int, int]]:
    run: list[_Line] = []
    for line in lines:
        parts = _PARTS.split(line.text) if len(line.text) <= 2_000 else []
        if len(parts) >= _KNOWN and _known(parts) >= min(_KNOWN, len(parts)):
            yield line.start, line.end
        if len(line.text) <= 32 and not re.search(r"[\d.!?:;|]", line.text):
            run.append(line)
            continue
        yield from _menu(run)
        run = []
    yield from _menu(run)


def _menu(run: list[_Line]) -> Iterator[tuple[int, int]]:
    if len(run) >= _RUN and _known([line.text for line in run]) >= _KNOWN:
        yield run[0].start, run[-1].end


def _known(parts: list[str]) -> int:
    return sum(part.strip().lower() in _MENU for part in parts)


def _end_matter(text: str, lines: list[_Line]) -> Iterator[tuple[int, int]]:
    """Lists of references: a heading, then lines of which most look like references."""
    after = 0
    for number, line in enumerate(lines):
        if number < after or not line.is_heading(_END_MATTER):
            continue
        last = number
        for after in range(number + 1, len(lines)):
            if not _goes_on(text, lines[after]):
                break
            last = after
        listed = lines[number + 1 : last + 1]
        signs = sum(any(sign.search(item.text[:600]) for sign in (_REFERENCE_SIGN, _YEAR)) for item in listed)
        if listed and 2 * signs >= len(listed):
            yield line.start, lines[last].end


def _goes_on(text: str, line: _Line) -> bool:
    """Whether a line still belongs to a list of references: no new section, no prose."""
    if line.is_heading(_END_MATTER):
        return True
    if text[line.start : line.start + 4].lstrip().startswith("#") or line.is_heading(_COMMENTS):
        return False
    return len(line.text) < _PROSE or _REFERENCE_SIGN.search(line.text[:600]) is not None


def _comments(text: str, lines: list[_Line]) -> Iterator[tuple[int, int]]:
    """From a heading in the page's later part to its end, where the next lines look like comments."""
    for number, line in enumerate(lines):
        if 3 * line.start < len(text) or not line.is_heading(_COMMENTS):
            continue
        following = lines[number + 1 : number + 13]
        if sum(_COMMENT_SIGN.search(item.text[:600]) is not None for item in following) >= min(2, len(following)) > 0:
            yield line.start, len(text)
            return
