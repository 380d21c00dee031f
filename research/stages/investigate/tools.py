"""The tools of the loop: what is called is checked, allowed, and only then done.

Three checks (it parses, there is such a tool, it fits the schema), then policy (an
address that was named, caps), then the work. Whatever goes wrong is a result that says
so; only what ends the whole run (the budget, the store) is raised.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import WebError
from ...records import Hit, Page
from ..job import Job
from .served import Served
from .sources import Source, Sources
from .turns import Called
from .wording import BARE, SERVERS, Wording

if TYPE_CHECKING:
    from ...llm.messages import Tool
    from ...relevance import Narrowed
    from ...steps import Done

T = TypeVar("T")

LONGEST_QUERY = 300  # characters; engines cut or refuse longer ones
LONGEST_SNIPPET = 400  # characters
LONGEST_REASON = 300  # characters


@dataclass(frozen=True)
class Caps:
    """What one investigation may do: searches, pages, calls in one turn, calls of servers' tools; and what it is
    shown: characters of a page, results of a search."""

    searches: int
    pages: int
    at_once: int
    served: int
    share: int
    listed: int


@dataclass(frozen=True)
class Result:
    """What a call came to, as the model is told. `done` is the work that it took, if any."""

    call: Called
    text: str
    failed: bool = False
    invalid: bool = False  # it was not even a sound call
    done: Done | None = None


@dataclass
class Toolbox:
    """The tools of one investigation, with what they have found and how much of the caps is used."""

    job: Job
    question: str
    web_date: str
    words: Mapping[str, Wording]
    caps: Caps
    sources: Sources
    made: Counter[str] = field(default_factory=Counter)  # how often each call was made
    failures: list[WebError] = field(default_factory=list)  # of the web itself, which may answer another time
    searches: int = 0
    served: int = 0
    fetched: set[str] = field(default_factory=set)
    _newest: dict[str, bool] = field(default_factory=dict)  # whether a tool's newest call was made before
    _narrowed: dict[int, Narrowed] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [*(name for name in self.words if name not in BARE), *self.servers.offers]

    @functools.cached_property
    def servers(self) -> Served:
        return Served(self.job, self.words.get(SERVERS), self.sources)

    @functools.cached_property
    def offered(self) -> tuple[Tool, ...]:
        """The tools as a model is offered them, in a fixed order."""
        from ...llm.messages import Tool

        own = [name for name in self.names if name in self.words]
        return (
            *(Tool(name, self._described(self.words[name].description), self.schema(name)) for name in own),
            *map(self.servers.tool, self.servers.offers),
        )

    def schema(self, name: str) -> Mapping[str, Any]:
        """What a tool's arguments must fit."""
        return self.words[name].parameters() if name in self.words else self.servers.offers[name].schema

    def _described(self, text: str) -> str:
        return text.replace("{{ top }}", str(self.job.settings.model_dump().get("top", "")))

    async def use(self, calls: Sequence[Called], after: Done) -> list[Result]:
        """The result of each call, in their order; what is allowed is done at the same time."""
        checked: list[Result | Mapping[str, Any]] = []
        for place, call in enumerate(calls):
            if place >= self.caps.at_once:
                checked.append(Result(call, self.words["loop"].say("many", most=self.caps.at_once), failed=True))
            else:
                checked.append(self._checked(call))
        work = [
            one if isinstance(one, Result) else self._begun(call, one, after)
            for call, one in zip(calls, checked, strict=True)
        ]
        running = {place: one for place, one in enumerate(work) if not isinstance(one, Result)}
        outcomes = dict(zip(running, await _all(running.values()), strict=True))
        return [
            one if isinstance(one, Result) else self._told(call, checked[place], outcomes[place])
            for place, (call, one) in enumerate(zip(calls, work, strict=True))
        ]

    def _checked(self, call: Called) -> Result | Mapping[str, Any]:
        """The arguments of a sound call, which is counted; else what is wrong with it."""
        from jsonschema import Draft202012Validator

        from ...llm.structured import strict_json

        loop = self.words["loop"]
        if call.name not in self.names:
            told = loop.say("unknown", name=call.name[:60], tools=", ".join(self.names))
            return Result(call, told, failed=True, invalid=True)
        try:
            arguments = strict_json(call.arguments)
            error = next(Draft202012Validator(self.schema(call.name)).iter_errors(arguments), None)
            reason = "" if error is None else error.message
        except ValueError as problem:
            reason = f"it is no JSON ({problem})"
        if reason:
            told = loop.say("invalid", name=call.name, reason=reason[:LONGEST_REASON])
            return Result(call, told, failed=True, invalid=True)
        key = f"{call.name} {json.dumps(arguments, sort_keys=True)}"
        self._newest[call.name] = key in self.made
        self.made[key] += 1
        return arguments  # type: ignore[no-any-return]

    @property
    def repeating(self) -> list[str]:
        """The tools whose newest call was made before."""
        return [name for name, again in self._newest.items() if again]

    def repeated(self, times: int) -> bool:
        """Whether some call was made so often."""
        return any(count >= times for count in self.made.values())

    def _begun(self, call: Called, arguments: Mapping[str, Any], after: Done) -> Any:
        """The work of an allowed call, or a Result where policy has one at once."""
        if call.name == "search":
            return self._search(call, " ".join(arguments["query"].split()), after)
        if call.name == "fetch":
            return self._fetch(call, arguments["url"], after)
        if call.name in self.servers.offers:
            return self._serve(call, arguments, after)
        return self._read(call, arguments["handle"], arguments["offset"])

    def _search(self, call: Called, query: str, after: Done) -> Any:
        words = self.words["search"]
        if len(query) > LONGEST_QUERY or not query:
            return Result(call, words.say("long", most=LONGEST_QUERY), failed=True)
        known = any(one["query"] == query for one in self.sources.searches)
        if not known and self.searches >= self.caps.searches:
            return Result(call, words.say("cap", most=self.caps.searches), failed=True)
        self.searches += not known
        return self._got("search", {"query": query}, after)

    def _fetch(self, call: Called, url: str, after: Done) -> Any:
        words = self.words["fetch"]
        source = self.sources.known(url)
        if source is None:
            return Result(call, words.say("stranger"), failed=True)
        if source.url not in self.fetched and len(self.fetched) >= self.caps.pages:
            return Result(call, words.say("cap", most=self.caps.pages), failed=True)
        self.fetched.add(source.url)
        return self._got("fetch", {"url": source.url}, after)

    def _serve(self, call: Called, arguments: Mapping[str, Any], after: Done) -> Any:
        if self.served >= self.caps.served:
            return Result(call, self.servers.say("cap", most=self.caps.served), failed=True)
        self.served += 1
        return self._got(SERVERS, self.servers.inputs(call.name, arguments), after)

    async def _got(self, name: str, inputs: Mapping[str, Any], after: Done) -> Done | WebError:
        given = {**inputs, "web_date": self.web_date} if self.web_date else inputs
        try:
            return await self.job.call(name, given, [after])
        except WebError as error:
            self.failures += [error] if name != SERVERS else []
            return error

    def _told(self, call: Called, arguments: Any, outcome: Done | WebError) -> Result:
        failed = isinstance(outcome, WebError)
        done = None if isinstance(outcome, WebError) else outcome
        if call.name == "search":
            text = self._results(" ".join(arguments["query"].split()), outcome)
        elif call.name in self.servers.offers:
            text, source = self.servers.told(call.name, outcome if isinstance(outcome, WebError) else outcome.value)
            if source is not None:
                text = self.servers.result(call.name, source, *self.shown(source))
        else:
            source = self.sources.known(arguments["url"])
            assert source is not None
            text = self._page(source, outcome)
            failed = not source.readable
        if self.made[f"{call.name} {json.dumps(arguments, sort_keys=True)}"] > 1:
            text = self.words["loop"].say("again", result=text)
        return Result(call, text, failed, done=done)

    def _results(self, query: str, outcome: Done | WebError) -> str:
        words = self.words["search"]
        if isinstance(outcome, WebError):
            return words.say("failed", reason=_short(str(outcome)))
        hits: list[Hit] = outcome.value
        found = self.sources.found(query, hits[: self.caps.listed])
        if not found:
            return words.say("nothing", query=query)
        return words.say("found", query=query, results="\n".join(map(self._listed, found)))

    def _listed(self, source: Source) -> str:
        assert source.hit is not None
        hit = source.hit
        dated = f" ({hit.date})" if hit.date else ""
        told = f"{hit.title}{dated}\n{source.url}\n{_short(hit.snippet, LONGEST_SNIPPET)}"
        return f"[{source.number}]\n{self.job.fenced(told, f'source {source.number}')}"

    def _page(self, source: Source, outcome: Done | WebError) -> str:
        words = self.words["fetch"]
        if isinstance(outcome, WebError):
            return words.say("failed", number=source.number, reason=_short(str(outcome)))
        page: Page = outcome.value
        source.page = page
        if not source.readable:
            return words.say("unread", number=source.number, reason=page.outcome)
        text, whole = self.shown(source)
        told = {"number": source.number, "length": f"{len(page.text):,}", "text": text}
        return words.say("whole", **told) if whole else words.say("passages", handle=source.handle, **told)

    def shown(self, source: Source) -> tuple[str, bool]:
        """A page as it is shown when it is fetched, fenced; and whether that is all of it."""
        assert source.page is not None
        page, label = source.page, f"source {source.number}"
        head = "\n".join(filter(None, [page.title, f"{page.site}{f', {page.date}' if page.date else ''}"]))
        narrowed = self.narrowed(source)
        whole = len(narrowed.text) >= len(page.text)
        parts = [f"{head}\n\n{page.text}"] if whole else [page.text[start:end] for start, end in narrowed.spans]
        labels = [label] if whole else [f"{label} characters {start} to {end}" for start, end in narrowed.spans]
        if not whole:
            parts[0] = f"{head}\n\n{parts[0]}"
        return "\n".join(self.job.fenced(part, told) for part, told in zip(parts, labels, strict=True)), whole

    def narrowed(self, source: Source) -> Narrowed:
        """What is shown of a page, as it stands there."""
        from ...relevance import narrow

        if source.number not in self._narrowed:
            assert source.page is not None
            self._narrowed[source.number] = narrow(source.page.text, self.question, self.caps.share)
        return self._narrowed[source.number]

    def _read(self, call: Called, handle: str, offset: int) -> Result:
        words = self.words["read"]
        source = self.sources.handled(handle.strip())
        if source is None or source.page is None:
            handles = ", ".join(one.handle for one in self.sources.all if one.readable) or "none yet"
            return Result(call, words.say("stranger", handle=handle[:40], handles=handles), failed=True)
        text, start = source.page.text, max(0, offset)
        if start >= len(text):
            told = words.say("beyond", handle=source.handle, length=len(text), start=start)
            return Result(call, told, failed=True)
        end = min(len(text), start + self.caps.share)
        part = self.job.fenced(text[start:end], f"source {source.number} characters {start} to {end}")
        told = words.say("part", handle=source.handle, start=start, end=end, length=len(text), text=part)
        return Result(call, told)


async def _all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What all of it gives. If one fails, the others are cancelled and gone before that is raised."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _short(text: str, most: int = LONGEST_REASON) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else f"{plain[:most].rsplit(' ', 1)[0]} …"
