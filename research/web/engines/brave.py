"""Brave Search API: https://api-dashboard.search.brave.com/app/documentation/web-search/get-started"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..base import Options
from .base import UNKNOWN_FORM, Call, EngineReply, Row, asked, decoded, refusal, reply, rows_of

_RECENCY = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


@dataclass(frozen=True)
class Brave:
    key: str = field(default="", repr=False)
    base: str = "https://api.search.brave.com/res/v1/web/search"
    name: str = "brave"

    @property
    def disabled(self) -> str:
        return "" if self.key else "BRAVE_API_KEY is not set"

    def request(self, query: str, top: int, options: Options) -> Call:
        params = {"q": asked(query), "count": str(min(max(top, 1), 20)), "result_filter": "web"}
        if options.region:
            params["country"] = options.region.upper()
        if options.language:
            params["search_lang"] = options.language.lower()
        if options.recency:
            params["freshness"] = _RECENCY[options.recency]
        return Call("GET", self.base, params, {"X-Subscription-Token": self.key, "Accept": "application/json"})

    def parse(self, status: int, body: bytes) -> EngineReply:
        if refused := refusal(status, "check BRAVE_API_KEY and its plan"):
            return refused
        answer = decoded(body)
        if answer is None or answer.get("type") != "search":
            return UNKNOWN_FORM
        web = answer.get("web")
        if web is not None and not (isinstance(web, dict) and isinstance(web.get("results"), list)):
            return UNKNOWN_FORM
        found = web["results"] if web else []
        return reply(
            Row(row.get("url"), row.get("title"), row.get("description"), row.get("page_age")) for row in rows_of(found)
        )
