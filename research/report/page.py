"""A report as one HTML file: no script, nothing loaded, whatever came from a page or a model escaped."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..output import at_quote, clean, on_one_line
from ..records import Answer, Citation, Grade
from ..rendering import after, before, blocks, by_number, labels, told
from . import Report
from .charts import distribution, endings, forest, frontier_chart
from .figures import Figures
from .gathering import Trial
from .rows import tables
from .setup import facts
from .shapes import Chart
from .stages import stage_costs, waterfalls
from .units import money, seconds
from .wording import summary

TEMPLATES = Path(__file__).parent / "templates"
SOURCES, QUOTES = 6, 2  # that are shown of an answer, and of a source
LONGEST_QUOTE, LONGEST_TEXT, AROUND = 240, 3_000, 60  # characters
LONGEST_REPEAT = 160
_UNIT = re.compile(r"(?<=\d) (?=%|m?s\b|×|points\b)|(?<=[np] [<=]) (?=\d)")


def page(report: Report) -> str:
    """The whole page, in UTF-8."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
    )
    environment.filters["tight"] = _tight
    draw = environment.get_template("picture.svg").module.draw  # type: ignore[attr-defined]
    style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    found = report.figures
    return environment.get_template("report.html").render(
        title=f"Comparison of {', '.join(arm.pipeline for arm in found.arms)}",
        made=report.made,
        estimated=bool(report.price_as),
        style=Markup(style),
        style_digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        summary=summary(report),
        frontier=[chart for metric in ("usd", "seconds") if (chart := frontier_chart(found, metric)) is not None],
        tables=list(tables(report)),
        charts=list(charts(found)),
        waterfalls=[*waterfalls(found)],
        questions=[question(found, trials) for trials in found.questions.values()],
        setup={"command": "", "questions": "", "parallel": "", "isolated": False, **facts(report)},
        drawn=draw,
    )


def _cleaned(value: Any) -> Any:
    """What is printed, without control characters; our own markup as it is."""
    return clean(value) if type(value) is str else value


def _tight(text: str) -> str:
    """A sentence whose figures stay with their units at the end of a line."""
    return _UNIT.sub("\u00a0", text)


def charts(found: Figures) -> Iterator[Chart]:
    made = [
        forest(found.differences, found.quality, "Differences in quality, with their 95 % intervals"),
        endings(found),
        distribution(found, "seconds"),
        distribution(found, "usd"),
        stage_costs(found),
    ]
    return (chart for chart in made if chart is not None)


def question(found: Figures, trials: Sequence[Trial]) -> dict[str, Any]:
    """A question with the answers of all pipelines: of the first sample whole, of others in a line."""
    first = trials[0]
    outcomes = {trial.scores.get("right", trial.ending) for trial in trials}
    references = " · ".join(first.references)
    return {
        "text": first.text,
        "kind": first.kind,
        "references": "none: it can't be answered" if first.unanswerable else references,
        "differ": len(outcomes) > 1,
        "wrong": any(trial.scores.get("right") == 0 for trial in trials),
        "failed": any(trial.failed for trial in trials),
        "sides": [
            side(number, own[0], own[1:])
            for number, arm in enumerate(found.arms)
            if (own := [trial for trial in trials if trial.pipeline == arm.pipeline])
        ],
    }


def side(number: int, trial: Trial, others: Sequence[Trial]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "number": number % 8,
        "name": trial.pipeline,
        "mark": mark(trial),
        "figures": told_of(trial),
        "error": trial.error,
        "run": trial.run,
        "repeats": [_repeat(other) for other in others],
        "before": [],
        "blocks": [],
        "after": [],
        "sources": [],
        "count": "",
        "more": "",
    }
    if trial.answer is not None:
        shown |= evidence(trial.answer)
    return shown


def mark(trial: Trial) -> str:
    if trial.failed:
        return "failed"
    return {1.0: "right", 0.0: "wrong"}.get(trial.scores.get("right", -1.0), "")


def told_of(trial: Trial) -> str:
    """How it ended, and what it takes as if cold."""
    if trial.took is None:
        return trial.ending
    return f"{trial.ending} · {money(trial.value('usd'))} · {seconds(trial.took.seconds)} as if cold"


def _repeat(trial: Trial) -> str:
    text = on_one_line(trial.answer.text if trial.answer else trial.error)
    short = text if len(text) <= LONGEST_REPEAT else f"{text[:LONGEST_REPEAT].rstrip()}…"
    return ": ".join(part for part in (f"{trial.sample + 1}. {mark(trial) or trial.ending}", short) if part)


def evidence(answer: Answer) -> dict[str, Any]:
    """An answer's text and its sources, cut where they are long."""
    names = labels(answer, by_name=False)
    text = told(answer, names)
    cut = f"{text[:LONGEST_TEXT].rstrip()} …" if len(text) > LONGEST_TEXT else text
    sources = by_number(answer)
    rest = len(sources) - SOURCES
    return {
        "before": before(answer),
        "blocks": [(is_code, block.strip("`~\n") if is_code else block) for is_code, block in blocks(cut)],
        "after": after(answer),
        "sources": [source(number, citations) for number, citations in [*sources.items()][:SOURCES]],
        "count": f"{len(sources)} source{'s' if len(sources) > 1 else ''}",
        "more": f"{rest} further sources: research show --evidence tells them." if rest > 0 else "",
    }


def source(number: int, citations: Sequence[Citation]) -> dict[str, Any]:
    fact = citations[0].fact
    head = " · ".join(dict.fromkeys(on_one_line(part) for part in (fact.title, fact.site, fact.date or "") if part))
    return {
        "number": number,
        "head": head or on_one_line(fact.url),
        "address": at_quote(fact.url, fact.quote),
        "quotes": [quote(citation) for citation in citations[:QUOTES]],
    }


def quote(citation: Citation) -> dict[str, str]:
    fact = citation.fact
    text = on_one_line(fact.quote)
    return {
        "text": text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rstrip()}…",
        "before": on_one_line(fact.before[-AROUND:].partition(" ")[2]),
        "after": on_one_line(fact.after[:AROUND].rpartition(" ")[0]),
        "grade": "" if fact.grade in (Grade.EXACT, Grade.NORMALISED) else str(fact.grade),
    }
