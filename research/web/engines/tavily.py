"""Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search

Its own `answer` is not asked for: an answer has to come from pages that can be cited.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..base import Options
from .base import UNKNOWN_FORM, Call, EngineReply, Row, asked, decoded, refusal, reply, rows_of


@dataclass(frozen=True)
class Tavily:
    key: str = field(default="", repr=False)
    base: str = "https://api.tavily.com/search"
    name: str = "tavily"

    @property
    def disabled(self) -> str:
        return "" if self.key else "TAVILY_API_KEY is not set"

    def request(self, query: str, top: int, options: Options) -> Call:
        body: dict[str, object] = {"query": asked(query), "max_results": min(max(top, 1), 20)}
        if options.recency:
            body["time_range"] = options.recency
        return Call("POST", self.base, headers={"Authorization": f"Bearer {self.key}"}, json=body)

    def parse(self, status: int, body: bytes) -> EngineReply:
        if refused := refusal(status, "check TAVILY_API_KEY and its plan"):
            return refused
        answer = decoded(body)
        if answer is None or not isinstance(answer.get("results"), list):
            return UNKNOWN_FORM
        return reply(
            Row(row.get("url"), row.get("title"), row.get("content"), row.get("published_date"))
            for row in rows_of(answer["results"])
        )
