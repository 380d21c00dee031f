"""The view of a run on stderr: what a terminal shows while it goes on, and what a file gets."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from research.cli.progress import Progress, Row
from research.evidence.markers import cite
from research.records import Answer, Ending, Fact, Grade

QUOTE = "The tower is 161 metres high."
FACT = Fact(claim=QUOTE, quote=QUOTE, start=0, end=29, grade=Grade.EXACT, url="https://a.example/", page="p")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def size(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TERM": "xterm", "COLUMNS": "40", "LINES": "10", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)


def written(text: str) -> Answer:
    cited = cite(text, [FACT])
    return Answer(text=cited.text, ending=Ending.PARTLY, citations=cited.citations, sentences=cited.sentences)


def shown(progress: Progress) -> list[str]:
    """What the live region shows, line by line."""
    console = Console(file=io.StringIO(), width=40, height=10, color_system=None)
    with console.capture() as captured:
        console.print(progress.live.get_renderable())
    return [line.rstrip() for line in captured.get().splitlines()]


def watching(stream: io.StringIO) -> Progress:
    progress = Progress.on(stream)
    progress.rows = {"extract": Row(), "synthesize": Row()}
    progress.listen({"event": "making", "stage": "synthesize", "item": 0, "at": 0.1})
    return progress


def test_a_terminal_shows_checked_sentences_under_the_stages_and_takes_them_back() -> None:
    with watching(Terminal()) as progress:
        assert len(shown(progress)) == 2
        progress.hear(written("The tower is 161 metres high [1]. It is \x1b]0;x\x07999 metres high [1]."))
        stages, empty, answer = shown(progress)[:2], shown(progress)[2], shown(progress)[3:]
        assert [line.split()[0] for line in stages] == ["extract", "synthesize"]
        assert empty == ""
        assert " ".join(answer) == ("The tower is 161 metres high [1]. It is ]0;x999 metres high [1]. (unsupported)")
        assert max(map(len, answer)) <= 40
        progress.hear(None)
        assert len(shown(progress)) == 2
    assert progress.live is None


def test_what_is_higher_than_the_screen_is_shown_at_its_end() -> None:
    with watching(Terminal()) as progress:
        progress.hear(written("\n".join(f"- The tower is {number} metres high [1]." for number in range(50))))
        lines = shown(progress)
        assert len(lines) == 9
        assert lines[-2:] == ["- The tower is 49 metres high [1].", "(unsupported)"]


def test_a_file_gets_plain_lines_and_nothing_of_the_answer() -> None:
    stream = io.StringIO()
    with watching(stream) as progress:
        progress.hear(written("The tower is 161 metres high [1]."))
        assert progress.live is None
    assert stream.getvalue() == ""
