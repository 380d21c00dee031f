"""The answer of a model that works by actions: one sentence for each source that was read, by schema.

Small models that lose their way in a long conversation, and cite at random in free text,
say rightly what one short passage tells. So the end is a request of its own, short, with
the best passages alone; the citations are written by the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import MalformedError
from .sources import Source
from .tools import Toolbox

if TYPE_CHECKING:
    from ...llm.messages import Request

SENTENCES = 4  # of a page that are shown, and that may be said of it
MOST = 6  # sources
LONGEST = 200  # tokens that may be said of one; a small model that begins to repeat itself does not end
CUT = "what else the sources tell: the model's reply was cut off"


@dataclass(frozen=True)
class Keyed:
    """The last request of such a loop, and how its reply is read."""

    tools: Toolbox
    as_of: str

    @property
    def sources(self) -> list[Source]:
        """The pages that were read; if there are none, the results that tell something."""
        found = [source for source in self.tools.sources.all if source.readable]
        hits = [source for source in self.tools.sources.all if source.hit is not None and source.hit.snippet.strip()]
        return (found or hits)[:MOST]

    def request(self, given: Mapping[str, Any]) -> Request:
        from ...llm.messages import Message, Request

        job = self.tools.job
        assert job.sampling is not None
        facts = "\n".join(job.fenced(self._told(source), f"source_{source.number}") for source in self.sources)
        filled = {"question": self.tools.question, "as_of": self.as_of, "facts": facts}
        system, text = job.further["sentences"].fill(filled)
        return Request(
            system=system,
            messages=(Message("user", text),),
            max_tokens=min(job.sampling.max_tokens, LONGEST * len(self._schema()["properties"])),
            reasoning_tokens=job.sampling.reasoning_tokens,
            temperature=job.sampling.temperature,
            schema=self._schema(),
            tool_choice="none",
            purpose="investigate",
            given={**given, "keys": [*self._schema()["properties"]]},
        )

    def _told(self, source: Source) -> str:
        """What a source says, and nothing beside it: small models would give its title for an answer."""
        from ..locating import Passages

        if source.page is None or not source.readable:
            assert source.hit is not None
            return source.hit.snippet
        return " … ".join(Passages(source.page).nearest(self.tools.question, SENTENCES))

    def _schema(self) -> dict[str, Any]:
        names = [*(f"source_{source.number}" for source in self.sources), "missing"]
        properties = {name: {"type": "string"} for name in names}
        return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}

    def text(self, reply: str) -> str:
        """The reply as a text with citations; of one that was cut off what is whole; empty for one in no such form."""
        from ...evidence.drafts import lacked
        from ...evidence.markers import cite

        said = self._said(reply)
        lines = [self._cited(cite(said[f"source_{one.number}"], []).text.strip(), one.number) for one in self.sources]
        missing = said.pop("missing").strip()
        missing = missing if lacked(missing, [*said.values()])[1] else ""
        return " ".join(filter(None, lines)) + (f"\nMISSING: {missing}" if missing else "")

    def _said(self, reply: str) -> dict[str, str]:
        from ...llm.partial import strings
        from ...llm.structured import parse_json

        try:
            return {**parse_json(reply, self._schema())}
        except MalformedError:
            names = self._schema()["properties"]
            whole = {name: text for name, text in strings(reply).items() if name in names}
            return {**dict.fromkeys(names, ""), **whole, "missing": CUT if whole else ""}

    @staticmethod
    def _cited(said: str, number: int) -> str:
        """The sentences that were said of one source, at most so many, each with its number."""
        from ...sentences import spans

        cited = []
        for start, end in spans(said)[:SENTENCES]:
            sentence = said[start:end]
            if any(char.isalnum() for char in sentence):
                stop = sentence[-1] if sentence[-1] in ".!?。" else ""
                cited.append(f"{sentence.removesuffix(stop)} [{number}]{stop or '.'}")
        return " ".join(cited)
