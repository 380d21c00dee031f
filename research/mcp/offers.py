"""Which of a server's tools are offered, under which names, and what is said of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..output import on_one_line
from ..store import digest, key_of
from .schemas import said, usable

MOST = 32  # tools of one server
LONGEST_NAME = 64  # characters, as every wire takes them
LONGEST_SAID = 600  # characters of a description
LISTED = 5  # tools that a notice names


class Listed(NamedTuple):
    """A tool as its server lists it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    read_only: bool


@dataclass(frozen=True)
class Offer:
    """A tool that may be called. `name` is what models call it, `tool` what its server does.

    `said` is the server's description, `schema` that of its arguments, both made safe.
    """

    server: str
    name: str
    tool: str
    said: str
    schema: Mapping[str, Any]
    command: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Of all that makes it this tool: part of the keys of its results."""
        return key_of([self.server, list(self.command), self.tool, self.said, self.schema])


def offered(
    server: str, command: Sequence[str], tools: Iterable[Listed], allow: Collection[str]
) -> tuple[list[Offer], list[str]]:
    """The offers, in the server's order, and in a sentence each what is not offered.

    Offered is what the server marks as read-only or the user allows by name, if its schema
    is sound; those that the user named first.
    """
    offers: dict[str, Offer] = {}
    broken: list[str] = []
    unmarked: list[str] = []
    over = 0
    for tool in sorted(tools, key=lambda tool: tool.name not in allow):
        if not (tool.read_only or tool.name in allow):
            unmarked.append(tool.name)
        elif len(offers) == MOST:
            over += 1
        elif any(offer.tool == tool.name for offer in offers.values()):
            broken.append(f"{_short(tool.name)} (it is listed twice)")
        else:
            try:
                offer = _offer(server, tuple(command), tool, offers)
            except ValueError as error:
                broken.append(f"{_short(tool.name)} ({error})")
            else:
                offers[offer.name] = offer
    return list(offers.values()), _left_out(unmarked, broken, over)


def _offer(server: str, command: tuple[str, ...], tool: Listed, taken: Collection[str]) -> Offer:
    """Raises: ValueError for a tool that can't be offered."""
    if not 0 < len(tool.name) <= 128 or not tool.name.isprintable() or not tool.name.isascii():
        raise ValueError("that is no tool's name")
    name = f"{server}_{re.sub(r'[^A-Za-z0-9_-]', '_', tool.name)}"
    if len(name) > LONGEST_NAME or name in taken:
        name = f"{name[: LONGEST_NAME - 9]}_{digest(tool.name)[:8]}"
    return Offer(server, name, tool.name, said(tool.description, LONGEST_SAID), usable(tool.schema), command)


def _left_out(unmarked: Sequence[str], broken: Sequence[str], over: int) -> list[str]:
    told = []
    if unmarked:
        names = _some([_short(name) for name in unmarked])
        told.append(f"not offered, since they are not marked as read-only (allow them by name): {names}")
    if broken:
        told.append(f"not offered: {_some(broken)}")
    if over:
        told.append(f"{over:,} tools more than the {MOST} that are offered of one server; allow those that matter")
    return told


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _short(name: str) -> str:
    return on_one_line(name)[:40]
