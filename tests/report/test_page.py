"""The HTML report as a browser shows it: nothing asked for, nothing said on the console, nothing sticking out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from research.report import Report, Setup
from research.report.figures import Figures
from research.report.rendering import rendered
from tests import chromium
from tests.report.test_rendering import EVIL, evil
from tests.report.trials import answer, fact, manifests, took, trial

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(chromium.PROGRAM is None, reason="there is no Chromium on this machine"),
]

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
ALL_OPEN = "document.querySelectorAll('details').forEach(e => e.open = true)"
SHOWN = "[...document.querySelectorAll('.question')].filter(e => getComputedStyle(e).display !== 'none').length"


def large(questions: int, pipelines: int) -> Report:
    """Answers of a few hundred words with six sources each."""
    text = " ".join(f"The tower number {n} of this answer is {n}61 metres tall, they say [1]." for n in range(12))
    facts = [
        fact(f"Tower {n} is {n}61 metres tall and was finished in 18{n}0. " * 4, f"https://towers.example/{n}")
        for n in range(6)
    ]
    whole = answer(text, facts)
    trials = [
        trial(f"q{n}", name, float((n + place) % 3 > 0), answer=whole, took=took(0.01 * (1 + place) + n / 10_000, 1 + place + n / 100))
        for n in range(questions)
        for place, name in enumerate(["fixed", "top-n", "snippets", "tool-use"][:pipelines])
    ]  # fmt: skip
    return Report(Figures.of(trials), "2025-03-01", Setup(manifests()))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_loads_nothing_says_nothing_and_shows_all(tmp_path: Path, width: int, dark: bool) -> None:
    file = tmp_path / "report.html"
    for report in (evil(), large(6, 4)):
        file.write_text(rendered(report, ".html"), encoding="utf-8")
        with chromium.Chromium() as browser:
            browser.open(file, width, dark=dark)
            browser.evaluate(ALL_OPEN)
            assert browser.evaluate(OVERFLOW) <= 0
            assert browser.seen.requests == [file.as_uri()]
            assert browser.seen.console == []
            assert browser.seen.dialogs == []
            paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
            assert paper == ("rgb(21, 24, 28)" if dark else "rgb(255, 255, 255)"), "the style applies under its policy"
            browser.picture(tmp_path / "shot.png", height=600)
            assert (tmp_path / "shot.png").read_bytes().startswith(b"\x89PNG")


def test_questions_are_chosen_without_a_script(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(rendered(large(6, 2), ".html"), encoding="utf-8")
    with chromium.Chromium() as browser:
        browser.open(file)
        assert browser.evaluate(SHOWN) == 6
        browser.evaluate("document.getElementById('show-differ').click()")
        assert browser.evaluate(SHOWN) == 4, "the first and second differ, the third are both right"
        browser.evaluate("document.getElementById('show-failed').click()")
        assert browser.evaluate(SHOWN) == 0


def test_who_hears_it_gets_its_parts_by_name(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(rendered(large(3, 2), ".html"), encoding="utf-8")
    with chromium.Chromium() as browser:
        browser.open(file)
        nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if "role" in node]
    spoken = ("image", "region", "table", "link", "radio", "heading")
    assert [role for role, name in named if role in spoken and not name.strip()] == []
    assert sum(role == "image" for role, _ in named) >= 5
    assert "columnheader" in {role for role, _ in named}
    assert "rowheader" in {role for role, _ in named}


def test_a_hundred_questions_stay_under_three_megabytes(tmp_path: Path) -> None:
    assert len(rendered(large(100, 4), ".html").encode()) < 3_000_000


def test_four_hundred_questions_are_laid_out_at_once(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(rendered(large(400, 4), ".html"), encoding="utf-8")
    with chromium.Chromium() as browser:
        browser.open(file)
        assert browser.evaluate("document.querySelectorAll('.question').length") == 400
        assert browser.evaluate(OVERFLOW) <= 0


def test_it_prints(tmp_path: Path) -> None:
    file, paper = tmp_path / "report.html", tmp_path / "report.pdf"
    file.write_text(rendered(large(3, 4), ".html"), encoding="utf-8")
    assert chromium.PROGRAM is not None
    subprocess.run(
        [chromium.PROGRAM, *chromium.QUIET[:-2], f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={paper}", file.as_uri()],
        check=True, timeout=90, capture_output=True,
    )  # fmt: skip
    import pypdfium2

    text = "".join(page.get_textpage().get_text_bounded() for page in pypdfium2.PdfDocument(paper))
    assert "What was run" in text
    assert re.search(r"tool-use", text)
    assert EVIL not in text
