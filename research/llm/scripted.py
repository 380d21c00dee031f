"""A model with a script, for tests: replies in a queue, or a function of the request."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import ProviderError
from .messages import Account, Attempt, Completion, Request, Unpaid, Usage

Reply = str | dict[str, Any] | Completion | Exception
Script = Callable[[Request], Reply]


class ScriptedModel:
    """Gives what it is told to, and keeps what it was asked.

    A reply is text, JSON data, a whole completion, or an error to raise. Tokens are counted
    as one for each word.
    """

    def __init__(self, script: Script | Iterable[Reply], name: str = "scripted:model") -> None:
        self.name = name
        self.requests: list[Request] = []
        self._script = script if callable(script) else self._queue(deque(script))

    @staticmethod
    def _queue(replies: deque[Reply]) -> Script:
        def next_reply(request: Request) -> Reply:
            if not replies:
                raise ProviderError(f"the script is at its end, and was asked for {request.purpose or 'more'}")
            return replies.popleft()

        return next_reply

    async def complete(
        self, request: Request, account: Account | None = None, on_text: Callable[[str | None], None] | None = None
    ) -> Completion:
        asked = sum(len(part.split()) for part in (request.system, *(message.text for message in request.messages)))
        most = Usage(input=asked, output=request.max_tokens + request.reasoning_tokens)
        settle = await (account or Unpaid()).reserve(most)
        self.requests.append(request)
        reply = self._script(request)
        if isinstance(reply, Exception):
            settle(Attempt(None, billed=False, failed=type(reply).__name__))
            raise reply
        if not isinstance(reply, Completion):
            text = reply if isinstance(reply, str) else json.dumps(reply)
            reply = Completion(text, "stop", Usage(input=asked, output=len(text.split())), self.name)
        settle(Attempt(reply.usage))
        if on_text is not None:
            on_text(reply.text)
        return reply
