"""Reports in all formats: nothing a page or a model says is markup, and no figure is of two kinds."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from research.errors import UsageError
from research.report import Report, Setup
from research.report.figures import Figures
from research.report.gathering import in_order
from research.report.pricing import parse, repriced
from research.report.rendering import rendered, written
from research.report.rows import tables
from research.report.shapes import Chart, across, axis, legend
from research.report.stages import waterfalls
from research.report.verdicts import compared
from research.report.wording import summary
from tests.report.trials import answer, fact, failed, manifests, paired, took, trial

EVIL = '<script>alert(1)</script><img src="https://evil.example/x.png" onerror="alert(2)">'
NAUGHTY = [
    fact("Quote " + EVIL, "javascript:alert(3)", title=EVIL, site="</style><script>", before=EVIL, after="]]>"),
    fact("=cmd|' /C calc'!A0", "https://evil.example/?a='><b>", title="\x1b[31mred\u202e"),
    fact("data", "data:text/html,<script>alert(4)</script>"),
]


def evil() -> Report:
    mean = trial(
        f"q {EVIL}",
        "a",
        answer=answer(f"Answer {EVIL} [1]. =1+1 {{{{ 7 * 7 }}}} \x1b[2J", NAUGHTY),
        text=EVIL,
        kind=EVIL,
    )
    trials = [
        mean,
        trial(f"q {EVIL}", "b", text="=1+1", references=(EVIL,)),
        *paired([1.0, 0.0], [0.0, 0.0]),
        failed("q7", "b"),
    ]
    return Report(Figures.of(trials), "2025-03-01", Setup(manifests(), {"command": f"research compare '{EVIL}'"}))


class Elements(HTMLParser):
    """All elements with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    handle_startendtag = handle_starttag


def test_nothing_of_strangers_is_markup_and_nothing_is_loaded() -> None:
    elements = Elements(rendered(evil(), ".html")).found
    names = {name for name, _ in elements}
    assert not names & {"script", "img", "iframe", "object", "embed", "link", "form", "base", "b", "image", "use"}
    for name, attributes in elements:
        assert not any(key.startswith("on") or key in ("src", "srcset", "style", "action") for key in attributes), name
        address = attributes.get("href")
        assert address is None or address.startswith(("#", "https://towers.example/", "https://evil.example/")), address
    outside = [
        attributes for name, attributes in elements if name == "a" and str(attributes["href"]).startswith("http")
    ]
    assert outside
    assert all(attributes["rel"] == "noopener noreferrer nofollow" for attributes in outside)


def test_the_policy_allows_its_own_style_and_nothing_else() -> None:
    text = rendered(evil(), ".html")
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    [policy] = [
        a["content"]
        for n, a in Elements(text).found
        if n == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style
    assert "@import" not in style


def test_no_control_character_reaches_any_format() -> None:
    for suffix in (".html", ".md", ".csv", ".json"):
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e]", rendered(evil(), suffix)), suffix


def test_templates_in_answers_are_not_evaluated() -> None:
    text = rendered(evil(), ".html")
    assert "{{ 7 * 7 }}" in text


def test_markdown_holds_no_markup_of_strangers() -> None:
    text = rendered(evil(), ".md")
    assert "<script" not in text.replace("\\<script", "")
    assert "\\<script\\>" in text


def test_every_row_of_a_table_has_a_cell_for_each_head() -> None:
    found = {table.name: table for table in tables(evil())}
    assert {"overview", "quality", "differences", "paid", "classes", "failures"} <= {*found}
    for table in found.values():
        assert {len(row) for row in table.rows} == {len(table.head)}, table.name


def test_csv_cells_are_no_formulas_and_numbers_stay_numbers() -> None:
    text = rendered(evil(), ".csv")
    assert text.startswith("\ufeff")
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert len(rows) == 7
    assert "'=1+1" in {row["question"] for row in rows}
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    assert {row["usd_as_if_cold"] for row in rows} == {"0.01", ""}
    assert [row["right"] for row in rows if row["question_id"] == "q0"] == ["1", "0"]


def test_json_is_plain_and_keeps_the_ledgers_apart() -> None:
    def no_constant(name: str) -> None:
        raise AssertionError(name)

    data = json.loads(rendered(evil(), ".json"), parse_constant=no_constant)
    [first, _] = data["pipelines"]
    assert first["as_if_cold"]["usd"]["mean"] == pytest.approx(0.01)
    assert first["paid"] == {"usd": 0.0, "unknown_prices": 0}
    assert first["measured_seconds"] is None
    assert data["failures"] == [{"question": "q7", "pipeline": "b", "error": "TimedOutError: too late"}]
    assert data["setup"]["pipelines"]["a"][0]["models"] == {"capable": "made:up"}
    assert data["setup"]["pipelines"]["a"][0]["prompts"] == {"p.md": hashlib.sha256(b"Say.").hexdigest()[:12]}


def test_the_summary_says_what_the_figures_say() -> None:
    trials = paired([0.0] * 12 + [1.0] * 8, [1.0] * 20, took=took(0.02, 4.0))
    said = summary(Report(Figures.of(trials), "2025-03-01", Setup()))
    assert said[0] == "20 questions through a and b: 40 runs; none failed."
    assert said[1] == "Right answers: b 100 %; a 40 % (20 to 60)."
    assert said[2].startswith("b is better than a: +60 points (+40 to +80 points), n = 20, p < 0.001") or said[
        2
    ].startswith("b is better than a: +60 points (+40 to +80 points), n = 20, p = 0.001")
    assert (
        "Cost of a question, as if cold, mean: a $0.02; b $0.02. No difference in cost shown (n = 20) between a and b."
        in said
    )


def timed(first: list[float], second: list[float]) -> list[str]:
    """What is said of questions that took so many seconds through "a" and "b"; all are right, and free."""
    pairs = zip(first, second, strict=True)
    trials = [
        trial(f"q{n}", name, took=took(0.0, seconds))
        for n, pair in enumerate(pairs)
        for name, seconds in zip("ab", pair, strict=True)
    ]
    return summary(Report(Figures.of(trials), "2025-03-01", Setup()))


def test_a_ratio_of_times_is_told_only_where_the_paired_difference_is_shown() -> None:
    """b is faster in four of six questions, although its median is 1.9 times that of a."""
    said = timed([0.20, 0.18, 0.05, 0.05, 0.16, 0.14], [0.19, 0.17, 0.30, 0.40, 0.15, 0.13])
    assert (
        "Time of a question, as if cold, p50: a 0.15 s; b 0.18 s. No difference in time shown (n = 6) between a and b."
        in said
    )
    assert not any("×" in line for line in said)
    assert (
        "By mean quality and p50 of time, a and b are on the frontier: no other is at least as good and as fast, with "
        "a difference shown." in said
    )
    said = timed([0.5] * 10, [1.5] * 10)
    assert "Time of a question, as if cold, p50: a 0.50 s; b 1.5 s (3.0 ×)." in said
    assert any(line.startswith("By mean quality and p50 of time, a is on the frontier") for line in said)


def test_nearly_nothing_is_the_measure_of_nothing() -> None:
    said = timed([0.0001] * 10, [0.1054] * 10)
    assert "Time of a question, as if cold, p50: a 0 ms; b 0.11 s (takes longer)." in said
    assert not any("×" in line for line in said)


def test_a_median_and_a_paired_mean_that_disagree_are_both_told() -> None:
    """The median of a is the lesser, and yet b is faster in eleven of twelve questions."""
    first = [*(1.0 + n / 10 for n in range(6)), 1.55, *(9.0 + n for n in range(5))]
    second = [first[0] - 0.1, *(value - 0.1 for value in first[1:6]), 1.9, *(value - 5 for value in first[7:])]
    said = next(line for line in timed(first, second) if line.startswith("Time"))
    assert said == (
        "Time of a question, as if cold, p50: a 1.5 s; b 1.6 s, though by the mean of questions it is faster."
    )


def test_rows_come_in_the_order_of_questions_and_pipelines_whatever_ended_first() -> None:
    trials = [trial("q1", "a"), trial("q2", "b"), trial("q1", "b", sample=1), trial("q2", "a"), trial("q1", "b")]
    assert [(one.question, one.pipeline, one.sample) for one in in_order(trials)] == [
        ("q1", "a", 0), ("q1", "b", 0), ("q1", "b", 1), ("q2", "a", 0), ("q2", "b", 0),
    ]  # fmt: skip


def test_all_timetables_are_of_one_question_that_is_in_the_middle() -> None:
    """p50 of a is 3 s (q2), of b 4 s; q2 is nearest to both, with q2 of b at 5 s."""
    times = {"a": [1.0, 9.0, 3.0, 2.0, 8.0], "b": [4.0, 20.0, 5.0, 1.0, 2.0]}
    trials = [trial(f"q{n}", name, took=took(0.0, times[name][n])) for n in range(5) for name in "ab"]
    charts = [*waterfalls(Figures.of(trials))]
    assert [chart.title for chart in charts] == [
        "a: 3.0 s for one question, as if cold (p50 of all: 3.0 s)",
        "b: 5.0 s for one question, as if cold (p50 of all: 4.0 s)",
    ]
    assert [chart.told for chart in charts] == [
        "What is q2?: synthesize: 0 ms to 3.0 s",
        "What is q2?: synthesize: 0 ms to 5.0 s",
    ]


def test_labels_stay_within_the_picture_and_off_each_other() -> None:
    chart = Chart("c", "A chart", "", 100)
    across(chart, axis([0.02], 150, chart.width - 20), "seconds", 0, 80)
    legend(chart, [("e0", "answered without search"), ("e1", "not answered")], 95)
    texts = {shape.text: shape.attributes for shape in chart.shapes if shape.tag == "text"}
    assert (texts["20 ms"]["text-anchor"], texts["15 ms"]["text-anchor"]) == ("end", "middle")
    swatches = [shape.attributes["x"] for shape in chart.shapes if shape.tag == "rect"]
    room = float(swatches[1]) - float(texts["answered without search"]["x"])
    assert room >= 9 * len("answered without search"), "as wide as wide letters of 12 px are"


def test_where_nothing_is_shown_it_says_so() -> None:
    said = summary(Report(Figures.of(paired([1.0] * 5, [1.0] * 4 + [0.0])), "2025-03-01", Setup()))
    assert "No difference in quality shown (n = 5) between a and b." in said
    assert "5 questions are few: only large differences can show." in said


def test_recorded_tokens_at_other_prices_are_marked() -> None:
    models = parse("capable=acme:big")
    prices = {"acme:big": 50}
    trials = repriced(paired([1.0], [1.0]), models, lambda name, usage: prices[name] * (usage.input + usage.output))
    assert [one.value("usd") for one in trials] == [pytest.approx(110 * 50e-9)] * 2
    report = Report(Figures.of(trials), "2025-03-01", Setup(), models)
    assert any("estimated" in line for line in summary(report))
    assert "Dollars are estimated" in rendered(report, ".html")
    assert json.loads(rendered(report, ".json"))["price_as"] == models


@pytest.mark.parametrize("text", ["", "cheap", "cheap=acme", "dear=acme:big", "cheap=acme:big,what"])
def test_other_prices_are_asked_for_in_one_way(text: str) -> None:
    with pytest.raises(UsageError, match="--price-as"):
        parse(text)


def test_a_model_without_a_price_prices_nothing() -> None:
    with pytest.raises(UsageError, match="unknown"):
        repriced(paired([1.0], [1.0]), parse("cheap=acme:big"), lambda _name, _usage: None)


def test_a_judge_is_compared_by_question() -> None:
    def verdict(question: str, preference: int) -> dict[str, object]:
        return {"of": question, "judge": {"first": "a", "second": "b", "preference": preference}}

    [one] = compared([verdict("q1", 1), verdict("q2", 1), verdict("q3", 0), verdict("q4", -1)])
    assert (one.metric, one.higher, one.lower, one.equal) == ("judge", 2, 1, 1)
    assert one.interval.mean == 0.25
    assert one.chance == 1.0


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "report.md"
    written(evil(), out)
    assert out.read_text().startswith("# Comparison")
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]


def test_the_same_runs_give_the_same_page() -> None:
    assert rendered(evil(), ".html") == rendered(evil(), ".html")
