"""A model as a judge of two answers: each pair in both orders, its verdicts kept like any other work.

A judge is an opinion. How far it agrees with people is measured by `python -m bench.judge`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from research.errors import UsageError
from research.kinds import Params, Sampling
from research.ledger import Receipt
from research.prompts import Prompt
from research.settings import PIPELINES
from research.stages.job import Job
from research.store import key_of

if TYPE_CHECKING:
    from research.limits.budget import Purse
    from research.llm.messages import Model, Usage
    from research.store import Store

VERSION = 1
WEIGHTS = {"first much better": -2, "first better": -1, "equal": 0, "second better": 1, "second much better": 2}
LONGEST = 6_000  # characters of an answer that the judge is shown
NOTHING = "(not answered)"
SAME = "the answers are the same"


class Reply(BaseModel):
    """What the judge says."""

    model_config = ConfigDict(extra="forbid")

    reason: str
    verdict: Literal["first much better", "first better", "equal", "second better", "second much better"]


@dataclass(frozen=True)
class Pair:
    """Two answers to a question; "" for one that was not given."""

    question: str
    references: Sequence[str]
    first: str
    second: str
    as_of: str = ""


@dataclass(frozen=True)
class Verdict:
    """`forward` and `backward` are what the judge said of either order, from −2 (the first) to 2 (the second).

    `preference` is −1, 0 or 1: where the order decided, neither is preferred. `usd` is nano-dollars, None if unknown;
    `paid` is the part of it that was not found in the store.
    """

    forward: int
    backward: int
    reasons: tuple[str, str]
    usd: int | None
    paid: int

    @property
    def swayed(self) -> bool:
        """Whether the order decided."""
        return self.forward * self.backward < 0

    @property
    def preference(self) -> int:
        total = 0 if self.swayed else self.forward + self.backward
        return (total > 0) - (total < 0)


@dataclass
class Judge:
    """A model with the rubric. Its verdicts are kept in `store`."""

    model: Model
    store: Store
    price: Callable[[str, Usage], int | None]
    purse: Purse | None = None

    def __post_init__(self) -> None:
        """Raises: UsageError for the built-in model, which can't judge."""
        if self.model.name.startswith("builtin:"):
            raise UsageError("the built-in extractive model can't judge; give --capable PROVIDER:MODEL")
        file = PIPELINES / "prompts" / "judge.md"
        self.prompt = Prompt(file.name, file.read_text(encoding="utf-8"))
        self.sampling = Sampling(max_tokens=400)

    @property
    def recipe(self) -> dict[str, str]:
        """All that shapes its verdicts."""
        return {
            "judge": str(VERSION),
            "model": self.model.name,
            "prompt": self.prompt.digest,
            "sampling": self.sampling.model_dump_json(),
        }

    async def compare(self, pair: Pair) -> Verdict:
        """Both orders, one after the other. Of two answers that are the same, neither is preferred unasked.

        Raises: ProviderError or one of its kinds; BudgetError.
        """
        if pair.first == pair.second:
            return Verdict(0, 0, (SAME, SAME), 0, 0)
        forward, there, paid_there = await self._once(pair)
        turned = Pair(pair.question, pair.references, pair.second, pair.first, pair.as_of)
        backward, back, paid_back = await self._once(turned)
        usd = None if there is None or back is None else there + back
        weights = WEIGHTS[forward.verdict], -WEIGHTS[backward.verdict]
        return Verdict(*weights, (forward.reason, backward.reason), usd, paid_there + paid_back)

    async def _once(self, pair: Pair) -> tuple[Reply, int | None, int]:
        """What it says, what that costs, and what was paid now."""
        given = {
            "question": pair.question,
            "references": list(pair.references),
            "first": pair.first,
            "second": pair.second,
            "as_of": pair.as_of,
        }
        key = key_of({**self.recipe, "given": given})
        if (found := self.store.find(key)) is not None:
            return Reply.model_validate_json(found.data), _usd(found.receipt), 0
        receipt = Receipt()
        job = Job(
            "judge", Params(), receipt, self.store.secret(), self.sampling, self.prompt, "capable", self.model,
            self.price, purse=self.purse,
        )  # fmt: skip
        shown = {
            "question": job.fenced(pair.question, "question"),
            "references": job.fenced("\n".join(pair.references), "references") if pair.references else "(none)",
            "first": job.fenced(pair.first[:LONGEST] or NOTHING, "first answer"),
            "second": job.fenced(pair.second[:LONGEST] or NOTHING, "second answer"),
            "as_of": pair.as_of or "not told",
        }
        reply = await job.ask(job.request(given, shown), Reply)
        plain = receipt.plain()
        self.store.put(key, json.dumps(reply.model_dump()).encode(), plain)
        usd = _usd(plain)
        return reply, usd, usd or 0


def _usd(receipt: dict[str, Any]) -> int | None:
    prices = [call.get("usd", 0) for call in receipt.get("calls", ())]
    return None if None in prices else sum(prices)
