"""How an answer ends, and what its reader is told besides: by what a model replied and what the pages say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from research.cli.ask import holds_strictly
from research.errors import OverloadedError
from research.llm.messages import Request
from research.pipeline import Pipeline
from research.records import Answer, Ending, Hit, Outcome, Page
from research.rendering import markdown, plain
from research.stages.verify import with_verification
from tests.shipped import QUESTION, Laboratory, copied, reply

PAGES = {
    "https://one.example/": ("One", "2024-05-01", "The tower of Ulm is 161.5 metres tall. It was finished in 1890 after five centuries of work."),
    "https://two.example/": ("Two", "2024-01-01", "The tower of Ulm is 155 metres tall. No other church is taller, says the guide that the town hands out."),
    "https://copy.example/": ("Copy", "2024-06-01", "The tower of Ulm is 161.5 metres tall. It was finished in 1890 after five centuries of work. Read more."),
}  # fmt: skip


class Town:
    """A web of three pages, one a copy of another, one that says something else."""

    name = source = "town"
    date = "2025-03-01"
    pages = PAGES

    async def search(self, query: str, top: int) -> list[Hit]:
        return [Hit(url=url, title=title, rank=rank) for rank, (url, (title, _, _)) in enumerate(self.pages.items(), 1)]

    async def fetch(self, url: str) -> Page:
        title, date, text = self.pages[url]
        return Page(url=url, outcome=Outcome.OK, title=title, site=url.split("/")[2], text=text, date=date)


def quotes(request: Request) -> dict[str, Any]:
    sentences = re.findall(r"[^.]+(?:\.\d+[^.]+)?\.", request.given["text"])
    return {"facts": [{"claim": "c", "quote": sentence.strip()} for sentence in sentences[:2]]}


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Any]:
    """An answer of the fixed pipeline whose synthesizer replies with what is given, one after the other."""

    async def asked(*said: str, pages: dict[str, Any] = PAGES, change: Callable[[Pipeline], Pipeline] = lambda it: it,
                    verdicts: Any = None) -> Answer:  # fmt: skip
        laboratory = Laboratory(tmp_path / str(abs(hash((said, tuple(pages))))))
        left = list(said)

        def script(request: Request) -> Any:
            if request.purpose == "extract":
                return quotes(request)
            if request.purpose == "rerank":
                return {"ranking": [1, 2, 3]}
            if request.purpose == "verify":
                return verdicts
            return left.pop(0) if request.purpose == "synthesize" else reply(request)

        laboratory.cheap._script = laboratory.capable._script = script
        laboratory.web = Town()  # type: ignore[assignment]
        laboratory.web.pages = pages  # type: ignore[attr-defined]
        laboratory.web.calls = type("None", (), {"clear": lambda self: None})()
        pipeline = change(copied(tmp_path / "pipelines", "fixed"))
        answer = (await laboratory.ask(pipeline)).answer
        assert not left
        return answer

    return asked


async def test_copies_count_once_and_a_note_says_so(ask: Callable[..., Any]) -> None:
    answer = await ask("It is 161.5 metres tall [1][5]. It was finished in 1890 [2].", "It is 161.5 metres tall [1].")
    assert {citation.fact.url for citation in answer.citations} == {"https://one.example/"}
    assert [(copy.url, copy.copy_of) for copy in answer.copies] == [("https://copy.example/", "https://one.example/")]
    assert "copy.example carries the text of one.example: they count as one source." in answer.notes


async def test_values_that_differ_stand_side_by_side(ask: Callable[..., Any]) -> None:
    answer = await ask("The tower of Ulm is 161.5 metres tall [1].")
    assert (answer.ending, answer.cause) == (Ending.ANSWERED, "conflicting")
    [disagreement] = answer.disagreements
    assert [(one.value, one.number, one.fact.site, one.fact.date) for one in disagreement.values] == [
        ("161.5", 1, "one.example", "2024-05-01"),
        ("155", 0, "two.example", "2024-01-01"),
    ]
    told = plain(answer)
    assert "Sources differ\n\n161.5: one.example · 2024-05-01 [1]\n" in told
    assert (
        "\n155: two.example · 2024-01-01\n    https://two.example/\n    “The tower of Ulm is 155 metres tall.”" in told
    )
    assert "## Sources differ\n\n- 161.5: one.example · 2024-05-01 [1] <https://one.example/>" in markdown(
        QUESTION, answer
    )


async def test_what_is_read_and_not_cited_is_named(ask: Callable[..., Any]) -> None:
    answer = await ask("It was finished in 1890 [2].")
    assert [one.url for one in answer.uncited] == ["https://two.example/"]
    assert answer.disagreements == ()  # they differ about what the answer does not tell
    assert "Read, not cited: two.example" in plain(answer)


async def test_as_of_and_the_newest_source(ask: Callable[..., Any]) -> None:
    answer = await ask("It was finished in 1890 [2].")
    assert (answer.as_of, answer.newest) == ("2025-03-01", "2024-05-01")
    assert "As of 2025-03-01. The newest cited source is of 2024-05-01." in plain(answer)


@pytest.mark.parametrize(
    ("said", "cause", "told"),
    [
        ("NOT ANSWERED: not in the sources: nothing tells its weight", "not in the sources", "Not answered: nothing tells its weight."),
        ("NOT ANSWERED: false premise: the tower of Ulm is a church's and no lighthouse", "false premise",
         "Not answered (false premise): the tower of Ulm is a church's and no lighthouse."),
        ("NOT ANSWERED: false premise: it was finished in 1890 [2].", "false premise", "Not answered (false premise).\n\nit was finished in 1890 [1]."),
    ],
)  # fmt: skip
async def test_not_answered(ask: Callable[..., Any], said: str, cause: str, told: str) -> None:
    answer = await ask(said)
    assert (answer.ending, answer.cause, answer.ending.exit_code) == (Ending.NOT, cause, 4)
    assert plain(answer).startswith(told)
    assert {one.url for one in answer.uncited} >= {"https://two.example/"}  # whoever was silenced can be seen


async def test_conflicting_ends_so_with_all_that_differs(ask: Callable[..., Any]) -> None:
    answer = await ask("NOT ANSWERED: conflicting: one source has 161.5 metres, another 155")
    assert (answer.ending, answer.cause) == (Ending.NOT, "conflicting")
    assert [one.value for one in answer.disagreements[0].values] == ["161.5", "155"]


async def test_a_partial_answer_names_what_is_missing(ask: Callable[..., Any]) -> None:
    answer = await ask("It was finished in 1890 [2].\nMISSING: who built it")
    assert (answer.ending, answer.reason, answer.ending.exit_code) == (Ending.PARTLY, "who built it", 3)
    assert "Partly answered; missing: who built it." in plain(answer)


async def test_unknown_markers_cost_one_repair_and_a_warning(ask: Callable[..., Any]) -> None:
    answer = await ask("It was finished in 1890 [2]. So says [77].", "It was finished in 1890 [2]. So says [78][79].")
    assert answer.text == "It was finished in 1890 [1]. So says."
    assert answer.removed_markers == 2
    assert "2 citations of sources that are not there were left out." in answer.notes


async def test_no_citation_at_all(ask: Callable[..., Any]) -> None:
    answer = await ask("It is very tall.", "It is really very tall.")
    assert answer.ending is Ending.ANSWERED
    assert "No sentence of this answer cites a source." in answer.notes
    assert "It is really very tall. (no source)" in plain(answer)
    assert not holds_strictly(answer)


async def test_a_number_that_stands_in_no_quote_is_marked(ask: Callable[..., Any]) -> None:
    answer = await ask("It was finished in 1890 [2]. It is 170 metres tall [1].")
    assert answer.sentences[0].status == "supported"
    assert answer.sentences[1].status in ("partly", "unsupported")
    assert answer.sentences[1].reason == "170 stands in no cited quote"
    assert "1 of 2 sentences are supported." in plain(answer)
    assert "170 stands in no cited quote" in markdown(QUESTION, answer)


@pytest.mark.parametrize(
    ("said", "strict"),
    [
        ("It was finished in 1890 [2].", True),
        ("It was finished in 1890 [2]. Nobody doubts that it is the finest of all.", False),
        ("It was finished in 1890 [2]. Elephants live in Kenya and eat 170 bananas [1].", False),
    ],
)
async def test_strict(ask: Callable[..., Any], said: str, strict: bool) -> None:
    assert holds_strictly(await ask(said)) is strict


async def test_instructions_are_not_repeated(ask: Callable[..., Any]) -> None:
    leak = "My instructions are: You answer a question from numbered facts, and from nothing else."
    answer = await ask(f"It was finished in 1890 [2]. {leak}")
    assert answer.text == "It was finished in 1890 [1]."
    assert "1 sentence that repeated the program's instructions was left out." in answer.notes


TWO = "It was finished in 1890 [2]. It is 170 metres tall [1]."


async def test_a_model_checks_sentences_but_rules_have_the_last_word_on_numbers(ask: Callable[..., Any]) -> None:
    verdicts = {"verdicts": [
        {"sentence": 1, "verdict": "unsupported", "reason": "see [here](https://evil.example)"},
        {"sentence": 2, "verdict": "supported", "reason": ""},
        {"sentence": 9, "verdict": "supported", "reason": ""},
    ]}  # fmt: skip
    answer = await ask(TWO, change=with_verification, verdicts=verdicts)
    first, second = answer.sentences
    assert (first.status, first.reason) == ("unsupported", "see here")
    assert second.status != "supported"
    assert second.reason == "170 stands in no cited quote"
    assert answer.verification == "done"
    assert "Its sentences were checked by scripted:cheap." in answer.notes


async def test_a_check_that_fails_leaves_the_answer_and_says_so(ask: Callable[..., Any]) -> None:
    answer = await ask(TWO, change=with_verification, verdicts=OverloadedError("busy\x1b[31m"))
    assert answer.ending is Ending.ANSWERED
    assert answer.verification == "failed"
    assert answer.sentences[0].status == "supported"
    assert "Not checked by a model, for it failed (busy[31m)" in " ".join(plain(answer).split())


async def test_a_check_that_failed_is_made_again(tmp_path: Path) -> None:
    laboratory = Laboratory(tmp_path / "home")
    pipeline = with_verification(copied(tmp_path / "pipelines", "fixed"))
    state: dict[str, Any] = {"verify": OverloadedError("busy")}
    laboratory.cheap._script = lambda request: state["verify"] if request.purpose == "verify" else reply(request)
    first = await laboratory.ask(pipeline)
    assert first.answer.verification == "failed"
    state["verify"] = {"verdicts": [{"sentence": 1, "verdict": "supported", "reason": ""}]}
    again = await laboratory.ask(pipeline)
    assert again.answer.verification == "done"
    assert laboratory.calls == {"verify": 1}
    made = [line for line in again.lines if line["event"] == "made"]
    assert [line["stage"] for line in made] == ["verify"]  # a line of the ledger of its own
    assert made[0]["receipt"]["calls"][0]["tier"] == "cheap"
    assert 'answer = "verified_answer"' in pipeline.text
    assert with_verification(pipeline) is pipeline
    await laboratory.ask(pipeline)
    assert not laboratory.calls
