"""An answer while it is written: never anything but what the whole answer says, and never unchecked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from research.app import App
from research.evidence.drafts import read
from research.evidence.markers import cite
from research.limits.rates import Rates
from research.llm.client import ProviderModel
from research.records import Answer, Fact, Grade, Question
from research.settings import Settings
from research.stages.unfolding import MOST, MOST_LOOKS, Unfolding, whole_sentences, whole_strings
from tests.providers import KEY, Provider, cut
from tests.shipped import DATES, QUESTION, Laboratory, SmallWeb, copied
from tests.test_spending import FIXED, replies, stage_of

QUOTES = ["The tower is 161 metres high.", "It was finished in 1890.", "塔高161米。"]
FACTS = [
    Fact(claim=q, quote=q, start=0, end=len(q), grade=Grade.EXACT, url=f"https://{n}.example/", page="p")
    for n, q in enumerate(QUOTES)
]
REPLIES = [
    "The tower is 161 metres high [1]. It was finished in 1890 [2]. It is loved by many.",
    "The tower is 161 metres high. [1] It was finished in 1890.[2] [1] Thus it stands.\n",
    "## Height\n\n**In short:** the tower is 161 metres high [9][1].\n\n- It was finished in 1890 [2].\n- It is 3.0 years old [1].\n",
    "塔高161米[3]。塔高999米[3]。塔很高。",
    "In the U.S. economy it is 161 metres high, e.g. in 1890 [1]. Mr. Ensinger built it [2]. See [here](http://x.example/) too. Done.",
    "The tower is 161 metres high [1].\n\nSources:\n[1] One, http://x.example/\n",
    "The tower is 161 metres high [1]. Who paid is open.\nMISSING: who paid. And when.",
]


def said(answer: Answer) -> list[tuple[str, str, str]]:
    return [(answer.text[one.start : one.end], one.status, one.reason) for one in answer.sentences]


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("size", [1, 4, 7])
def test_it_tells_the_sentences_of_the_whole_with_their_marks(reply: str, size: int) -> None:
    told: list[Answer | None] = []
    unfolding = Unfolding(told.append, FACTS, whole_sentences, lambda came: read(came, "", FACTS).text)
    for start in range(0, len(reply), size):
        unfolding(reply[start : start + size])
    cited = cite(read(reply, "", FACTS).text, FACTS)
    whole = [(cited.text[one.start : one.end], one.status, one.reason) for one in cited.sentences]
    shown = [said(answer) for answer in told if answer is not None]
    for sentences in shown:
        assert sentences == whole[: len(sentences)]
    assert len(shown[-1]) >= len(whole) - 1  # the last is not known to be whole before all is


def test_what_begins_anew_is_taken_back() -> None:
    told: list[Answer | None] = []
    unfolding = Unfolding(told.append, FACTS, whole_sentences, lambda came: came)
    unfolding("It is tall. It is ol")
    unfolding(None)
    unfolding("It is new. And so ")
    assert [answer and answer.text for answer in told] == ["It is tall.", None, "It is new."]


def test_work_on_an_endless_reply_has_bounds() -> None:
    told: list[Answer | None] = []
    unfolding = Unfolding(told.append, FACTS, whole_sentences, lambda came: came)
    for _ in range(2 * MOST_LOOKS):
        unfolding("So. ")
    assert len(told) == MOST_LOOKS
    unfolding(None)
    unfolding("a" * MOST)
    unfolding(" b. Cc d. Ee f.")
    assert told[-1] is None


@pytest.mark.parametrize("line", ["\n", ". ", " ", "- \n", "e.g. ", "x"])
@pytest.mark.parametrize("ripe", [whole_sentences, whole_strings])
def test_looks_that_find_nothing_cost_little_together(line: str, ripe: Any) -> None:
    """Each goes over all that is unread: with one at every piece that would be 100 million characters and more."""
    scanned = 0

    def counted(reply: str, since: int) -> int:
        nonlocal scanned
        scanned += len(reply) - since
        return int(ripe(reply, since))

    unfolding = Unfolding(lambda _: None, FACTS, counted, lambda came: came)
    reply = "Yes." + line * MOST
    for start in range(0, len(reply), 2):
        unfolding(reply[start : start + 2])
    assert MOST / 2 < scanned < 15 * MOST


def test_what_comes_after_a_long_wait_is_told() -> None:
    told: list[Answer | None] = []
    unfolding = Unfolding(told.append, FACTS, whole_sentences, lambda came: came.strip())
    for piece in [*["\n"] * 5_000, *"It is tall. It is old. ", *("And so on" * 60)]:
        unfolding(piece)
    assert told[-1] is not None
    assert told[-1].text == "It is tall. It is old."


async def test_one_sentence_for_each_source_is_told_as_soon_as_it_is_whole(tmp_path: Path) -> None:
    laboratory, told = Laboratory(tmp_path / "home"), list[Answer | None]()
    pipeline = copied(tmp_path, "small")
    asked = await laboratory.ask(pipeline, hear=told.append)
    first, last = told
    assert first is None
    assert last is not None
    assert (last.text, last.citations, last.sentences) == (
        asked.answer.text,
        asked.answer.citations,
        asked.answer.sentences,
    )
    assert "{" not in last.text
    again = list[Answer | None]()
    assert (await laboratory.ask(pipeline, hear=again.append)).answer == asked.answer
    assert again == []  # from the store: nothing is written


async def asked_of(provider: Provider, home: Path, hear: Any, pipeline: Any = FIXED) -> tuple[Any, Any]:
    """A run against a provider, with all that it keeps and tells but for times."""
    model = ProviderModel(provider.endpoint("anthropic"), Rates(), sleep=lambda _: asyncio.sleep(0))
    app = App(Settings(home), {"cheap": model, "capable": model})
    try:
        asked = await app.ask(Question(text=QUESTION), pipeline, SmallWeb(), DATES, hear=hear)
    finally:
        app.close()
        await model.aclose()
        model.rates.close()
    lines = [line for line in asked.lines if line["event"] in ("made", "reused")]
    keys = sorted((line["stage"], line["key"], line["ref"]) for line in lines)
    calls = sorted(
        (line["stage"], *(call.get(name) for name in ("input", "output", "failed", "tries")))
        for line in lines
        for call in line["receipt"].get("calls", ())
    )
    return asked.answer, (keys, str(calls))


def scripted(body: dict[str, Any]) -> str:
    if stage_of(body) == "synthesize":
        return "The tower of Ulm is 161 metres tall [1]. It is 999 metres tall [1]. It leans. So they say."
    return replies(body)


async def test_who_listens_changes_nothing(tmp_path: Path) -> None:
    told: list[Answer | None] = []
    async with Provider(scripted) as provider:
        without = await asked_of(provider, tmp_path / "without", None)
        heard = await asked_of(provider, tmp_path / "with", told.append)
    assert heard == without
    assert told[0] is None
    last = told[-1]
    assert last is not None
    assert [status for _, status, _ in said(last)] == ["supported", "unsupported", "uncited"]
    assert said(last) == said(heard[0])[:3]
    assert KEY not in repr(told)


async def test_a_try_that_breaks_off_is_taken_back(tmp_path: Path) -> None:
    told: list[Answer | None] = []
    broken = "It rains in Ulm. It pours in Ulm. It is wet there. "

    async def act(writer: asyncio.StreamWriter, request: Any) -> None:
        if stage_of(json.loads(request.body)) == "synthesize":
            provider.faults.clear()
            await cut("anthropic", 6, broken)(writer, request)
        else:
            await provider.complete(writer, request)

    async with Provider(scripted) as provider:
        provider.faults.extend([act] * 20)
        answer, _ = await asked_of(provider, tmp_path, told.append)
    texts = [answer and answer.text for answer in told]
    assert texts[0] is None
    assert texts[1] == "It rains in Ulm. It pours in Ulm."
    taken_back = texts.index(None, 1)
    assert "rains" not in str(texts[taken_back:])
    assert texts[-1] is not None
    assert answer.text.startswith(texts[-1])


async def test_a_refusal_to_answer_is_not_told_before_the_end(tmp_path: Path) -> None:
    told: list[Answer | None] = []

    def refusing(body: dict[str, Any]) -> str:
        said = "NOT ANSWERED: false premise: Ulm has no tower. It never had one. Not ever."
        return said if stage_of(body) == "synthesize" else replies(body)

    async with Provider(refusing) as provider:
        await asked_of(provider, tmp_path, told.append)
    assert {answer and answer.text for answer in told} == {None, ""}
