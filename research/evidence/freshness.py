"""Whether evidence is as recent as its question implies: by the question's words and dates, against today's date."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta

from .quantities import quantities

LATELY = 90  # days: evidence about "now", "current" or "latest" is old from there on

_TODAY, _WEEK, _MONTH, _YEAR, _NOW = "today", "this week", "this month", "this year", "now"
_SPELLED = {
    _TODAY: r"today|tonight|heute|aujourd['’]hui|hoy|oggi|hoje|vandaag|сегодня",
    _WEEK: r"this week|diese woche|cette semaine|esta semana|questa settimana|на этой неделе",
    _MONTH: r"this month|diese[nmrs]? monat|ce mois|este mes|questo mese|в этом месяце",
    _YEAR: r"this year|diese[nmrs]? jahr|cette année|este año|quest['’]anno|este ano|в этом году",
    _NOW: r"now|nowadays|current(?:ly)?|latest|newest|most recent|at (?:the moment|present)|so far|up[ -]to[ -]date"
    r"|aktuell\w*|derzeit\w*|zurzeit|jetzt|neueste\w*|actuel\w*|maintenant|dernière?s?|actual(?:mente|es)?|ahora"
    r"|últim[oa]s?|attual\w*|adesso|atual\w*|agora|huidige?|momenteel|сейчас|текущ\w+|последн\w+",
}
_UNSPACED = {_TODAY: "今日|今天|오늘", _MONTH: "今月|本月", _YEAR: "今年|올해", _NOW: "現在|最新|目前|当前|현재|최근"}
_IMPLIES = {
    name: re.compile(rf"\b(?:{words})\b" + (f"|{_UNSPACED[name]}" if name in _UNSPACED else ""), re.IGNORECASE)
    for name, words in _SPELLED.items()
}


def newest(dates: Iterable[str | None], as_of: str = "") -> str:
    """The latest of the dates (YYYY-MM-DD), "" without any. One after `as_of` can't be right and is passed over."""
    latest = _day(as_of) or date.max - timedelta(days=1)
    known = [day for day in map(_day, dates) if day is not None and day <= latest + timedelta(days=1)]  # time zones
    return max(known).isoformat() if known else ""


def warning(question: str, newest_evidence: str, as_of: str) -> str:
    """What to tell the reader if the newest evidence is older than the question implies; "" if it is not."""
    today = _day(as_of)
    due = None if today is None else implied(question, today)
    if due is None:
        return ""
    since, what = due
    day = _day(newest_evidence)
    if day is None:
        return f"The question asks about {what}, and no cited source has a date."
    if day < since:
        return f"The question asks about {what}, and the newest cited source is of {day}: this may be out of date."
    return ""


def implied(question: str, today: date) -> tuple[date, str] | None:
    """From when on evidence must be to tell what is asked, and what that is; None where any will do.

    >>> implied("What is the inflation rate this year?", date(2025, 3, 1))
    (datetime.date(2025, 1, 1), 'this year')
    >>> implied("What was it in February 2025?", date(2025, 3, 1))
    (datetime.date(2025, 2, 1), 'February 2025')
    """
    found = [(_since(name, today), name) for name, words in _IMPLIES.items() if words.search(question)]
    for one in quantities(question).dates:
        if one.year is not None and 1000 <= one.year <= today.year:
            begin = date(one.year, one.month or 1, min(one.day or 1, 28))
            if begin <= today:  # nobody has evidence of a future
                found.append((begin, one.text))
    return max(found, default=None)


def _since(name: str, today: date) -> date:
    days = {_TODAY: 1, _WEEK: 7, _NOW: LATELY}
    if name in days:
        return today - timedelta(days=days[name])
    return today.replace(day=1) if name == _MONTH else today.replace(month=1, day=1)


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text or "")
    except ValueError:
        return None
