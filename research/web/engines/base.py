"""What all search engines share: how one is asked, what it may answer, and which hits are let in.

An engine is two pure functions, `request` and `parse`; `chain.py` does the asking. A reply is in
one of seven states, and only `results` and `empty` are answers. Whatever an engine sends is
untrusted: URLs must be fetchable, titles and snippets become plain text, and everything has a cap.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ...records import Hit
from ..base import Options
from ..urls import is_fetchable

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

LARGEST_REPLY = 2_000_000  # bytes, decoded
MOST_HITS = 100
MOST_BOXES = 200  # places on a page where a result may be
LONGEST_URL = 2_048  # characters
LONGEST_TITLE = 300
LONGEST_SNIPPET = 2_000
LONGEST_QUERY = 400  # Brave's and Tavily's limit; DuckDuckGo's is 499


class State(StrEnum):
    """What a reply is. Only `results` and `empty` are answers; the others say that none was had."""

    RESULTS = "results"
    EMPTY = "empty"
    CAPTCHA = "captcha"
    BLOCKED = "blocked"  # refused: rate limit, forbidden
    DEGRADED = "degraded"  # it answered, but the engines behind it did not
    DISABLED = "disabled"  # key missing, refused or used up; an interface that is switched off
    UNREADABLE = "unreadable"  # fits no form that is known


@dataclass(frozen=True)
class Call:
    """One HTTP request. `json` is its body, if any."""

    method: Literal["GET", "POST"]
    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class EngineReply:
    """`dropped` counts results that were left out as unusable; `detail` says what went wrong and what to do."""

    state: State
    hits: tuple[Hit, ...] = ()
    dropped: int = 0
    detail: str = ""


class Engine(Protocol):
    """A search engine at the address `base`. `disabled`, where not empty, says why it can't be asked and what to do."""

    @property
    def name(self) -> str: ...

    @property
    def base(self) -> str: ...

    @property
    def disabled(self) -> str: ...

    def request(self, query: str, top: int, options: Options) -> Call: ...

    def parse(self, status: int, body: bytes) -> EngineReply: ...


@dataclass(frozen=True)
class Row:
    """One result as an engine gives it: nothing about it is checked yet."""

    url: object
    title: object
    snippet: object = ""
    date: object = None


def reply(rows: Iterable[Row]) -> EngineReply:
    """The usable ones of `rows` as ranked hits; the state is `empty` where none is."""
    hits: list[Hit] = []
    dropped = 0
    for row in rows:
        if len(hits) >= MOST_HITS:
            dropped += 1
            continue
        hit = _hit(row, rank=len(hits) + 1)
        if hit is None:
            dropped += 1
        else:
            hits.append(hit)
    return EngineReply(State.RESULTS if hits else State.EMPTY, tuple(hits), dropped)


def _hit(row: Row, rank: int) -> Hit | None:
    if not isinstance(row.url, str) or len(row.url) > LONGEST_URL or not is_fetchable(row.url):
        return None
    title = clean(row.title, LONGEST_TITLE)
    if not title:
        return None
    return Hit(url=row.url, title=title, snippet=clean(row.snippet, LONGEST_SNIPPET), rank=rank, date=day(row.date))


_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,500}>|<!--[^<>]{0,500}-->")


def clean(text: object, longest: int) -> str:
    """`text` as one line without HTML, control and invisible format characters; "" for what is no text.

    >>> clean("<b>Rain</b> &amp;\\x1b[31m\\n snow", 100)
    'Rain &[31m snow'
    """
    if not isinstance(text, str):
        return ""
    text = _TAG.sub("", html.unescape(_TAG.sub("", text[: longest * 20])))
    text = "".join(char if _shown(char) else " " if char in "\t\n\r\v\f" else "" for char in text)
    return _shortened(" ".join(text.split()), longest)


def _shown(char: str) -> bool:
    # Joiners are letters' parts in Persian and Indic scripts and in emoji; other format characters hide text.
    return char in "\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn")


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def day(value: object) -> str | None:
    """The date at the head of `value` as YYYY-MM-DD: ISO 8601, RFC 5322, or "Jan 5, 2025"; None for anything else."""
    if not isinstance(value, str):
        return None
    value = value.strip()[:40]
    try:
        if iso := re.match(r"\d{4}-\d{2}-\d{2}(?!\d)", value):
            return date.fromisoformat(iso[0]).isoformat()
        if named := re.fullmatch(r"([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4})", value):
            return date(int(named[3]), _MONTHS.index(named[1]) + 1, int(named[2])).isoformat()
        return parsedate_to_datetime(value).date().isoformat()
    except ValueError:
        return None


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def asked(query: str) -> str:
    """`query` within the length that every engine takes, cut between words."""
    query = " ".join(query.split())
    if len(query) <= LONGEST_QUERY:
        return query
    return query[: LONGEST_QUERY + 1].rpartition(" ")[0] or query[:LONGEST_QUERY]


def decoded(body: bytes) -> dict[str, Any] | None:
    """The JSON object in `body`, or None where there is none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def rows_of(value: object) -> list[Mapping[str, Any]]:
    """The objects in the list `value`; anything else counts as no rows."""
    return [row if isinstance(row, dict) else {} for row in value] if isinstance(value, list) else []


def refusal(status: int, remedy: str = "") -> EngineReply | None:
    """What a status that is no success means, or None where the body has to be read."""
    if status < 300:
        return None
    if status in (401, 402, 432, 433):  # 432 and 433 are Tavily's: plan and pay-as-you-go limits
        return EngineReply(State.DISABLED, detail=f"status {status}: {remedy or 'the key was refused or is used up'}")
    if status in (403, 429):
        return EngineReply(State.BLOCKED, detail=f"status {status}: wait, or choose another engine")
    return EngineReply(State.UNREADABLE, detail=f"status {status}; try again later, or choose another engine")


UNKNOWN_FORM = EngineReply(State.UNREADABLE, detail="a reply in a form that is not known; choose another engine")

TOO_INTRICATE = EngineReply(State.UNREADABLE, detail="its page is too intricate to be parsed; choose another engine")


def page(body: bytes) -> LexborHTMLParser | None:
    """The parsed page; None for one so intricate that parsing it here would hold everything else up.

    Lexbor takes quadratic time over nesting and attributes. Real result pages have at most 3,000 tags.
    """
    if body.count(b"<") > _MOST_TAGS or _LONG_TAG.search(body):
        return None
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(body)


_MOST_TAGS = 8_000
_LONG_TAG = re.compile(rb"<[a-zA-Z!/][^<>]{8000}")

_HEAD = 200_000  # bytes in which a challenge shows itself
_CHALLENGE = re.compile(
    rb"challenge-form|anomaly-modal|cf-turnstile|cf-chl|challenge-platform|g-recaptcha|h-captcha|"
    rb"verify (?:that )?you are (?:a )?human|solve the captcha|unusual traffic",
    re.IGNORECASE,
)


def without_results(status: int, body: bytes, empty: bool) -> EngineReply:
    """The state of an HTML page on which no result was found; `empty` if it says itself that there is none."""
    if _CHALLENGE.search(body[:_HEAD]):
        return EngineReply(State.CAPTCHA, detail="it asks for a captcha; wait an hour, or choose another engine")
    if empty and status < 300:
        return EngineReply(State.EMPTY)
    return refusal(status) or UNKNOWN_FORM
