"""The tools of servers that the user has set up, in one investigation.

What such a tool gives is read like a page: under a source's number, fenced, cut to the
passages that bear on the question, with a handle to read on; and cited like one. What its
server says of it is a stranger's text, and told as such.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import WebError
from ...kinds import Kind
from ...ledger import Call
from ...records import Outcome, Page
from ...store import key_of
from ...web.tidy import line, shorten
from ..job import Job
from .sources import Source, Sources

if TYPE_CHECKING:
    from ...llm.messages import Tool
    from ...mcp.offers import Offer
    from .wording import Wording

MOST_ADDRESSES = 20  # of one result, that can be fetched


@dataclass
class Served:
    """The tools on offer, by the names that a model calls them by."""

    job: Job
    words: Wording | None  # None where no server is named
    sources: Sources

    @functools.cached_property
    def offers(self) -> Mapping[str, Offer]:
        return {name: offer for server in self.job.servers.values() for name, offer in server.offers.items()}

    def tool(self, name: str) -> Tool:
        from ...llm.messages import Tool
        from ...mcp.schemas import shown

        offer = self.offers[name]
        return Tool(name, self.say("described", server=offer.server, text=self._said(offer)), shown(offer.schema))

    def action(self, name: str) -> str:
        """What a model that works by actions is told of a tool."""
        offer = self.offers[name]
        alone = _alone(offer.schema)
        schema = json.dumps(offer.schema, ensure_ascii=False, sort_keys=True)
        fenced = "" if alone else f"\n{self.job.fenced(schema, f'input of {name}')}\n"
        taken = alone or f"a JSON object, as text, that fits this schema:{fenced}"
        return self.say("action", server=offer.server, input=taken, text=self._said(offer))

    def arguments(self, name: str, text: str) -> dict[str, Any]:
        """The one input of an action as the tool's arguments."""
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, dict):
            return read
        return {_alone(self.offers[name].schema) or "input": text}

    def inputs(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A call as the inputs of the part that makes it: the tool as it is now is in the key."""
        offer = self.offers[name]
        return {"server": offer.server, "tool": name, "offer": offer.digest, "arguments": dict(arguments)}

    def told(self, name: str, outcome: Page | WebError) -> tuple[str, Source | None]:
        """What a call came to; and as a source, if it gave any text."""
        if isinstance(outcome, WebError):
            return self.say("failed", tool=name, reason=self.job.fenced(str(outcome), name)), None
        if outcome.outcome is not Outcome.OK:
            return self.say("empty", tool=name), None
        return "", self.sources.given(outcome)

    def result(self, name: str, source: Source, text: str, whole: bool) -> str:
        """`text`, which is what is shown of a source, as the result of a call."""
        assert source.page is not None
        told = {"number": source.number, "tool": name, "length": f"{len(source.page.text):,}", "text": text}
        told["addresses"] = self._addresses(source.page.text, name)
        return self.say("whole", **told) if whole else self.say("passages", handle=source.handle, **told)

    def _addresses(self, text: str, name: str) -> str:
        """The addresses in a result, which are sources from now on: as in search results, exact ones alone."""
        found = self.sources.named(text, MOST_ADDRESSES)
        listed = "\n".join(f"[{source.number}] {source.url}" for source in found)
        return self.say("addresses", listed=self.job.fenced(listed, f"addresses in {name}")) if found else ""

    def _said(self, offer: Offer) -> str:
        return self.job.fenced(offer.said or "(nothing)", f"description of {offer.name}")

    def say(self, form: str, **values: object) -> str:
        assert self.words is not None
        return self.words.say(form, **values)


def _alone(schema: Mapping[str, Any]) -> str:
    """The one argument that must be given, if that is text; else nothing."""
    required, properties = schema.get("required", []), schema["properties"]
    names = required or list(properties)
    return names[0] if len(names) == 1 and properties.get(names[0], {}).get("type") == "string" else ""


async def call(job: Job, server: str, tool: str, offer: str, arguments: Mapping[str, Any], web_date: str = "") -> Page:
    """Raises: WebError."""
    running = job.servers[server]
    wanted = running.offers[tool]
    job.receipt.calls.append(Call("tool", f"mcp:{server}"))
    text, cut = shorten(await running.call(wanted, arguments))
    given = ", ".join(f"{name}: {value}" for name, value in arguments.items())
    return Page(
        url=f"mcp:{tool}/{key_of([offer, arguments])[:12]}",
        outcome=Outcome.OK if text else Outcome.EMPTY,
        title=shorten(line(f"{tool} ({given})"), 120)[0],
        site=f"{server}, a server of tools",
        text=text,
        cut=cut,
    )


TOOL = Kind(
    "mcp", 1, call, Page, {"server": str, "tool": str, "offer": str, "arguments": Any}, {"web_date": str}, web="tools"
)
