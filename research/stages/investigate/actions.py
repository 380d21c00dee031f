"""How a model's replies are read as calls, and how results go back: natively, or as structured actions.

Small models that fail with tool calls succeed with one object, `{action, input}`, by
schema. Both ways give the same calls to the same loop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import MalformedError
from .tools import Result, Toolbox
from .turns import Called, Turn
from .wording import ARGUMENTS

if TYPE_CHECKING:
    from ...llm.messages import Message

ANSWER = "answer"
LONGEST_ACTION = 200  # tokens: a small model that loses its way in one would go on to the end of its context


@dataclass(frozen=True)
class Read:
    """A turn as the loop sees it: calls to make, or that it `ends` (with its text), or what is wrong."""

    calls: tuple[Called, ...] = ()
    text: str = ""
    wrong: str = ""
    ends: bool = False


class Native:
    """Tool calls as the provider has them. The last reply is the answer."""

    keyed = False

    def __init__(self, tools: Toolbox, prompt: str) -> None:
        self.tools = tools

    def system(self, text: str) -> str:
        return text

    @staticmethod
    def allowance(most: int) -> int:
        """The tokens of one reply, of the `most` that the stage allows."""
        return most

    def asking(self, last: bool) -> dict[str, Any]:
        """What a request says of the tools; the last one of a loop may call none."""
        return {"tools": self.tools.offered, "tool_choice": "none" if last else "auto"}

    def read(self, turn: Turn) -> Read:
        if turn.calls:
            return Read(turn.calls, turn.text)
        return Read(text=turn.text, ends=True) if turn.text.strip() else Read(wrong=self._empty())

    def _empty(self) -> str:
        return self.tools.words["loop"].say("empty")

    def told(self, results: Sequence[Result], words: Sequence[str]) -> tuple[Message, ...]:
        """What goes back: a result for each call, then the program's own words."""
        from ...llm.messages import Message

        answers = [Message("tool", one.text, call_id=one.call.id, failed=one.failed) for one in results]
        return self.joined(answers, "\n\n".join(words))

    @staticmethod
    def joined(told: Sequence[Message], text: str) -> tuple[Message, ...]:
        """What goes back, with a further word at its end."""
        from ...llm.messages import Message

        return (*told, Message("user", text)) if text else tuple(told)


class Structured:
    """One action a turn, as a JSON object; the answer is asked for in another form (`keyed`).

    Only what makes sense is on offer: nothing is fetched before there is an address, nothing
    answered before something was read or two searches found nothing; and whoever made the
    same call again can't make it a third time. Nothing is read on: the answer is made from
    the best passages of each page.
    """

    keyed = True

    def __init__(self, tools: Toolbox, prompt: str) -> None:
        self.tools = tools
        self.prompt = prompt
        self._count = 0

    def system(self, text: str) -> str:
        return self.prompt

    @staticmethod
    def allowance(most: int) -> int:
        return min(most, LONGEST_ACTION)

    def asking(self, last: bool) -> dict[str, Any]:
        return {"schema": self.schema()}

    def schema(self) -> dict[str, Any]:
        names = self._offered()
        properties = {"action": {"type": "string", "enum": names}, "input": {"type": "string"}}
        return {
            "type": "object", "properties": properties, "required": ["action", "input"], "additionalProperties": False,
        }  # fmt: skip

    def _offered(self) -> list[str]:
        sources = self.tools.sources
        hidden = set(self.tools.repeating) | (set() if sources.all else {"fetch"})
        tried = any(source.page or source.url in self.tools.fetched for source in sources.all)
        if not tried and (sources.all or len(sources.searches) < 2) and "search" not in hidden:
            hidden.add(ANSWER)
        return [name for name in (*actions(self.tools), ANSWER) if name not in hidden]

    def read(self, turn: Turn) -> Read:
        from ...llm.structured import parse_json

        try:
            action = parse_json(turn.text, self.schema())
        except MalformedError as error:
            return Read(wrong=self.tools.words["loop"].say("action", reason=str(error)))
        if action["action"] == ANSWER:
            return Read(ends=True)
        self._count += 1
        arguments = json.dumps(self._arguments(action["action"], action["input"]), ensure_ascii=False)
        return Read((Called(id=f"action_{self._count}", name=action["action"], arguments=arguments),))

    def _arguments(self, name: str, text: str) -> dict[str, Any]:
        """The one input as the tool's arguments: `fetch` takes a source's number too."""
        if name == "fetch" and (number := re.fullmatch(r"\W*(?:source\W*)?(\d{1,4})\W*", text, re.IGNORECASE)):
            source = self.tools.sources.numbered(int(number[1]))
            return {"url": text if source is None else source.url}
        if name in self.tools.servers.offers:
            return self.tools.servers.arguments(name, text)
        return dict.fromkeys(ARGUMENTS[name], text)

    def told(self, results: Sequence[Result], words: Sequence[str]) -> tuple[Message, ...]:
        return self.joined((), "\n\n".join([*(one.text for one in results), *words]))

    @staticmethod
    def joined(told: Sequence[Message], text: str) -> tuple[Message, ...]:
        """One message: templates of small models want user and assistant to alternate."""
        from ...llm.messages import Message

        texts = [*(one.text for one in told), *([text] if text else [])]
        return (Message("user", "\n\n".join(texts)),) if texts else ()


Way = Native | Structured


def way(name: str, tools: Toolbox, prompt: str) -> Way:
    return Structured(tools, prompt) if name == "schema" else Native(tools, prompt)


def listed(tools: Toolbox) -> str:
    """The tools as a prompt lists them, for models that work by actions."""
    served = tools.servers
    told = {name: served.action(name) if name in served.offers else tools.words[name].action for name in actions(tools)}
    return "\n".join(f"- {name}: {text}" for name, text in told.items())


def actions(tools: Toolbox) -> list[str]:
    """The tools that are used by actions."""
    return [name for name in tools.names if name not in tools.words or tools.words[name].action]
