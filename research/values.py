"""How the value of a setting is read: from a file's TOML, or from the text of a flag or a variable."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from .errors import UsageError

T = TypeVar("T")
Read = Callable[[Any], Any]
"""Raises: ValueError, which says what the value must be."""


def toml(content: str) -> dict[str, Any]:
    """Raises: ValueError for what is no TOML."""
    import tomllib

    try:
        return tomllib.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("it must be text in quotes")
    return value.strip()


def folder(value: Any) -> Path:
    return Path(text(value)).expanduser().absolute()


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it must be true or false")
    return value


def number(value: Any) -> float:
    try:
        read = value if isinstance(value, int | float) and not isinstance(value, bool) else float(text(value))
    except ValueError:
        read = math.nan
    if not math.isfinite(read) or read < 0:
        raise ValueError("it must be a number from 0 on, written like 0.50")
    return float(read)


def count(value: Any) -> int:
    read = number(value)
    if read != int(read):
        raise ValueError("it must be a whole number")
    return int(read)


def cap(value: Any) -> str:
    """A number as digits, or "none"."""
    if isinstance(value, str) and value.strip().lower() == "none":
        return "none"
    return f"{number(value):.9f}".rstrip("0").rstrip(".")


def whole_cap(value: Any) -> str:
    return "none" if cap(value) == "none" else str(count(value))


def texts(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ValueError('it must be a list like ["a", "b"]')
    return tuple(part.strip() for part in parts if part.strip())


def words(value: Any) -> tuple[str, ...]:
    """A program and its arguments."""
    if not isinstance(value, list) or not value or not all(isinstance(part, str) for part in value):
        raise ValueError('it must be a list like ["program", "argument"]')
    if not value[0].strip() or any("\0" in part for part in value):
        raise ValueError("it must begin with a program's name, and hold no NUL")
    return tuple(value)


def ranges(value: Any) -> tuple[str, ...]:
    """IP address ranges, each in its usual spelling."""
    import ipaddress

    try:
        return tuple(str(ipaddress.ip_network(part)) for part in texts(value))
    except ValueError as error:
        raise ValueError(f"it must be a list of ranges like 127.0.0.0/8 or fd00::/8: {error}") from None


def code(value: Any) -> str:
    """A country or a language, as two letters."""
    read = text(value).lower()
    if not re.fullmatch(r"[a-z]{2}", read):
        raise ValueError("it must be two letters")
    return read


def address(value: Any) -> str:
    read = text(value).rstrip("/")
    parts = urlsplit(read)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("it must be an address like https://host/v1")
    if "@" in parts.netloc:
        raise ValueError("it must hold no user name or password; name the key's variable in key_env")
    return read


def one_of(*choices: str) -> Read:
    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"it must be one of {', '.join(choices)}{near(value, choices)}")
        return str(value)

    return read


def variable(value: Any) -> str:
    """The name of an environment variable; whoever gives the key itself must not see it repeated in an error."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,60}", value):
        raise ValueError("it must be the name of an environment variable that holds the key, not the key")
    return value


def variables(value: Any) -> tuple[str, ...]:
    """The names of environment variables."""
    try:
        return tuple(variable(part) for part in texts(value))
    except ValueError:
        raise ValueError("it must be a list of names of environment variables, not of their values") from None


def checked(read: Callable[[Any], T], value: Any, place: str) -> T:
    """What `read` makes of `value`.

    Raises: UsageError that names `place`. What may hold a secret is not repeated in it.
    """
    try:
        return read(value)
    except ValueError as error:
        shown = "" if read in (address, variable, variables) else f" (it is {value!r})"
        raise UsageError(f"{place}: {error}{shown}") from None


def near(name: Any, known: Iterable[str], alike: float = 0.6) -> str:
    """A hint at the nearest known name, or nothing. `alike` is how near it must be, from 0 to 1."""
    import difflib

    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=alike)
    return f". Did you mean {close[0]!r}?" if close else ""
