"""One row's record: what was asked, how it ended, what it took.

row, line, id, question, columns   from the question file
state                              done, failed, not started
ending, reason, answer, citations  where it is done, and where the budget ended it halfway
error                              {kind, message} where it is not
paid, as_if_cold                   dollars (`unknown_prices`: calls that are missing in them), calls, tokens
began, seconds, seconds_as_if_cold UTC; seconds of wall time
run, pipeline, recipe, as_of, web_date
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from research.ledger import NANO, Total, as_if_cold, paid, seconds_as_if_cold

if TYPE_CHECKING:
    from research.questions import Row
    from research.records import Answer, Citation

DONE, FAILED, NOT_STARTED = "done", "failed", "not started"

Record = dict[str, Any]
Lines = Sequence[Mapping[str, Any]]


def answered(row: Row, answer: Answer, lines: Lines, made: Mapping[str, str]) -> Record:
    """The record of a row with a typed ending. `made` tells by what: pipeline, recipe, as_of, web_date."""
    return {**_asked(row, DONE), **_said(answer), **_took(lines), **made}


def failed(row: Row, error: Exception, lines: Lines, made: Mapping[str, str], part: Answer | None = None) -> Record:
    """The record of a row that ended with an error; what was paid for it all the same stands in it.

    `part` is the answer that was made of what the budget allowed: it is shown, and made anew.
    """
    told = {"kind": type(error).__name__, "message": str(error)}
    said = {} if part is None else _said(part)
    return {**_asked(row, FAILED), "error": told, **said, **_took(lines), **made}


def not_started(row: Row, why: str, lines: Lines, made: Mapping[str, str]) -> Record:
    """The record of a row that was not run, or could not go on: `lines` tell how far it came."""
    took = _took(lines) if lines else {}
    return {**_asked(row, NOT_STARTED), "error": {"kind": NOT_STARTED, "message": why}, **took, **made}


def _asked(row: Row, state: str) -> Record:
    return {
        "row": row.position,
        "line": row.line,
        "id": row.id,
        "state": state,
        "question": row.question.text,
        "columns": dict(row.columns),
    }


def _said(answer: Answer) -> Record:
    return {
        "ending": str(answer.ending),
        "reason": answer.reason,
        "answer": answer.text,
        "citations": [_citation(citation) for citation in answer.citations],
        "notes": [*answer.notes],
    }


def _citation(citation: Citation) -> Record:
    fact = citation.fact
    return {
        "number": citation.number,
        "start": citation.start,
        "end": citation.end,
        "url": fact.url,
        "title": fact.title,
        "date": fact.date,
        "quote": fact.quote,
        "grade": str(fact.grade),
    }


def _took(lines: Lines) -> Record:
    """What a row's runs took: more than one, where it had to wait for the budget."""
    began = [line for line in lines if line["event"] == "began"]
    ended = [line["at"] for line in lines if line["event"] == "ended"]
    last = _last_run(lines)
    return {
        "paid": _plain(paid(lines)),
        "as_if_cold": _plain(as_if_cold(last)),
        "began": began[0]["when"] if began else None,
        "seconds": round(sum(ended), 4),
        "seconds_as_if_cold": round(seconds_as_if_cold(last), 4),
        "run": began[-1]["run"] if began else None,
    }


def _last_run(lines: Lines) -> Lines:
    begins = [at for at, line in enumerate(lines) if line["event"] == "began"]
    return lines[begins[-1] :] if begins else lines


def _plain(total: Total) -> Record:
    plain = {name: value for name, value in vars(total).items() if name not in ("usd", "unknown")}
    return {"usd": total.usd / NANO, "unknown_prices": total.unknown, **plain}
