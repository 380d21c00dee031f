"""Wikipedia's full-text search, and any other MediaWiki's: https://www.mediawiki.org/wiki/API:Search"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from ..base import Options
from .base import UNKNOWN_FORM, Call, EngineReply, Row, State, asked, decoded, refusal, reply, rows_of

_DEFAULT = "https://en.wikipedia.org/w/api.php"
_BUSY = ("ratelimited", "maxlag", "readonly")


@dataclass(frozen=True)
class Wikipedia:
    """`base` is the wiki's api.php; pages are taken to be at /wiki/TITLE of the same host.

    A language option chooses another Wikipedia, unless a base of one's own is set.
    """

    base: str = _DEFAULT
    name: str = "wikipedia"
    disabled: str = ""

    def request(self, query: str, top: int, options: Options) -> Call:
        base = self.base
        if options.language.isascii() and options.language.isalpha() and base == _DEFAULT:
            base = base.replace("en.", f"{options.language.lower()}.", 1)
        params = {
            "action": "query",
            "list": "search",
            "srsearch": asked(query),
            "srlimit": str(min(max(top, 1), 50)),
            "srprop": "snippet",
            "format": "json",
            "formatversion": "2",
            "meta": "siteinfo",  # says which wiki answers: parse() is not told the call
        }
        return Call("GET", base, params)

    def parse(self, status: int, body: bytes) -> EngineReply:
        if refused := refusal(status):
            return refused
        answer = decoded(body)
        if answer is None:
            return UNKNOWN_FORM
        if isinstance(answer.get("error"), dict):
            return _refused(answer["error"])
        query = answer.get("query")
        if not isinstance(query, dict) or not isinstance(query.get("search"), list):
            return UNKNOWN_FORM
        pages = self._pages(query.get("general"))
        return reply(
            Row(_address(pages, found.get("title")), found.get("title"), found.get("snippet"))
            for found in rows_of(query["search"])
        )

    def _pages(self, general: object) -> str:
        """What titles are appended to: on the host that was asked, or on the Wikipedia that says it answered."""
        own = urlsplit(self.base)
        said = general.get("server") if isinstance(general, dict) else None
        if self.base == _DEFAULT and isinstance(said, str) and said.endswith(".wikipedia.org"):
            return f"{said}/wiki/"
        return f"{own.scheme}://{own.netloc}/wiki/"


def _address(pages: str, title: object) -> object:
    if not isinstance(title, str):
        return None
    return pages + quote(title.replace(" ", "_"), safe="/:@!$'()*,;~-._")


def _refused(error: Mapping[str, Any]) -> EngineReply:
    code = str(error.get("code", "unknown"))[:60]
    if code in _BUSY:
        return EngineReply(State.BLOCKED, detail=f"it answers {code}; wait, or choose another engine")
    if code.endswith("disabled"):
        return EngineReply(State.DISABLED, detail=f"it answers {code}; choose another engine")
    return EngineReply(State.UNREADABLE, detail=f"it answers {code}; check the engine's address")
