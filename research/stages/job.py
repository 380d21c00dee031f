"""What a stage works with besides its inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel

from ..kinds import Params, Sampling
from ..ledger import Receipt
from ..prompts import Prompt
from ..store import digest

if TYPE_CHECKING:
    from ..limits.budget import Purse
    from ..llm.messages import Account, Completion, Model, Request, Usage
    from ..mcp.server import Server
    from ..records import Answer
    from ..steps import Calls
    from ..web.base import Web

Hear = Callable[["Answer | None"], None]  # gets an answer as far as it is written and checked; None takes it back
OnText = Callable[["str | None"], None]  # as `llm.messages.Model.complete` has it
T = TypeVar("T", bound=BaseModel)
P = TypeVar("P", bound=Params)


class Job(NamedTuple):
    """One call of a stage: its settings, its model or web, and the receipt it writes on.

    `secret` keys the fences around untrusted text; `price` gives the nano-dollars of a
    call, or None where nobody knows; `fee` that of a search by an engine.
    """

    purpose: str
    settings: Params
    receipt: Receipt
    secret: bytes
    sampling: Sampling | None = None
    prompt: Prompt | None = None
    tier: str = ""
    bound_model: Model | None = None
    price: Callable[[str, Usage], int | None] = lambda _model, _usage: None
    fee: Callable[[str], int | None] = lambda _engine: 0
    bound_web: Web | None = None
    tools: Mapping[str, Prompt] = {}  # the file of each tool
    servers: Mapping[str, Server] = {}  # whose tools it may call too
    further: Mapping[str, Prompt] = {}  # prompts besides the stage's own
    parts: Calls | None = None  # of its work
    purse: Purse | None = None  # what the run may spend, if that is capped
    answering: bool = False  # it makes the run's answer, for which a share is kept
    hear: Hear | None = None  # somebody watches the answer being written

    def params(self, kind: type[P]) -> P:
        assert isinstance(self.settings, kind)
        return self.settings

    @property
    def model(self) -> Model:
        assert self.bound_model is not None, f"{self.purpose} has no model"
        return self.bound_model

    @property
    def web(self) -> Web:
        assert self.bound_web is not None, f"{self.purpose} has no web"
        return self.bound_web

    @property
    def call(self) -> Calls:
        """For work that is made of parts: `await job.call(name, inputs)` takes one up."""
        assert self.parts is not None, f"{self.purpose} has no parts"
        return self.parts

    def fenced(self, text: str, label: str) -> str:
        """`text`, which is not to be trusted, as data that a prompt can hold."""
        from ..evidence.untrusted import fence

        return fence(text, self.secret, label)

    def answer_now(self) -> None:
        """The budget is used up: what is kept of it is for the answer. What comes of that is not kept."""
        self.receipt.passing = True
        if self.purse is not None:
            self.purse.answer_now()

    def note(self, text: str) -> None:
        """For the receipt: what a reader of this artifact should know about its making."""
        self.receipt.notes.append(text)

    def request(self, given: Mapping[str, Any], shown: Mapping[str, str]) -> Request:
        """A request with the stage's prompt, its placeholders filled from `shown`.

        `given` is the same as data and is never sent: the built-in model reads it instead of the prompt.
        """
        from ..llm.messages import Message, Request

        assert self.prompt is not None
        assert self.sampling is not None
        system, text = self.prompt.fill(shown)
        return Request(
            system=system,
            messages=(Message("user", text),),
            max_tokens=self.sampling.max_tokens,
            reasoning_tokens=self.sampling.reasoning_tokens,
            temperature=self.sampling.temperature,
            purpose=self.purpose,
            given=given,
        )

    async def ask(self, request: Request, reply: type[T], on_text: OnText | None = None) -> T:
        """A reply that fits `reply`, after at most one repair turn.

        Raises: ProviderError or one of its kinds.
        """
        from ..llm.structured import ask

        return await ask(_Metered(self, on_text), request, reply)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        """One completion, every try of it on the receipt. `on_text` gets None first, then its pieces.

        Raises: ProviderError or one of its kinds; BudgetError.
        """
        from .account import JobAccount

        account = JobAccount(self)
        if on_text is not None:
            on_text(None)
        try:
            return await self.model.complete(request, account, on_text)
        finally:
            account.close()


class _Metered(NamedTuple):
    """The job's model, with every completion on its receipt."""

    job: Job
    on_text: OnText | None = None

    @property
    def name(self) -> str:
        return self.job.model.name

    async def complete(
        self, request: Request, account: Account | None = None, on_text: OnText | None = None
    ) -> Completion:
        return await self.job.complete(request, self.on_text)


@functools.cache
def repairs() -> str:
    """The digest of the turns in which a stage asks for a better reply: they shape what it gives."""
    folder = Path(__file__).parents[1]
    return digest("\n".join((folder / layer / "repair.md").read_text(encoding="utf-8") for layer in ("llm", "stages")))
