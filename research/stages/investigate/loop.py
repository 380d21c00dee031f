"""The loop: ask the model, do what it calls for, tell it the results, until it answers.

Each turn and each piece of work is a part of the stage's work, kept under a key of its
own, and everything else follows from them: a loop that is taken up again walks through
what is there and goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...errors import BudgetError, ContextTooLongError, RequestTooLargeError
from ..job import Job
from .actions import Read, Way
from .history import History
from .sources import Source
from .tools import Result, Toolbox
from .turns import Turn, plain

if TYPE_CHECKING:
    from ...steps import Done

LOOPING = 3  # times the same call, or calls in a row that are none: then the looping ends
SHORTENED = 400  # characters of a thought or result in the journal


@dataclass(frozen=True)
class Limits:
    """Replies in all; tokens of history before its older part is shortened; exchanges that stay as they are."""

    steps: int
    window: int
    keep: int


@dataclass(frozen=True)
class Conclusion:
    """The final text. `stopped` tells why the model was made to answer, if it was; `looping` that it went astray;
    `searched` that it called for any tool, whatever came of that."""

    text: str
    searched: bool
    stopped: str = ""
    looping: bool = False


@dataclass
class Loop:
    """One investigation as it goes on."""

    job: Job
    question: str
    as_of: str
    tools: Toolbox
    way: Way
    limits: Limits
    history: History
    steps: int = 0
    invalid: int = 0  # calls in a row that were none
    searched: bool = False
    over: bool = False  # the budget lets no further step through
    after: list[Done] = field(default_factory=list)  # the work that the next turn comes after

    async def run(self) -> Conclusion:
        """Raises: what ends the run: ProviderError or one of its kinds, BudgetError, StoreError.

        When the budget is used up after something was searched, what is kept of it pays for an answer.
        """
        while not self._stop:
            try:
                read = await self._step()
            except BudgetError:
                if not any(source.hit or source.readable for source in self.tools.sources.all):
                    raise
                self.over = True
                self.job.answer_now()
                if not self.way.keyed:
                    self._say_last(self._say("finish", reason=self._stop))
                continue
            if read.ends:
                text = await self._sentences() if self.way.keyed else await self._cited(read.text)
                return Conclusion(text, self.searched)
        looping = self.over or self.invalid >= LOOPING or self.tools.repeated(LOOPING)
        stopped = self._stop
        text = await self._sentences() if self.way.keyed else await self._last()
        return Conclusion(text, self.searched, stopped, looping)

    @property
    def _stop(self) -> str:
        """Why there may be no further tool calls; empty while there may."""
        if self.over:
            return "The budget is used up."
        if self.tools.repeated(LOOPING):
            return "The same call was made three times."
        if self.invalid >= LOOPING:
            return "Three calls in a row could not be used."
        return f"All {self.limits.steps} replies are used up." if self.steps >= self.limits.steps else ""

    async def _step(self) -> Read:
        """One turn and what it called for."""
        done = await self._ask()
        self.steps += 1
        turn: Turn = done.value
        read = Read() if turn.finish in ("length", "pause") else self.way.read(turn)
        if read.ends:
            self.after = [done]
            self.history.add(turn.message(), ())
            self._tell(done, ())
            return read
        self.searched |= bool(read.calls)
        results = await self.tools.use(read.calls, done)
        words = self._words(turn, read)
        for result in results:
            self.invalid = self.invalid + 1 if result.invalid else 0
        self.invalid += bool(words)
        if self._stop and not self.way.keyed:
            words.append(self._say("finish", reason=self._stop))
        self.history.add(turn.message(), self.way.told(results, words))
        self.after = [done, *(result.done for result in results if result.done is not None)]
        self._tell(done, results)
        return Read()

    def _say_last(self, text: str) -> None:
        """A word after the newest results, which no request has held yet."""
        if self.history.exchanges:
            newest = self.history.exchanges.pop()
            self.history.add(newest.turn, self.way.joined(newest.told, text))

    def _words(self, turn: Turn, read: Read) -> list[str]:
        """What is to be said of a turn that did nothing. One that only paused goes on from its own text."""
        assert self.job.sampling is not None
        if turn.finish == "length":
            return [self._say("cut", most=f"{self.way.allowance(self.job.sampling.max_tokens):,}")]
        if turn.finish == "pause":
            return [] if turn.text.strip() else [self._say("empty")]
        return [read.wrong] if read.wrong else []

    async def _cited(self, text: str) -> str:
        """The answer, asked for once more if it cites nothing, or what is not there."""
        from ...evidence.drafts import read
        from ...evidence.markers import find

        numbers = {source.number for source in self.tools.sources.all}
        cited = {number for cluster in find(text) for number in cluster.ids}
        if not numbers or read(text, "").refused or (cited and cited <= numbers):
            return text
        self._say_last(self._say("repair", sources=f"1 to {len(numbers)}"))
        try:
            again = await self._last()
        except BudgetError:  # an answer that could be better is worth more than none
            self.job.receipt.passing = True
            return text
        better = {number for cluster in find(again) for number in cluster.ids} & numbers
        return again if read(again, "").refused or len(better) >= len(cited & numbers) else text

    async def _last(self) -> str:
        """The answer, asked for without tools, whatever it calls for."""
        done = await self._ask(last=True)
        self._tell(done, ())
        text: str = done.value.text
        return text

    async def _sentences(self) -> str:
        """The answer, asked for as a sentence for each source; empty where there is none."""
        from .keyed import Keyed

        keyed = Keyed(self.tools, self.as_of)
        if not keyed.sources:
            return ""
        request = keyed.request(self._given(last=True))
        done = await self.job.call("turn", {"request": plain(request)}, self.after)
        self._tell(done, ())
        return keyed.text(done.value.text)

    async def _ask(self, last: bool = False) -> Done:
        """A turn. What is too long for the model is shortened and asked once more, never as it was."""
        if self.history.tokens > self.limits.window:
            await self._shorten(self.limits.keep)
        try:
            return await self._turn(last)
        except (ContextTooLongError, RequestTooLargeError):
            if not await self._shorten(1):
                raise
            return await self._turn(last)

    async def _turn(self, last: bool) -> Done:
        from ...llm.messages import Request

        sampling = self.job.sampling
        assert sampling is not None
        request = Request(
            system=self.history.system,
            messages=self.history.messages,
            max_tokens=self.way.allowance(sampling.max_tokens),
            reasoning_tokens=sampling.reasoning_tokens,
            temperature=sampling.temperature,
            purpose="investigate",
            given=self._given(last),
            **self.way.asking(last),
        )
        return await self.job.call("turn", {"request": plain(request)}, self.after)

    def _given(self, last: bool) -> dict[str, Any]:
        """Where the investigation stands, for the built-in model."""
        sources = self.tools.sources
        return {
            "question": self.question,
            "as_of": self.as_of,
            "structured": "schema" in self.way.asking(last),
            "last": last,
            "left": self.limits.steps - self.steps,
            "searches": list(sources.searches),
            "sources": [self._known(source) for source in sources.all],
        }

    def _known(self, source: Source) -> dict[str, Any]:
        hit = source.hit.model_dump(include={"title", "snippet", "date"}) if source.hit else {}
        told: dict[str, Any] = {"id": source.number, "url": source.url, **hit, "tried": source.page is not None}
        if source.page is not None and source.readable:
            page = source.page.model_dump(include={"title", "site", "date"})
            told |= {"page": {**page, "text": self.tools.narrowed(source).text}}
        return told

    async def _shorten(self, keep: int) -> bool:
        """The history's older part told shorter by the cheap model; whether there was any."""
        keep = min(keep, len(self.history.exchanges) - 1)
        if keep < 1:
            return False
        sources = [self._known(source) for source in self.tools.sources.all]
        given = {"question": self.question, "searches": list(self.tools.sources.searches), "sources": sources}
        inputs = {"question": self.question, "turns": self.history.older(keep), "given": given}
        done = await self.job.call("compact", inputs, self.after)
        known = "\n".join(self._line(source) for source in self.tools.sources.all) or "(none)"
        fenced = {"notes": self.job.fenced(done.value, "notes"), "sources": self.job.fenced(known, "sources")}
        self.history.shorten(self._say("notes", **fenced), keep)
        self.after = [*self.after, done]
        self.job.call.tell(step=self.steps, compacted=done.key)
        return True

    @staticmethod
    def _line(source: Source) -> str:
        state = f"read, handle {source.handle}" if source.readable else "not read"
        return f"[{source.number}] {source.title[:120]} {source.url} ({state})"

    def _say(self, form: str, **values: object) -> str:
        return self.tools.words["loop"].say(form, **values)

    def _tell(self, done: Done, results: Sequence[Result]) -> None:
        turn: Turn = done.value
        self.job.call.tell(
            step=self.steps, turn=done.key, thought=_short(turn.text), finish=turn.finish,
            calls=[{"name": call.name, "arguments": _short(call.arguments)} for call in turn.calls],
            results=[
                {"call": result.call.name, "arguments": _short(result.call.arguments), "text": _short(result.text),
                 "length": len(result.text), "failed": result.failed, "work": result.done.key if result.done else ""}
                for result in results
            ],
        )  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= SHORTENED else f"{text[:SHORTENED]}…"
