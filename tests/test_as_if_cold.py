"""What a run that reused everything tells as if cold is what the run took that made it: dollars exactly, and seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from research.app import Asked
from research.ledger import as_if_cold, in_vain, paid, seconds_as_if_cold, timetable, used
from research.llm.messages import Account, Completion, Request
from research.llm.providers import BUILTIN
from research.llm.scripted import ScriptedModel
from research.records import Hit, Page
from research.store import digest
from tests import virtual
from tests.shipped import NAMES, Laboratory, SmallWeb, copied, reply


def delay(*parts: str) -> float:
    """Between 0.2 and 2 seconds, the same for the same work."""
    return 0.2 + int(digest("\n".join(parts))[:4], 16) / 0xFFFF * 1.8


@dataclass
class SlowModel:
    """A scripted model that takes its time."""

    inner: ScriptedModel
    seconds: Callable[[Request], float]

    @property
    def name(self) -> str:
        return self.inner.name

    async def complete(self, request: Request, account: Account | None = None, on_text: Any = None) -> Completion:
        await asyncio.sleep(self.seconds(request))
        return await self.inner.complete(request, account, on_text)


@dataclass
class SlowWeb(SmallWeb):
    pages: dict[str, float] = field(default_factory=dict)  # by the last letter of the address

    async def search(self, query: str, top: int) -> list[Hit]:
        await asyncio.sleep(delay("search", query))
        return await super().search(query, top)

    async def fetch(self, url: str) -> Page:
        await asyncio.sleep(self.pages.get(url[-1], delay("fetch", url)))
        return await super().fetch(url)


def slow(home: Path, of_model: Callable[[Request], float] | None = None, **pages: float) -> Laboratory:
    laboratory = Laboratory(home, SlowWeb(pages={name[1:]: seconds for name, seconds in pages.items()}))
    seconds = of_model or (lambda request: delay(request.purpose, repr(request.given)))
    models = {"cheap": laboratory.cheap, "capable": laboratory.capable, BUILTIN: laboratory.cheap}
    laboratory.app.models = {tier: SlowModel(model, seconds) for tier, model in models.items()}
    laboratory.app.price = lambda _name, usage: 7 * usage.input + 31 * usage.output
    return laboratory


def screened(request: Request) -> Any:
    """Half of the hits are of no use, so that others come in their place."""
    if request.purpose == "screen":
        return {"relevant": int(digest(str(request.given["hit"]))[:2], 16) % 2 == 0}
    return reply(request)


async def cold_and_warm(
    laboratory: Laboratory, folder: Path, name: str, **replaced: tuple[str, str]
) -> tuple[Asked, float, Asked]:
    pipeline = copied(folder, name, **replaced)
    began = time.monotonic()
    cold = await laboratory.ask(pipeline)
    took = time.monotonic() - began
    warm = await laboratory.ask(pipeline)
    assert not laboratory.calls
    return cold, took, warm


@pytest.mark.parametrize("name", NAMES)
def test_a_reused_run_tells_what_the_cold_one_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    laboratory = slow(tmp_path / "home")
    cold, took, warm = virtual.run(cold_and_warm(laboratory, tmp_path, name), monkeypatch)
    assert took > 1
    assert seconds_as_if_cold(cold.lines) == pytest.approx(took, rel=0.001)
    assert seconds_as_if_cold(warm.lines) == pytest.approx(took, rel=0.001)
    assert paid(warm.lines).usd == 0
    bought, told = as_if_cold(cold.lines), as_if_cold(warm.lines)
    assert told == bought
    assert bought.usd == paid(cold.lines).usd - in_vain(cold.lines).usd > 0


UNSCREENED = '[stage.fetch]\neach = { url = "hits.url" }'
SCREENED = """[stage.screen]
each = { hit = "hits" }
takes = ["question"]
gives = "screened"
model = "cheap"
prompt = "prompts/screen.md"
want = 4

[stage.fetch]
each = { url = "screened.hit.url" }"""


def test_items_in_place_of_others_begin_after_those(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = slow(tmp_path / "home")
    laboratory.cheap._script = screened
    run = cold_and_warm(laboratory, tmp_path, "small", small_toml=(UNSCREENED, SCREENED))
    cold, took, warm = virtual.run(run, monkeypatch)
    assert [line for line in cold.lines if line["event"] == "dropped" and line["stage"] == "screen"]
    assert any("after" in line for line in cold.lines)
    assert seconds_as_if_cold(warm.lines) == pytest.approx(took, rel=0.001)
    assert as_if_cold(warm.lines) == as_if_cold(cold.lines)
    assert as_if_cold(warm.lines).usd == paid(cold.lines).usd, "a no is work too, and would be paid again"


ALL_AHEAD = ("top = 4 }", "top = 6 }")  # also the pages that stand in for blocked ones


def test_pages_fetched_ahead_cost_no_time_while_hits_are_ordered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plan 1 s, searches at most 2 s each; ordering takes 3 s, and pages 2 s of it; facts and answer 1 s each."""

    def seconds(request: Request) -> float:
        return 3.0 if request.purpose == "rerank" else 1.0

    laboratory = slow(tmp_path / "home", seconds, _1=2.0, _2=2.0, _3=2.0)
    _, took, warm = virtual.run(cold_and_warm(laboratory, tmp_path, "fixed", fixed_toml=ALL_AHEAD), monkeypatch)
    searches = max(delay("search", query) for query in ("ulm tower", "ulm minster height"))
    assert took == pytest.approx(1 + searches + 3 + 1 + 1, abs=0.001)
    assert seconds_as_if_cold(warm.lines) == pytest.approx(took, abs=0.001)
    spans = timetable(used(warm.lines))
    pages = [spans[line["key"]] for line in warm.lines if line.get("stage") == "fetch" and line["event"] == "reused"]
    assert {round(page.begin, 3) for page in pages} == {round(1 + searches, 3)}
    assert {round(page.end, 3) for page in pages} == {round(1 + searches + 3, 3)}, "chosen only when the order is known"
