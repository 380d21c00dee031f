"""A SearXNG instance of the user's: https://docs.searxng.org/dev/search_api.html"""

from __future__ import annotations

from dataclasses import dataclass

from ..base import Options
from .base import UNKNOWN_FORM, Call, EngineReply, Row, State, asked, decoded, refusal, reply, rows_of

_SWITCHED_OFF = "its JSON interface is off: add `json` to search.formats in its settings.yml"


@dataclass(frozen=True)
class SearXNG:
    """`base` is the instance's address, with or without /search at the end."""

    base: str = ""
    name: str = "searxng"

    @property
    def disabled(self) -> str:
        return "" if self.base else "SEARXNG_URL is not set: give it the address of an instance"

    def request(self, query: str, top: int, options: Options) -> Call:
        params = {"q": asked(query), "format": "json"}
        if options.language:
            region = f"-{options.region.upper()}" if options.region else ""
            params["language"] = options.language.lower() + region
        if options.recency:
            params["time_range"] = options.recency
        return Call("GET", self.base.rstrip("/").removesuffix("/search") + "/search", params)

    def parse(self, status: int, body: bytes) -> EngineReply:
        if status == 403:
            return EngineReply(State.BLOCKED, detail=f"status 403: its limiter refuses, or {_SWITCHED_OFF}")
        if refused := refusal(status):
            return refused
        answer = decoded(body)
        if answer is None:
            page = body.lstrip()[:1] == b"<"
            return EngineReply(State.DISABLED, detail=_SWITCHED_OFF) if page else UNKNOWN_FORM
        if not isinstance(answer.get("results"), list):
            return UNKNOWN_FORM
        found = reply(
            Row(row.get("url"), row.get("title"), row.get("content"), row.get("publishedDate"))
            for row in rows_of(answer["results"])
        )
        silent = answer.get("unresponsive_engines")
        if found.state is State.EMPTY and isinstance(silent, list) and silent:
            return EngineReply(State.DEGRADED, dropped=found.dropped, detail=_who(silent))
        return found


def _who(silent: list[object]) -> str:
    """SearXNG lists [engine, reason] pairs."""
    names = [str(entry[0])[:40] for entry in silent if isinstance(entry, list) and entry]
    return f"no results, while {', '.join(names[:5]) or 'engines'} did not respond; check the instance"
