"""Whole runs against a loopback provider: the same answer by every wire, each token in the ledger, no cap ever passed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from research.app import App, Asked
from research.errors import BudgetError, OverloadedError, UsageError
from research.ledger import NANO, Receipt, as_if_cold, in_vain, paid
from research.limits.budget import Budget, Caps, Purse
from research.limits.rates import Rates
from research.llm.client import ProviderModel
from research.llm.messages import Message, Request, Usage
from research.loading import load
from research.pipeline import Pipeline
from research.records import Ending, Question
from research.settings import PIPELINES, Settings
from research.stages import KINDS
from research.stages.job import Job
from research.store import Store
from tests import faults
from tests.commands import research
from tests.kinds import Bench
from tests.kinds import pipeline as tiny
from tests.loops import Loops
from tests.providers import KEY, PATHS, Provider, Served, cut, status
from tests.shipped import DATES, QUESTION, SmallWeb, calls

WIRES = sorted(PATHS.values())
INPUT, OUTPUT = 1_000, 5_000  # nano-dollars a token
NO_CAPS = Caps()
FIXED = load(PIPELINES / "fixed.toml", KINDS)


def price(model: str, usage: Usage) -> int | None:
    return None if model.endswith("unknown") else INPUT * (usage.input + usage.cache_write) + OUTPUT * usage.output


def stage_of(body: dict[str, Any]) -> str:
    """Which stage a request comes from, by the schema that it asks for."""
    text = json.dumps(body)
    names = {"needs_search": "plan", '"ranking"': "rerank", '"relevant"': "screen", '"facts"': "extract"}
    found = [stage for sign, stage in names.items() if sign in text or sign.replace('"', '\\"') in text]
    return found[0] if found else "synthesize"


def replies(body: dict[str, Any]) -> str:
    text = json.dumps(body, ensure_ascii=False)
    quote = re.search(r"The tower of Ulm is \d+ metres tall\.", text)
    return {
        "plan": json.dumps(
            {"needs_search": True, "queries": ["ulm tower", "ulm minster height"], "reason": "a figure"}
        ),
        "rerank": json.dumps({"ranking": [3, 2, 1]}),
        "screen": json.dumps({"relevant": True}),
        "extract": json.dumps({"facts": [{"claim": "Its height.", "quote": quote[0] if quote else ""}]}),
        "synthesize": "The tower of Ulm is 161 metres tall [1].",
    }[stage_of(body)]


class Lab:
    def __init__(self, home: Path, provider: Provider) -> None:
        self.home, self.provider = home, provider
        self.web = SmallWeb()
        self.opened: list[ProviderModel] = []

    def model(self, wire: str = "openai-chat", **options: Any) -> ProviderModel:
        self.opened.append(ProviderModel(self.provider.endpoint(wire), Rates(), sleep=_at_once, **options))
        return self.opened[-1]

    async def ask(
        self,
        pipeline: Pipeline = FIXED,
        caps: Caps = NO_CAPS,
        wire: str = "openai-chat",
        home: str = "",
        **options: Any,
    ) -> Asked:
        model = self.model(wire, **options)
        self.provider.requests.clear()
        app = App(Settings(self.home / home), {"cheap": model, "capable": model}, price=price)
        try:
            return await app.ask(Question(text=QUESTION), pipeline, self.web, DATES, budget=Budget(caps))
        finally:
            app.close()

    @property
    def stages(self) -> list[str]:
        return [stage_of(body) for body in self.provider.bodies]

    @property
    def spent(self) -> int:
        """What the provider itself has counted, in nano-dollars."""
        return INPUT * self.provider.served.input + OUTPUT * self.provider.served.output


async def _at_once(seconds: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with Provider(replies) as provider:
        lab = Lab(tmp_path, provider)
        yield lab
        for model in lab.opened:
            await model.aclose()
            model.rates.close()


async def test_every_wire_gives_the_same_answer_and_the_ledger_what_the_provider_counted(lab: Lab) -> None:
    answers = []
    for wire in WIRES:
        for stream in (True, False):
            lab.provider.served = Served()
            asked = await lab.ask(wire=wire, stream=stream, home=f"{wire}-{stream}")
            total, served = paid(asked.lines), lab.provider.served
            assert (total.models, total.input, total.output) == (served.completions, served.input, served.output)
            assert total.usd == lab.spent
            assert vars(as_if_cold(asked.lines)) == vars(total)
            answers.append(asked.answer)
    assert answers[0].ending is Ending.ANSWERED
    assert "161 metres" in answers[0].text
    assert answers[0].citations
    assert all(answer == answers[0] for answer in answers)


# Every try is in the ledger


async def test_a_try_that_was_refused_is_in_the_row_of_the_next(lab: Lab) -> None:
    lab.provider.faults.append(status(429, headers={"retry-after": "0.2"}))
    asked = await lab.ask()
    [call] = _receipt(asked, "plan")["calls"]
    assert call["tries"] == 2
    assert 0.2 <= call["waited"] <= call["seconds"] < 5
    assert 0 < call["first"] < call["seconds"]
    assert paid(asked.lines).usd == lab.spent


async def test_a_try_that_broke_off_has_a_row_of_its_own(lab: Lab) -> None:
    lab.provider.faults.append(cut("openai-chat", after=3))
    asked = await lab.ask()
    broken, whole = _receipt(asked, "plan")["calls"]
    assert broken["failed"] == "TruncatedError"
    assert broken["estimated"]
    assert broken["output"] == FIXED.stages["plan"].sampling.max_tokens  # type: ignore[union-attr]
    assert "failed" not in whole
    assert whole["output"] < 30
    assert paid(asked.lines).estimated == 1
    assert asked.answer.ending is Ending.ANSWERED


async def test_a_provider_that_stays_down_ends_the_run_and_nothing_done_is_done_again(lab: Lab) -> None:
    async def act(writer: asyncio.StreamWriter, request: faults.Received) -> None:
        down = stage_of(json.loads(request.body)) == "synthesize"
        await (status(503)(writer, request) if down else lab.provider.complete(writer, request))

    lab.provider.faults.extend([act] * 100)
    with pytest.raises(OverloadedError) as caught:
        await lab.ask()
    assert caught.value.exit_code == 6
    assert lab.stages.count("synthesize") == 4
    lab.provider.faults.clear()
    asked = await lab.ask()
    assert lab.stages == ["synthesize"]
    assert asked.answer.ending is Ending.ANSWERED


async def test_what_a_failed_run_paid_is_told(lab: Lab) -> None:
    lab.provider.faults.extend([cut("openai-chat")] * 2)
    lines: list[dict[str, Any]] = []
    model = lab.model()
    app = App(Settings(lab.home), {"cheap": model, "capable": model}, price=price)
    with pytest.raises(Exception, match="broke off"):
        await app.ask(Question(text=QUESTION), FIXED, lab.web, DATES, listeners=(lines.append,))
    app.close()
    assert paid(lines).models == 2
    assert in_vain(lines).usd == paid(lines).usd > 0
    assert lines[-1]["paid"] == paid(lines).usd


# Caps


async def test_a_run_that_runs_out_answers_from_what_it_has_and_the_next_does_the_rest(lab: Lab) -> None:
    said = 1_400  # tokens that each reply is told to have taken
    whole = await lab.ask(home="elsewhere")
    worst, cost = {}, {}
    for request in lab.provider.requests:
        stage, size = stage_of(json.loads(request.body)), len(request.body)
        cost[stage] = max(cost.get(stage, 0), INPUT * (size // 4) + OUTPUT * said)
        worst[stage] = max(worst.get(stage, 0), INPUT * -(-size // 3) + OUTPUT * 1_500)
    cap = _share() + cost["plan"] + cost["rerank"] + 2 * worst["extract"]
    lab.provider.usage = lambda asked, _: {"prompt_tokens": asked, "completion_tokens": said}
    lab.provider.served = Served()
    short = await lab.ask(caps=Caps(usd=cap))
    assert short.answer.ending is Ending.PARTLY
    assert short.answer.ending.exit_code == 3
    assert "the budget was used up before 2 of extract could be done" in short.answer.reason
    assert lab.stages.count("extract") == 2
    assert lab.stages.count("synthesize") == 1
    spent = INPUT * lab.provider.served.input + OUTPUT * said * lab.provider.served.completions
    assert paid(short.lines).usd == spent <= cap
    again = await lab.ask()
    assert sorted(lab.stages) == ["extract", "extract", "synthesize"]
    assert again.answer == whole.answer


def _share() -> int:
    """What is kept for the answer: its prompt, 8,000 tokens to fill it with, and its whole allowance."""
    stage = FIXED.stages["synthesize"]
    assert stage.prompt is not None
    assert stage.sampling is not None
    return INPUT * (-(-len(stage.prompt.text.encode()) // 3) + 8_000) + OUTPUT * stage.sampling.max_tokens


async def test_a_selection_that_the_budget_cut_short_does_not_stick(tmp_path: Path) -> None:
    bench, made = Bench(Store(tmp_path / "store")), tiny(tmp_path)
    bench.work["read"] = _refusing({"https://one.example/1", "https://one.example/2"})
    first = await bench.run(made)
    assert {line.get("cause") for line in bench.events("dropped", "read")} == {"budget"}
    bench.work["read"] = bench.read
    again = await bench.run(made)
    assert bench.calls["read"] == 2
    assert again.text != first.text
    assert bench.events("dropped", "read") == []


async def test_when_the_budget_leaves_nothing_of_a_selection(tmp_path: Path) -> None:
    bench, made = Bench(Store(tmp_path / "store")), tiny(tmp_path)
    bench.work["read"] = _refusing(None)
    with pytest.raises(BudgetError):
        await bench.run(made)


def _refusing(urls: set[str] | None) -> Callable[[Any], Any]:
    async def read(inputs: Any) -> Any:
        if urls is None or inputs["url"] in urls:
            raise BudgetError("budget reached")
        return await Bench.read(inputs)

    return read


async def test_a_better_answer_that_cannot_be_paid_for(lab: Lab) -> None:
    """The text cites nothing, and there is no call left to ask for it again: it stands, and the next run asks."""
    lab.provider.replies = lambda body: replies(body) if stage_of(body) != "synthesize" else "It is 161 metres tall."
    asked = await lab.ask(caps=Caps(calls=7))
    assert (lab.stages.count("synthesize"), asked.answer.text) == (1, "It is 161 metres tall.")
    lab.provider.replies = replies
    again = await lab.ask()
    assert lab.stages == ["synthesize"]
    assert again.answer.citations


async def test_a_loop_that_runs_out_answers_from_what_it_has_read(tmp_path: Path) -> None:
    answer = "The tower of Ulm is 161 metres tall [1]."
    script: list[Any] = [
        calls(("search", {"query": "ulm tower"})),
        calls(("fetch", {"url": "https://ulmtower.example/1"})),
    ]
    loops = Loops(tmp_path)
    budget = Budget(Caps(calls=3))
    short = await loops.run([*script, answer], budget=budget)
    assert loops.laboratory.calls["investigate"] == 3
    assert loops.requests[-1].tool_choice == "none"
    assert short.answer.text == answer
    assert short.answer.ending is Ending.PARTLY
    assert "The budget is used up" in short.answer.reason
    again = await loops.run([calls(("fetch", {"url": "https://ulmtower.example/3"})), answer])
    assert loops.laboratory.calls["investigate"] == 2, (
        "the first two turns were kept, the forced answer was not taken up"
    )
    assert again.answer.ending is Ending.ANSWERED
    with pytest.raises(BudgetError):
        await Loops(tmp_path / "other").run([answer], budget=Budget(Caps(calls=1)))


async def test_out_of_money_before_anything_was_read(lab: Lab) -> None:
    with pytest.raises(BudgetError, match=r"3 of --max-calls 3 are used or reserved") as caught:
        await lab.ask(caps=Caps(calls=3))
    assert caught.value.exit_code == 5
    assert sorted(lab.stages) == ["plan", "rerank"]


@pytest.mark.parametrize("caps", [Caps(usd=0), Caps(calls=0)])
async def test_nothing_means_no_paid_call(lab: Lab, caps: Caps) -> None:
    with pytest.raises(BudgetError):
        await lab.ask(caps=caps)
    assert lab.provider.requests == []
    await lab.ask()
    assert (await lab.ask(caps=caps)).answer.ending is Ending.ANSWERED, "what is in the store costs nothing"


async def test_an_unknown_price_under_a_cap(lab: Lab) -> None:
    known = lab.model()
    unknown = lab.model()
    unknown.endpoint = type(unknown.endpoint)(**{**vars(unknown.endpoint), "model": "unknown"})
    app = App(Settings(lab.home), {"cheap": known, "capable": unknown}, price=price)
    with pytest.raises(UsageError, match="the price of loopback:unknown is unknown"):
        await app.ask(Question(text=QUESTION), FIXED, lab.web, DATES, budget=Budget(Caps(usd=NANO)))
    assert lab.provider.requests == []
    asked = await app.ask(Question(text=QUESTION), FIXED, lab.web, DATES, budget=Budget(Caps(calls=50)))
    assert paid(asked.lines).unknown == 1
    app.close()


def _job(model: ProviderModel, purse: Purse, price: Callable[[str, Usage], int | None]) -> Job:
    return Job("prompt", KINDS["prompt"].params(), Receipt(), b"", bound_model=model, price=price, purse=purse)


ASKED = Request("", (Message("user", "What is two and two?"),), max_tokens=10)


async def test_fifty_calls_at_once_never_cost_more_than_the_cap(lab: Lab) -> None:
    cents = 3 * NANO // 100
    lab.provider.latency = 0.02
    model, purse = lab.model(), Purse(Budget(Caps(usd=NANO)))

    async def call() -> bool:
        try:
            await _job(model, purse, lambda name, usage: cents).complete(ASKED)
        except BudgetError:
            return False
        return True

    done = await asyncio.gather(*(call() for _ in range(50)))
    assert sum(done) == len(lab.provider.requests) == 33
    assert purse.budget.spent() == (33 * cents, 33)
    assert not await call()
    assert len(lab.provider.requests) == 33


async def test_a_reply_that_reports_more_than_was_reserved(lab: Lab) -> None:
    lab.provider.usage = lambda asked, said: {"prompt_tokens": 5_000_000, "completion_tokens": said}
    purse = Purse(Budget(Caps(usd=NANO)))
    job = _job(lab.model(), purse, price)
    await job.complete(ASKED)
    assert purse.budget.spent()[0] == job.receipt.calls[0].usd > NANO  # type: ignore[operator]
    with pytest.raises(BudgetError):
        await job.complete(ASKED)
    assert len(lab.provider.requests) == 1


@pytest.mark.parametrize("figure", [None, -3, float("nan")])
async def test_usage_that_is_not_told_is_settled_at_what_was_reserved(lab: Lab, figure: Any) -> None:
    lab.provider.usage = lambda asked, said: {} if figure is None else {"prompt_tokens": figure, "completion_tokens": 1}
    purse = Purse(Budget(Caps(usd=NANO)))
    job = _job(lab.model(), purse, price)
    await job.complete(ASKED)
    size = len(lab.provider.requests[0].body)
    assert purse.budget.spent()[0] == INPUT * -(-size // 3) + OUTPUT * 10
    [call] = job.receipt.calls
    assert (call.estimated, call.usd) == (True, purse.budget.spent()[0])


async def test_retries_are_reserved_one_by_one(lab: Lab) -> None:
    lab.provider.faults.extend([cut("openai-chat")] * 2)
    purse = Purse(Budget(Caps(calls=1)))
    job = _job(lab.model(), purse, price)
    with pytest.raises(BudgetError):
        await job.complete(ASKED)
    assert len(lab.provider.requests) == 1
    assert [call.failed for call in job.receipt.calls] == ["TruncatedError"]


# Deadlines


async def test_a_deadline_before_an_answer(lab: Lab) -> None:
    lab.provider.faults.append(faults.hang())
    with pytest.raises(BudgetError, match="plan was not done in time") as caught:
        await lab.ask(caps=Caps(seconds=0.3))
    assert caught.value.exit_code == 5


async def test_what_is_not_there_at_the_deadline_is_left_out(lab: Lab) -> None:
    hung = 0

    async def act(writer: asyncio.StreamWriter, request: faults.Received) -> None:
        nonlocal hung
        if stage_of(json.loads(request.body)) == "extract" and not hung:
            hung += 1
            await asyncio.sleep(60)
        await lab.provider.complete(writer, request)

    lab.provider.faults.extend([act] * 100)
    asked = await lab.ask(caps=Caps(seconds=3.0))
    assert asked.answer.ending is Ending.PARTLY
    assert "1 of extract" in asked.answer.reason
    assert asked.lines[-1]["at"] < 3.0
    assert in_vain(asked.lines).estimated == 1, "the call that was broken off may have to be paid for"
    lab.provider.faults.clear()
    again = await lab.ask()
    assert sorted(lab.stages) == ["extract", "synthesize"]
    assert again.answer.ending is Ending.ANSWERED


# The command line

CONFIG = """
cheap = "mine:model-1"
capable = "mine:model-1"
[providers.mine]
wire = "openai-chat"
base_url = "{url}"
key_env = "MINE_API_KEY"
local = false
"""
PRICES = '[prices."mine:model-1"]\ninput = 1.0\noutput = 5.0\n'


async def command(lab: Lab, home: Path, prices: str, *flags: str) -> tuple[int, str, str]:
    config = home / "config" / "research"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text(CONFIG.format(url=lab.provider.url("/v1")) + prices)
    arguments = ["ask", "--offline", *flags, "What is the US inflation rate?"]
    settings = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "MINE_API_KEY": KEY}
    done = await asyncio.to_thread(research, home, *arguments, **settings)
    return done.returncode, done.stdout, done.stderr


async def test_the_command_line_under_caps(lab: Lab, tmp_path: Path) -> None:
    def spoken(body: dict[str, Any]) -> str:
        if stage_of(body) == "plan":
            return json.dumps({"needs_search": True, "queries": ["US inflation rate percent"], "reason": "a figure"})
        if stage_of(body) == "extract":
            quote = re.search(
                r"[^.\"\\]{20,}\d[\d.]* percent[^.\"\\]*", json.dumps(body["messages"][-1], ensure_ascii=False)
            )
            return json.dumps({"facts": [{"claim": "A rate.", "quote": quote[0] if quote else ""}]})
        return replies(body) if stage_of(body) != "synthesize" else "It is 3.0 percent [1]."

    lab.provider.replies = spoken
    code, _, err = await command(lab, tmp_path, "")
    assert (code, len(lab.provider.requests)) == (2, 0), "the default ceiling is a cap as well"
    assert "the price of mine:model-1 is unknown" in err
    code, _, err = await command(lab, tmp_path, PRICES, "--max-usd", "0")
    assert (code, len(lab.provider.requests)) == (5, 0)
    code, out, err = await command(lab, tmp_path, PRICES, "--max-calls", "6")
    assert code == 3, err
    assert "Partly answered" in out
    assert len(lab.provider.requests) <= 6
    code, out, err = await command(lab, tmp_path, PRICES)
    assert code == 0, err
    assert KEY not in out + err
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 10
    assert all(KEY.encode() not in file.read_bytes() for file in files)


def _receipt(asked: Asked, stage: str) -> dict[str, Any]:
    [line] = [line for line in asked.lines if line["event"] == "made" and line["stage"] == stage]
    receipt: dict[str, Any] = line["receipt"]
    return receipt
