"""A model behind a provider's API: one request out, one completion back, and all that may go wrong in between.

A try waits for its rate slot, is reserved on the account, sent, and settled. What may pass
is tried again, at most four times in all. A request that is longer than the model takes is
a ContextTooLongError and never sent again as it was: to shorten it is up to its stage.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from research.errors import ProviderError, RateLimitError, ResearchError, UnreachableError
from research.limits.rates import Lane, Rates, Slot
from research.llm.connections import Connections
from research.llm.endpoint import Endpoint, Limits, authorization, most
from research.llm.exchange import Exchange, Patience
from research.llm.messages import Account, Attempt, Completion, Request, Unpaid, Usage
from research.llm.redaction import cleaned, secrets_of, without
from research.llm.retries import Retries
from research.llm.wires import WIRES, Encoded

__all__ = ["Patience", "ProviderModel"]

Hear = Callable[[str | None], None]
THINKING = 40  # tokens a second: how slowly a model may think without a sign of life


@dataclass
class ProviderModel:
    """A `Model` that is served at an endpoint. Its connections are made with the first call; close it when done.

    `rates` is to be shared by all models of a process.
    """

    endpoint: Endpoint
    rates: Rates = field(default_factory=Rates)
    patience: Patience = Patience()
    stream: bool = True
    sleep: Callable[[float], Awaitable[object]] = field(default=asyncio.sleep, repr=False)
    connections: Connections = field(default_factory=Connections, init=False, repr=False)

    def __post_init__(self) -> None:
        here, limits = self.endpoint, self.endpoint.limits
        self.secrets = secrets_of(here.key, here.base_url)
        account = f"{here.provider} {here.base_url} {here.key}"  # only its digest is kept
        self.lanes = [self.rates.lane(f"{account} {here.model}")]
        if limits != Limits():
            known = (limits.requests_per_minute, limits.tokens_per_minute, limits.at_once)
            self.lanes.append(self.rates.lane(account, *known))

    @property
    def name(self) -> str:
        return self.endpoint.name

    async def complete(
        self, request: Request, account: Account | None = None, on_text: Hear | None = None
    ) -> Completion:
        """As `Model.complete`.

        Raises: ProviderError or one of its kinds; BudgetError from the account; UsageError
        for an address that can't be asked.
        """
        here = self.endpoint
        request = replace(request, reasoning_tokens=max(request.reasoning_tokens, here.thinking))
        encoded = WIRES[here.wire].encode(request, here.model, stream=self.stream, dialect=here.dialect)
        encoded.headers.update(authorization(here))
        thinking = request.reasoning_tokens / THINKING
        patience = replace(
            self.patience, first=self.patience.first + thinking, silence=self.patience.silence + thinking
        )
        return await _Call(self, encoded, patience, account or Unpaid(), on_text).completion()

    async def aclose(self) -> None:
        await self.connections.aclose()


@dataclass
class _Call:
    """One completion, through its tries."""

    model: ProviderModel
    encoded: Encoded
    patience: Patience
    account: Account
    on_text: Hear | None
    waited: float = 0.0  # seconds since the last try ended
    heard: bool = False  # some text was passed on

    async def completion(self) -> Completion:
        retries = Retries(self.patience.asked)
        while True:
            exchange = self._exchange()
            try:
                return await self._tried(exchange)
            except ProviderError as error:
                gap = retries.gap(cleaned(error, self.model.secrets), exchange.begun)
                if not isinstance(error, RateLimitError):  # the pause after that one is the lane's, and all share it
                    await self.model.sleep(gap)
                    self.waited += gap
                if self.heard and self.on_text is not None:
                    self.on_text(None)
                    self.heard = False

    def _exchange(self) -> Exchange:
        model = self.model
        hear = None if self.on_text is None else self._hear
        admitted = model.lanes[0].admitted
        return Exchange(model.endpoint, self.encoded, self.patience, model.stream, model.secrets, hear, admitted)

    def _hear(self, text: str) -> None:
        assert self.on_text is not None
        self.heard = True
        self.on_text(text)

    async def _tried(self, exchange: Exchange) -> Completion:
        client = self.model.connections.client()  # its libraries take a while to import: not between slot and sending
        needed, began = most(self.encoded.body), time.monotonic()
        async with self._entered(needed.input + needed.output) as slots:
            self.waited += time.monotonic() - began
            settle = await self.account.reserve(needed)
            exchange.begin()
            try:
                completion = without(await exchange.completion(client), self.model.secrets)
            except ResearchError as error:
                told = getattr(error, "usage", None)
                used = told if isinstance(told, Usage) and told != Usage() else None
                settle(self._attempt(exchange, used, type(error).__name__))
                _tell(slots, exchange, used, error)
                raise
            except asyncio.CancelledError:
                settle(self._attempt(exchange, None, "cancelled"))
                slots.clear()
                raise
            used = completion.usage if completion.usage != Usage() else None
            settle(self._attempt(exchange, used, ""))
            _tell(slots, exchange, used, None)
            return completion

    def _attempt(self, exchange: Exchange, used: Usage | None, failed: str) -> Attempt:
        waited, self.waited = self.waited, 0.0
        return Attempt(used, used is not None or exchange.billed, failed, exchange.elapsed, waited, exchange.first)

    @asynccontextmanager
    async def _entered(self, tokens: int) -> AsyncIterator[list[tuple[Lane, Slot]]]:
        """Leave of every lane; what is still on the list at the end was not sent, and is given back."""
        slots: list[tuple[Lane, Slot]] = []
        async with AsyncExitStack() as places:
            for lane in self.model.lanes:
                await places.enter_async_context(lane.place())
            try:
                for lane in self.model.lanes:
                    slots.append((lane, await lane.enter(tokens)))  # noqa: PERF401 - each is to be given back
                yield slots
            finally:
                for lane, slot in slots:
                    lane.leave(slot)


def _tell(slots: list[tuple[Lane, Slot]], exchange: Exchange, used: Usage | None, error: ResearchError | None) -> None:
    """Tell the lanes how it went. Refusals teach the model's own lane, which is the first."""
    for number, (lane, slot) in enumerate(slots):
        if isinstance(error, RateLimitError) and number == 0:
            lane.refused(slot, error.retry_after, exchange.headers)
        elif isinstance(error, RateLimitError | UnreachableError):
            lane.leave(slot)
        elif used is not None:
            lane.used(slot, used.input + used.cache_read + used.cache_write + used.output)
    slots.clear()
