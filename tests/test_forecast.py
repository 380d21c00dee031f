"""What a run may cost, before it: figures worked out by hand, and a run at its very worst that stays within them."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from research.app import load_pipeline
from research.bounds import RULES, Range
from research.forecast import Row, Terms, forecast, total
from research.llm.messages import Completion, Request, ToolCall, Usage
from research.llm.providers import BUILTIN
from research.loading import load
from research.pipeline import Pipeline
from research.records import Hit, Outcome, Page
from research.settings import PIPELINES
from research.stages import KINDS
from tests.shipped import NAMES, QUESTION, Laboratory, SmallWeb, extracted

BOTH = {"cheap": "mine:cheap", "capable": "mine:capable", BUILTIN: "mine:cheap"}


def price(model: str, usage: Usage) -> int | None:
    """A nano-dollar for a token read, ten for one written."""
    return usage.input + usage.cache_read + usage.cache_write + 10 * usage.output


def terms(models: dict[str, str] = BOTH, **changed: Any) -> Terms:
    return Terms(models, **{"price": price, "thinking": lambda _: 0, "engines": {"one": 0}, **changed})


def rows(pipeline: Pipeline, told: Terms | None = None, question: str = QUESTION) -> dict[str, Row]:
    return {row.stage: row for row in forecast(pipeline, question, told or terms())}


def written(folder: Path, text: str) -> Pipeline:
    if not (folder / "prompts").exists():
        shutil.copytree(PIPELINES / "prompts", folder / "prompts")
    (folder / "it.toml").write_text(text, encoding="utf-8")
    return load(folder / "it.toml", KINDS)


def test_every_kind_has_a_rule() -> None:
    assert {*RULES} == {*KINDS}


FIXED = """
answer = "answer"
[stage.plan]
takes = ["question", "as_of"]
gives = "plan"
model = "cheap"
prompt = "prompts/plan.md"
[stage.search]
each = { query = "plan.queries" }
gives = "hits"
top = 10
retries = 1
[stage.rerank]
takes = ["question", "hits"]
gives = "ranked"
model = "cheap"
prompt = "prompts/rerank.md"
[stage.fetch]
each = { url = "ranked.url" }
gives = "pages"
want = 4
prefetch = { url = "hits.url", top = 4 }
[stage.extract]
each = { page = "pages" }
takes = ["question"]
gives = "facts"
model = "cheap"
prompt = "prompts/extract.md"
[stage.synthesize]
takes = ["question", "as_of", "plan", "facts"]
gives = "answer"
model = "capable"
prompt = "prompts/synthesize.md"
"""


def test_the_calls_of_a_fixed_pipeline(tmp_path: Path) -> None:
    """3 queries, 10 hits each, 4 pages wanted; a reply is repaired once, and each of the two tried twice."""
    most = {name: row.calls.most for name, row in rows(written(tmp_path, FIXED)).items()}
    assert most == {
        "plan": 2 * 2, "search": 3 * 2, "rerank": 2 * 2, "fetch": 30 + 4, "extract": 4 * 2 * 2, "synthesize": 2 * 2,
    }  # fmt: skip
    expected = {name: row.calls.expected for name, row in rows(written(tmp_path, FIXED)).items()}
    assert expected == {"plan": 1, "search": 2, "rerank": 1, "fetch": 4 * 1.3, "extract": 4, "synthesize": 1}


SCREEN = """
[stage.screen]
each = { hit = "ranked" }
takes = ["question"]
gives = "screened"
model = "cheap"
prompt = "prompts/screen.md"
want = 5
[stage.fetch]"""


def test_what_the_file_says_bounds_it(tmp_path: Path) -> None:
    text = (
        FIXED.replace("[stage.fetch]", SCREEN)
        .replace("ranked.url", "screened.hit.url")
        .replace("[stage.rerank]", "[stage.rerank]\nkeep = 4")
    )
    before = rows(written(tmp_path, text))
    assert before["screen"].calls.most == 3 * 10 * 4  # each hit of each query is looked at
    assert before["fetch"].calls.most == 5 + 4  # 5 hits wanted of them, and 4 pages ahead
    changed = text.replace("top = 10", "top = 2").replace("want = 5", "want = 3").replace("prefetch", "# prefetch")
    after = rows(written(tmp_path, changed))
    assert after["screen"].calls.most == 3 * 2 * 4
    assert after["fetch"].calls.most == 3


def test_retries_of_the_file_count(tmp_path: Path) -> None:
    text = (PIPELINES / "snippets.toml").read_text(encoding="utf-8")
    again = rows(
        written(
            tmp_path,
            text.replace('gives = "plan"', 'gives = "plan"\nretries = 2').replace("retries = 1", "retries = 0"),
        )
    )
    assert again["plan"].calls.most == 2 * 2 * 3
    assert again["search"].calls.most == 3


def test_tokens_and_dollars_of_one_call() -> None:
    row = rows(load_pipeline("fixed"))["plan"]
    prompt = (PIPELINES / "prompts" / "plan.md").read_bytes()
    first = len(prompt) / 3 + 500 + len(QUESTION) / 3
    assert row.output.most == 4 * 500  # plan's max_tokens
    assert row.input.most == pytest.approx(2 * first + 2 * (first + 500 + 500))
    worst = 2 * (math.ceil(first) + 5_000) + 2 * (math.ceil(first + 1_000) + 5_000)
    assert row.worst_usd == pytest.approx(worst, abs=4)
    assert row.usd is not None
    assert 0 < row.usd < worst / 4


def test_thinking_unasked_is_output_that_may_be_paid_for() -> None:
    plain, thinking = (rows(load_pipeline("fixed"), terms(thinking=lambda _, n=n: n))["rerank"] for n in (0, 2_000))
    assert thinking.output.most - plain.output.most == 4 * 2_000
    assert thinking.output.expected - plain.output.expected == 500


def test_a_longer_question_costs_more_by_bytes() -> None:
    short, long = (rows(load_pipeline("fixed"), question=text)["plan"].input.most for text in ("a", "ü" * 300))
    assert long - short == pytest.approx(4 * (600 - 1) / 3)


def test_writing_to_a_cache_at_a_higher_price_is_the_worst_case() -> None:
    dearer = terms(price=lambda _, usage: usage.input + 2 * usage.cache_write)
    plain = terms(price=lambda _, usage: usage.input + usage.cache_write)
    first, second = (rows(load_pipeline("fixed"), told)["plan"].worst_usd for told in (dearer, plain))
    assert first == 2 * (second or 0)


def test_an_unknown_price_is_none_and_makes_totals_lower_bounds() -> None:
    told = terms(price=lambda model, usage: None if model == "mine:capable" else price(model, usage))
    found = forecast(load_pipeline("fixed"), QUESTION, told)
    assert [row.stage for row in found if row.worst_usd is None] == ["synthesize"]
    assert total(found)["unknown"] == 1
    assert total(found)["worst_usd"] > 0


def test_search_fees() -> None:
    told = terms(engines={"brave": 5_000_000, "tavily": 8_000_000})
    row = rows(load_pipeline("fixed"), told)["search"]
    assert (row.usd, row.worst_usd) == (
        2 * 5_000_000,
        6 * 2 * 13_000_000,
    )  # the chain asks the next where one fails, each twice
    assert rows(load_pipeline("fixed"), terms(engines={"brave": None}))["search"].worst_usd is None


CHAIN = """
answer = "answer"
[stage.list]
kind = "prompt"
takes = ["question"]
gives = "parts"
model = "cheap"
prompt = "list.md"
reply = {{ type = "array"{bound} }}
[stage.look]
kind = "search"
each = {{ query = "parts" }}
gives = "hits"
[stage.quote]
takes = ["hits"]
gives = "facts"
[stage.synthesize]
takes = ["question", "as_of", "facts"]
gives = "answer"
model = "capable"
prompt = "prompts/synthesize.md"
"""


@pytest.mark.parametrize(("bound", "most"), [("", math.inf), (", maxItems = 5", 5)])
def test_a_free_reply_is_bounded_by_its_schema_or_not_at_all(tmp_path: Path, bound: str, most: float) -> None:
    (tmp_path / "list.md").write_text("List its parts.\n\n{{ question }}")
    found = rows(written(tmp_path, CHAIN.format(bound=bound)))
    assert found["look"].calls.most == most
    assert found["list"].calls.most == 2  # it is not asked to repair, and tried twice
    assert math.isfinite(found["synthesize"].calls.most)


class Worst(SmallWeb):
    """Each search has as many hits as may be, of the greatest length; of the pages only the last can be read."""

    async def search(self, query: str, top: int) -> list[Hit]:
        self.calls["search"] += 1
        number = self.calls["search"]
        url = "https://a.example/" + "x" * 2_000
        return [
            Hit(url=f"{url}{number}/{n}", title="t" * 300, snippet="s" * 2_000, rank=n) for n in range(1, top + 1)
        ]  # fmt: skip

    async def fetch(self, url: str) -> Page:
        self.calls["fetch"] += 1
        if int(url.rpartition("/")[2]) < 8:
            return Page(url=url, outcome=Outcome.BLOCKED, detail="403")
        text = f"{url}\n" + "The tower of Ulm is 161 metres tall, says one, and others say other things. " * 400
        return Page(url=url, outcome=Outcome.OK, title="T" * 200, site="S" * 200, text=text, date="2024-05-01")


def at_worst(request: Request) -> Any:
    """As many as it may, and first in a form that must be repaired."""
    if len(request.messages) == 1:
        return "no JSON, and no marker"
    if request.purpose == "plan":
        return {"needs_search": True, "queries": [f"query {n}" for n in range(20)], "reason": "r"}
    if request.purpose == "rerank":
        return {"ranking": list(range(1, 31))}
    if request.purpose == "screen":
        return {"relevant": True}
    if request.purpose == "extract":
        quote = "The tower of Ulm is 161 metres tall, says one, and others say other things. " * 12
        return extracted(request, [quote[: 900 + n] for n in range(6)], "c")
    if request.schema is not None:
        return dict.fromkeys(request.schema["properties"], "It is 161 metres tall.")
    return "It is 161 metres tall [1]."


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tool-use"])
async def test_a_run_at_its_worst_stays_within_the_forecast(tmp_path: Path, name: str) -> None:
    """The tries of a provider's wire are left out on both sides: a scripted model breaks nothing off."""
    laboratory = Laboratory(tmp_path, web=Worst())
    for model in (laboratory.cheap, laboratory.capable):
        model._script = at_worst
    pipeline = load_pipeline(name)
    await laboratory.ask(pipeline)
    requests = [*laboratory.cheap.requests, *laboratory.capable.requests]
    sent: Counter[str] = Counter()
    for request in requests:
        body = [request.system, *(message.text for message in request.messages), json.dumps(request.schema)]
        sent[request.purpose] += math.ceil(sum(len(text.encode()) for text in body) / 3)
    found = {pipeline.stages[name].kind.name: row for name, row in rows(pipeline).items()}
    for kind, made in laboratory.calls.items():
        tries = 2 if found[kind].output != Range(0, 0) else 1
        assert made <= found[kind].calls.most / tries, kind
        assert sent[kind] <= found[kind].input.most / tries, kind
    tight = {"small": ["plan"], "snippets": ["plan", "synthesize"]}.get(name, ["plan", "extract", "synthesize"])
    for kind in found.keys() & tight:  # it is a bound that can be reached
        assert laboratory.calls[kind] * 2 == found[kind].calls.most, kind


LOOP = """
answer = "answer"
[stage.investigate]
takes = ["question", "as_of"]
gives = "answer"
model = "capable"
prompt = "prompts/tool-use.md"
tools = ["search", "fetch"]
steps = 4
searches = 3
pages = 2
compact = "prompts/tool-use-compact.md"
actions = "prompts/tool-use-actions.md"
sentences = "prompts/synthesize-keyed.md"
"""


async def test_a_loop_is_bounded_by_its_steps(tmp_path: Path) -> None:
    """A model that would search for ever gets its 4 replies and a last one; 3 of its searches are made."""
    shutil.copytree(PIPELINES / "tools", tmp_path / "tools")
    pipeline = written(tmp_path, LOOP)
    found = rows(pipeline)
    assert {name: row.calls.most for name, row in found.items()} == {
        "investigate turn": 5 * 2, "investigate compact": 5 * 2, "investigate search": 3, "investigate fetch": 2,
    }  # fmt: skip
    assert math.isfinite(found["investigate turn"].worst_usd or 0)
    laboratory = Laboratory(tmp_path / "home", web=Worst())

    def searching(request: Request) -> Completion:
        call = ToolCall("c", "search", json.dumps({"query": f"query {len(laboratory.capable.requests)}"}))
        calls = (call,) if request.tool_choice == "auto" else ()
        return Completion("" if calls else "Nothing.", "tool_calls" if calls else "stop", Usage(1, 0, 0, 1), "m", calls)

    laboratory.capable._script = searching
    await laboratory.ask(pipeline)
    assert len(laboratory.capable.requests) == 5
    assert laboratory.web.calls["search"] == 3
