"""Mojeek's result pages. Parameters: https://www.mojeek.com/support/api/search/request_parameters.html"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base import Options
from .base import MOST_BOXES, TOO_INTRICATE, Call, EngineReply, Row, State, asked, page, reply, without_results

_RECENCY = {"day": "day", "week": "month", "month": "month", "year": "year"}  # a week is no choice of Mojeek's


@dataclass(frozen=True)
class Mojeek:
    base: str = "https://www.mojeek.com/search"
    name: str = "mojeek"
    disabled: str = ""

    def request(self, query: str, top: int, options: Options) -> Call:
        params = {"q": asked(query)}
        if options.language:
            params["lb"] = options.language.lower()
        if options.region:
            params["rb"] = options.region.upper()
        if options.recency:
            params["since"] = _RECENCY[options.recency]
        return Call("GET", self.base, params)

    def parse(self, status: int, body: bytes) -> EngineReply:
        tree = page(body)
        if tree is None:
            return TOO_INTRICATE
        rows = []
        for item in tree.css("ul.results-standard > li")[:MOST_BOXES]:
            title = item.css_first("h2 a.title")
            if title is not None and re.match(r"r\d+\b", item.attributes.get("class") or ""):
                snippet = item.css_first("p.s")
                rows.append(Row(title.attributes.get("href"), title.text(), snippet.text() if snippet else ""))
        if rows and status < 300:
            return reply(rows)
        if b"automated queries" in body:
            return EngineReply(State.BLOCKED, detail="it takes this for automated queries; wait, or choose another")
        return without_results(status, body, empty=b"No pages found matching" in body)
