"""A report as Markdown: the summary, the tables, what differs, what was run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..output import markdown as escaped
from . import Report
from .figures import Figures
from .rows import Table, tables
from .setup import HOW, facts
from .wording import summary

LONGEST = 160  # characters of an answer


def markdown(report: Report) -> str:
    """Whatever came from a page or a model is escaped."""
    parts = ["# Comparison", f"Made on {report.made}.", "\n".join(f"- {escaped(line)}" for line in summary(report))]
    for table in tables(report):
        parts += [f"## {table.title}", *([f"*{escaped(table.note)}*"] if table.note else []), _table(table)]
    parts += ["## Questions", _answers(report.figures)]
    parts += ["## What was run", _facts(report)]
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
    return _rows([table.head, *table.rows])


def _rows(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = ["| " + " | ".join(map(escaped, row)) + " |" for row in rows]
    return "\n".join([head, "|" + " --- |" * len(rows[0]), *rest])


def _answers(found: Figures) -> str:
    rows = [("question", "pipeline", "ending", "right", "answer")]
    for trials in found.questions.values():
        for trial in trials:
            if trial.sample:
                continue
            right = {1.0: "yes", 0.0: "no"}.get(trial.scores.get("right", -1.0), "")
            text = " ".join((trial.answer.text if trial.answer else trial.error).split())
            short = text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()}…"
            rows.append((trial.text, trial.pipeline, trial.ending, right, short))
    return _rows(rows)


def _facts(report: Report) -> str:
    told = facts(report)
    lines = [
        f"- {name}: {escaped(str(told[name]))}" for name in ("command", "questions", "prices", "python") if name in told
    ]
    for name, made in told["pipelines"].items():
        for one in made:
            models = ", ".join(f"{tier} {model}" for tier, model in one["models"].items())
            prompts = ", ".join(f"{file} {digest}" for file, digest in one["prompts"].items())
            web = f"{one['web']} {one['source']}, of {one['web_date']}"
            told_of = f"{one['pipeline']} {one['digest']}; {models}; as of {one['as_of']}; web: {web}"
            lines.append(f"- {escaped(name)}: {escaped(told_of)}; version {one['version']}; {escaped(prompts)}")
    lines += [f"- {name}: {escaped(how)}" for name, how in HOW.items()]
    return "\n".join(lines)


def plain(tables_: Iterable[Table]) -> str:
    """Tables as aligned text."""
    made = []
    for table in tables_:
        rows = [table.head, *table.rows]
        wide = [max(len(row[place]) for row in rows) for place in range(len(table.head))]
        lines = ["  ".join(cell.ljust(wide[place]) for place, cell in enumerate(row)).rstrip() for row in rows]
        made.append("\n".join([table.title, *lines]))
    return "\n\n".join(made)
