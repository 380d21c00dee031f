"""The built-in extractive model: answers the pipeline's requests by word overlap alone.

It needs no key and no network, is deterministic, and quotes instead of writing. It is an
honest baseline, not a language model: it reads what a stage was given (`Request.purpose`
and `Request.given`), not the prompt, so that editing a prompt does not change its replies.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import BadRequestError
from ..messages import Account, Attempt, Completion, Finish, Request, ToolCall, Unpaid, Usage
from .extraction import extract
from .investigation import compact, investigate
from .planning import plan
from .question import read
from .ranking import rerank, screen
from .synthesis import by_source, synthesize

BYTES_PER_TOKEN = 4  # an estimate: English text has 4 to 5 bytes a token in the usual vocabularies

Given = Mapping[str, Any]


class ExtractiveModel:
    """A `Model` without a provider. Usage is estimated at one token for four bytes of UTF-8."""

    name = "builtin:extractive"

    async def complete(
        self, request: Request, account: Account | None = None, on_text: Callable[[str | None], None] | None = None
    ) -> Completion:
        """The reply in the form a real model is asked for: JSON, or text with markers for synthesis.

        Raises: BadRequestError for a purpose that it does not know, or one without what it is about.
        """
        began = time.monotonic()
        answer = _ANSWERS.get(request.purpose)
        if answer is None:
            what = request.purpose or "answer freely"
            raise BadRequestError(f"the built-in extractive model can't {what}; bind a real one: --cheap, --capable")
        try:
            said = answer(request)
        except KeyError as error:
            raise BadRequestError(
                f"the built-in extractive model was asked to {request.purpose} without {error}. "
                "Add it to the stage's `takes`"
            ) from error
        text, calls = said if isinstance(said, tuple) else (said, ())
        output = _tokens(text, *(call.arguments for call in calls))
        usage = Usage(input=_tokens(request.system, *(message.text for message in request.messages)), output=output)
        settle = await (account or Unpaid()).reserve(usage)
        settle(Attempt(usage, seconds=time.monotonic() - began))
        if on_text is not None:
            on_text(text)
        finish: Finish = "length" if output > request.max_tokens else "tool_calls" if calls else "stop"
        return Completion(text, finish, usage, self.name, calls)


def _tokens(*texts: str) -> int:
    return math.ceil(sum(len(text.encode()) for text in texts) / BYTES_PER_TOKEN)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plan(request: Request) -> str:
    return _json(plan(request.given["question"]))


def _rerank(request: Request) -> str:
    return _json(rerank(request.given["question"], request.given["hits"]))


def _screen(request: Request) -> str:
    return _json(screen(request.given["question"], request.given["hit"]))


def _extract(request: Request) -> str:
    given = request.given
    facts = extract(read(given["question"]), given.get("title") or "", given["text"])
    keys = [*(request.schema or {}).get("properties", {})]
    if "facts" in keys or not keys:
        return _json({"facts": facts})
    return _json(dict.fromkeys(keys, "") | dict(zip(keys, (fact["quote"] for fact in facts), strict=False)))


def _synthesize(request: Request) -> str:
    given = request.given
    if request.schema is None:
        return synthesize(given["question"], given["facts"])
    return _json(by_source(given["question"], given["facts"], list(request.schema.get("properties", {}))))


_ANSWERS: Mapping[str, Callable[[Request], str | tuple[str, tuple[ToolCall, ...]]]] = {
    "plan": _plan,
    "rerank": _rerank,
    "screen": _screen,
    "extract": _extract,
    "synthesize": _synthesize,
    "investigate": lambda request: investigate(request.given),
    "compact": lambda request: compact(request.given),
}
