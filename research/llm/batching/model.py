"""A model whose calls go into batches: the same requests and the same replies as one by one, at half the price."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from research.errors import MalformedError, ProviderError, ResearchError, TimedOutError
from research.llm.batching.collector import Collector, Wanted
from research.llm.batching.service import CANCELLED, EXPIRED, MISSING, Reply
from research.llm.endpoint import Endpoint, most
from research.llm.failures import failure, inner_failure
from research.llm.messages import Account, Attempt, Completion, Request, Unpaid, Usage
from research.llm.redaction import secrets_of, without
from research.llm.retries import Retries
from research.llm.wires import WIRES
from research.store import key_of

Tell = Callable[[Usage | None, bool, str], None]  # tokens, whether they are billed, the kind of failure


@dataclass
class BatchedModel:
    """A `Model` at an endpoint whose provider takes batches. A call waits until its batch has ended."""

    endpoint: Endpoint
    collector: Collector

    @property
    def name(self) -> str:
        return self.endpoint.name

    async def complete(
        self, request: Request, account: Account | None = None, on_text: Callable[[str | None], None] | None = None
    ) -> Completion:
        """As `Model.complete`. What may pass goes into a further batch, as often as calls are tried one by one.

        Raises also: StoreError, where it can't be kept what was sent.
        """
        here = self.endpoint
        request = replace(request, reasoning_tokens=max(request.reasoning_tokens, here.thinking))
        encoded = WIRES[here.wire].encode(request, here.model, stream=False, dialect=here.dialect)
        words = key_of([here.name, here.base_url, encoded.path, json.dumps(encoded.body, sort_keys=True)])[:40]
        retries = Retries(longest=float("inf"))
        while True:
            name = self.collector.name(words)
            try:
                reply, ours, tell = await self._asked(Wanted(name, self.name, request.purpose, encoded), account)
            except BaseException:
                self.collector.free(name)
                raise
            try:
                completion = self._settled(reply, ours, tell)
            except ProviderError as error:
                retries.gap(error, begun=False)  # the next batch is wait enough
                continue
            if on_text is not None and completion.text:
                on_text(completion.text)
            return completion

    async def _asked(self, wanted: Wanted, account: Account | None) -> tuple[Reply, bool, Tell]:
        """What came of a call, whether it was this process that sent it, and how its account is to be settled: once,
        by whatever process comes to know."""
        settle, began = await (account or Unpaid()).reserve(most(wanted.encoded.body), wanted.name), time.monotonic()

        def tell(used: Usage | None, billed: bool, failed: str = "") -> None:
            settle(Attempt(used, billed, failed, waited=time.monotonic() - began, batched=True))

        try:
            return (*await self.collector.reply(wanted), tell)
        except BaseException as error:
            if not self.collector.sent(wanted.name):
                tell(None, False, type(error).__name__)
            raise

    def _settled(self, reply: Reply, ours: bool, tell: Tell) -> Completion:
        try:
            completion = without(self._decoded(reply, ours), secrets_of(self.endpoint.key, self.endpoint.base_url))
        except ResearchError as error:
            told = getattr(error, "usage", None)
            used = told if isinstance(told, Usage) and told != Usage() else None
            tell(used, reply.status == 200 or reply.gone == MISSING, type(error).__name__)
            raise
        tell(completion.usage if completion.usage != Usage() else None, True, "")
        return completion

    def _decoded(self, reply: Reply, ours: bool) -> Completion:
        """Raises: ProviderError or one of its kinds."""
        here = self.endpoint
        if reply.gone:
            raise _gone(here.name, reply.gone, ours)
        body = json.dumps(reply.body).encode("utf-8", "replace")
        if reply.status == 200:
            if reply.body is None:
                raise MalformedError(f"{here.name} gave a result without a reply. Run it again.")
            return WIRES[here.wire].decode(body, {}, here.name)
        secrets = secrets_of(here.key, here.base_url)
        if reply.status:
            raise failure(reply.status, {}, body, here.name, key=here.key_name or "its key", secrets=secrets)
        raise inner_failure(reply.body, here.name)


def _gone(name: str, why: str, ours: bool) -> ProviderError:
    """What was not run, or got lost. A batch that somebody cancels while it is waited for is not sent again of our own
    accord."""
    if why == CANCELLED:
        error = ProviderError(f"{name}: the batch was cancelled before this call was made. Run it again to ask anew.")
        error.passing = not ours
        return error
    if why == EXPIRED:
        return TimedOutError(f"{name}: the batch expired before this call was made. Run it again later.")
    if why == MISSING:
        return TimedOutError(
            f"{name}: the batch has ended, and its result for this call can't be had. What it may have cost counts as "
            "spent. Run it again."
        )
    return TimedOutError(f"{name}: the batch has ended without a result for this call. Run it again.")
