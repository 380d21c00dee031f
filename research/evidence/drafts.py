"""A model's reply, taken apart: its text, or why there is none, and what it says is missing.

On the first line `NOT ANSWERED: …`, on the last `MISSING: …`; either may begin with the
kind of reason (`false premise:`, `conflicting:`, `not in the sources:`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..records import Cause, Fact
from .leaks import without_prompt
from .markers import cite

UNTOLD = "what was read does not answer it"
LONGEST_REASON = 400  # characters

_NOT = re.compile(r"\W*NOT ANSWERED\b[ \t*:–—-]*(.*)", re.IGNORECASE | re.DOTALL)
_MISSING = re.compile(r"(?:^|\n)[ \t*]*MISSING\b[ \t*]*:[ \t*]*(.*?)\s*$", re.IGNORECASE | re.DOTALL)
_CAUSE = re.compile(r"\W*(false premise|conflicting|not in the sources)\b[ \t*)\]:;,.–—-]*", re.IGNORECASE)
_NOTHING = re.compile(r"\W*(?:none|nothing(?: is missing)?|n/?a|no|nil|null|not applicable)?\W*", re.IGNORECASE)


@dataclass(frozen=True)
class Draft:
    """`refused` tells why the facts don't answer (then `text` is that reason with its markers, if it has any)."""

    text: str
    refused: str = ""
    missing: str = ""
    cause: Cause = ""
    withheld: int = 0  # sentences that repeated the prompt


def read(reply: str, prompt: str, facts: Sequence[Fact] = ()) -> Draft:
    """A synthesizer's reply in text. What repeats `prompt`, and stands in no fact, is left out."""
    text, withheld = without_prompt(reply, prompt, [fact.quote for fact in facts])
    if refused := _NOT.match(text):
        cause, why = caused(refused[1].strip().partition("\n\n")[0])
        return Draft(why, reason(why) or UNTOLD, cause=cause or "not in the sources", withheld=withheld)
    missing = _MISSING.search(text)
    if missing is None:
        return Draft(text, withheld=withheld)
    cause, what = lacked(missing[1])
    return Draft(text[: missing.start()], missing=what, cause=cause, withheld=withheld)


def caused(text: str) -> tuple[Cause, str]:
    """The kind of a reason, if it begins with one, and the rest."""
    found = _CAUSE.match(text)
    if found is None:
        return "", text
    named = {"false premise": "false premise", "conflicting": "conflicting"}
    cause: Cause = named.get(found[1].lower(), "not in the sources")  # type: ignore[assignment]
    return cause, text[found.end() :]


def lacked(text: str, told: Sequence[str] = ()) -> tuple[Cause, str]:
    """What a reply says is missing, and the kind of reason; both "" where it says that nothing is, no more than the
    kind, or what it has `told` already: small models repeat what stands in the prompt and what they wrote."""
    cause, what = caused(text)
    again = bool(what.strip()) and any(_bare(what) in _bare(one) for one in told)
    return (cause, why) if not again and (why := lacking(what)) else ("", "")


def _bare(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .\"'“”")


def lacking(text: str) -> str:
    """What is missing, in one line; "" for a model's way of saying that nothing is."""
    return "" if _NOTHING.fullmatch(text) else reason(text)


def reason(text: str) -> str:
    """A reason as it is shown: one line without markers and links."""
    plain = " ".join(cite(text, []).text.split())
    return plain if len(plain) <= LONGEST_REASON else f"{plain[:LONGEST_REASON].rsplit(' ', 1)[0]} …"
