"""The records that travel down a pipeline, in the order in which they arise.

    Question → Plan → Hit → Page → Fact → Answer (with its Citations)

All are frozen and hold content only: no clock, no latency, no usage. What making one
took is in its receipt (`ledger.py`).
"""

import unicodedata
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

LONGEST_QUESTION = 20_000  # characters


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Question(Record):
    """What the user asked, in Unicode form C, without surrounding white space."""

    text: str

    @field_validator("text")
    @classmethod
    def _is_a_question(cls, text: str) -> str:
        text = unicodedata.normalize("NFC", text).strip()
        if not any(char.isalnum() for char in text):
            raise ValueError("the question is empty")
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            raise ValueError("the question holds bytes that are not text")
        if len(text) > LONGEST_QUESTION:
            raise ValueError(f"the question has {len(text):,} characters; at most {LONGEST_QUESTION:,} are read")
        return text


class Plan(Record):
    """Whether the web is needed, and what to ask search engines (1–3 queries if so)."""

    needs_search: bool
    queries: tuple[str, ...] = ()
    reason: str = ""


class Hit(Record):
    """One search result. `rank` counts from 1 within the list that holds it."""

    url: str
    title: str
    snippet: str = ""
    rank: int
    date: str | None = None  # YYYY-MM-DD, as the engine gives it


class Outcome(StrEnum):
    """What became of a page that was to be read."""

    OK = "ok"
    BLOCKED = "blocked"
    NEEDS_JAVASCRIPT = "needs JavaScript"
    LOGIN = "login or paywall"
    TOO_LARGE = "too large"
    WRONG_TYPE = "wrong type"
    EMPTY = "empty"
    REFUSED_ADDRESS = "refused address"
    GONE = "gone"


class Page(Record):
    """A document and its main text. Only `ok` pages have text that may become evidence."""

    url: str  # where it was finally read
    asked: str = ""  # the URL that was asked for, where it led elsewhere
    outcome: Outcome
    title: str = ""
    site: str = ""  # "Bureau of Labor Statistics", else the host
    text: str = ""
    date: str | None = None  # YYYY-MM-DD
    date_origin: str = ""  # which element said so: "meta article:published_time", …
    language: str = ""  # BCP 47, as declared
    media_type: str = ""  # by content: "text/html", "application/pdf", …
    charset: str = ""  # "windows-1251 (meta)": what was used, and who said so
    cut: bool = False  # text beyond the size cap was left out
    detail: str = ""  # why the outcome is what it is, where it is not ok


class Grade(StrEnum):
    """How surely a quote stands in the stored text, best first."""

    EXACT = "exact"
    NORMALISED = "normalised"  # up to Unicode form, white space, quotes and dashes
    FUZZY = "fuzzy"
    SNIPPET = "snippet"  # it stands in a search result's snippet; the page was not read


class Fact(Record):
    """A claim with the verbatim quote that carries it.

    `page_text[start:end] == quote` for the page whose text has the digest `page`
    (for the grade *snippet*, of the hit's snippet). `before` and `after` are the quote's
    surroundings, so that it can be checked when the page is no longer stored.
    """

    claim: str
    quote: str
    start: int
    end: int
    grade: Grade
    url: str
    title: str = ""
    site: str = ""
    date: str | None = None
    page: str
    before: str = ""
    after: str = ""


class Citation(Record):
    """`answer.text[start:end]` is the passage that `fact` is cited for, as source `number`."""

    number: int
    start: int
    end: int
    fact: Fact


class Ending(StrEnum):
    """How a run ended, each with the exit code of `research ask`."""

    ANSWERED = "answered"
    WITHOUT_SEARCH = "answered without search"
    PARTLY = "partly answered"
    NOT = "not answered"

    @property
    def exit_code(self) -> int:
        return {Ending.PARTLY: 3, Ending.NOT: 4}.get(self, 0)


Mark = Literal["supported", "partly", "unsupported", "uncited"]


class Sentence(Record):
    """`answer.text[start:end]`, and how the quotes it cites bear it out."""

    start: int
    end: int
    status: Mark
    reason: str = ""  # "3.1 percent stands in no cited quote"


class Value(Record):
    """What one source says where sources differ. `number` is that of its citations, 0 where it is not cited."""

    value: str  # as the source spells it
    number: int
    fact: Fact


class Disagreement(Record):
    """Values that differ for the same thing, one for each source."""

    values: tuple[Value, ...]


class Reference(Record):
    """A page that was read and is not cited: it was passed over, or it is a copy of one that counts for both."""

    url: str
    title: str = ""
    site: str = ""
    date: str | None = None
    copy_of: str = ""  # the URL of the page that counts


Cause = Literal["", "no evidence", "not in the sources", "false premise", "conflicting"]


class Answer(Record):
    """What the user gets. Markers `[n]` in `text` point to `citations` of that number.

    `cause` is the kind of `reason`: why there is no answer, or only a part of one. With an
    answer it is "conflicting" where sources differ about what is cited, else empty.
    """

    text: str
    ending: Ending
    reason: str = ""  # why it is not (wholly) answered
    cause: Cause = ""
    citations: tuple[Citation, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    notes: tuple[str, ...] = ()  # what the reader should know: "answered without search", …
    removed_markers: int = 0  # markers that named no fact
    as_of: str = ""  # YYYY-MM-DD
    newest: str = ""  # the date of the newest cited source, YYYY-MM-DD
    disagreements: tuple[Disagreement, ...] = ()
    copies: tuple[Reference, ...] = ()  # pages that carry the text of another: they count once
    uncited: tuple[Reference, ...] = ()  # pages with facts that the answer does not use
    verification: Literal["none", "done", "failed"] = "none"  # whether a model has checked the sentences too
