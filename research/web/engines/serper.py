"""Serper, Google's results as JSON: https://serper.dev (POST /search)"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..base import Options
from .base import UNKNOWN_FORM, Call, EngineReply, Row, asked, decoded, refusal, reply, rows_of

_RECENCY = {"day": "qdr:d", "week": "qdr:w", "month": "qdr:m", "year": "qdr:y"}


@dataclass(frozen=True)
class Serper:
    key: str = field(default="", repr=False)
    base: str = "https://google.serper.dev/search"
    name: str = "serper"

    @property
    def disabled(self) -> str:
        return "" if self.key else "SERPER_API_KEY is not set"

    def request(self, query: str, top: int, options: Options) -> Call:
        body: dict[str, object] = {"q": asked(query), "num": min(max(top, 1), 100)}
        if options.region:
            body["gl"] = options.region.lower()
        if options.language:
            body["hl"] = options.language.lower()
        if options.recency:
            body["tbs"] = _RECENCY[options.recency]
        return Call("POST", self.base, headers={"X-API-KEY": self.key}, json=body)

    def parse(self, status: int, body: bytes) -> EngineReply:
        if refused := refusal(401 if status == 403 else status, "check SERPER_API_KEY and its credits"):
            return refused
        answer = decoded(body)
        if answer is None or not isinstance(answer.get("organic"), list):
            return UNKNOWN_FORM
        return reply(
            Row(row.get("link"), row.get("title"), row.get("snippet"), row.get("date"))
            for row in rows_of(answer["organic"])
        )
