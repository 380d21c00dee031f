"""How long a provider asks to wait before the next try, in all the forms that providers have for it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = r"((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|minutes?|mins?|hours?|days?|[smhd])\b\s*)+|"
_DURATION += r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+)"
_HINT = rf'(?:(?:try|retry)(?: again)? (?:in|after)|retryDelay"?:?|retry_after"?:?)\s*~?{_DURATION}'
_PIECE = r"(\d+(?:\.\d+)?)\s*(ms|milli|[smhd])"


def retry_after(headers: Mapping[str, str], text: str = "", now: float | None = None) -> float | None:
    """Seconds that a provider asks to wait; None if it says nothing usable.

    Looks for "retry-after-ms", "Retry-After" in both its forms, a delay in the words of the
    body (`text`), and the reset of whichever limit stands at nothing. `now` is the Unix time;
    a date is measured against the reply's own Date if there is one.
    """
    found = {name.lower(): value.strip() for name, value in headers.items()}
    now = time.time() if now is None else now
    waits = (
        _number(found.get("retry-after-ms"), 0.001),
        _number(found.get("retry-after")),
        _until(found.get("retry-after"), _date(found.get("date")) or now),
        _hinted(text),
        _reset(found, now),
    )
    return next((max(wait, 0.0) for wait in waits if wait is not None), None)


def _number(value: str | None, unit: float = 1.0) -> float | None:
    return float(value) * unit if value and re.fullmatch(r"-?\d{1,13}(\.\d{1,9})?", value) else None


def _date(value: str | None) -> float | None:
    from email.utils import parsedate_to_datetime  # imports sockets; few providers send dates

    try:
        return parsedate_to_datetime(value).timestamp() if value else None
    except (ValueError, OverflowError):
        return None


def _until(value: str | None, now: float) -> float | None:
    moment = _date(value)
    return None if moment is None else moment - now


def duration(text: str) -> float | None:
    """Seconds in "1m0.36s", "120ms", "2 seconds"; None if it is no duration.

    >>> duration("1m30s")
    90.0
    """
    pieces = re.findall(_PIECE, text, re.IGNORECASE)
    if not pieces:
        return None
    return sum(float(number) * (0.001 if unit.lower() == "milli" else _UNITS[unit.lower()]) for number, unit in pieces)


def _hinted(text: str) -> float | None:
    hint = re.search(_HINT, text, re.IGNORECASE)
    return duration(hint[1]) if hint else None


def _reset(found: Mapping[str, str], now: float) -> float | None:
    """The longest wait among limits that stand at nothing, or whose standing is not told."""
    waits = []
    for name, value in found.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        remaining = found.get(name.replace("reset", "remaining"), "0")
        wait = _moment(value, now)
        if wait is not None and _number(remaining) == 0:
            waits.append(wait)
    quotas = re.finditer(r"\br=0;t=(\d+)", found.get("ratelimit", ""))  # IETF draft "RateLimit header fields"
    return max([*waits, *(float(quota[1]) for quota in quotas)], default=None)


def _moment(value: str, now: float) -> float | None:
    """A reset as providers write it: seconds, a duration, Unix time in s or ms, or RFC 3339."""
    number = _number(value)
    if number is not None:
        return number / 1000 - now if number > 1e12 else number - now if number > 1e9 else number
    try:
        return datetime.fromisoformat(value).timestamp() - now
    except ValueError:
        return duration(value)
