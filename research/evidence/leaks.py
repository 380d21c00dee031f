"""Text of our own prompts in a model's reply: orders in a page can ask for it, and no reader needs it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..sentences import spans, words

RUN = 8  # words in a row that no answer shares with a prompt by chance

_FENCE = re.compile(r"</?data-[0-9a-f]{16}[^<>\n]{0,120}>")


def without_prompt(text: str, prompt: str, evidence: Sequence[str] = ()) -> tuple[str, int]:
    """`text` without its sentences that repeat `prompt`, and how many those were; fences go too.

    What stands in `evidence` may be repeated: a page can be about prompts.
    """
    text = _FENCE.sub("", text)
    ours = runs(prompt)
    for passage in evidence:
        ours -= runs(passage)
    made, place, removed = [], 0, 0
    for start, end in spans(text):
        if not ours.isdisjoint(runs(text[start:end])):
            made.append(text[place:start].rstrip(" \t"))
            place = end
            removed += 1
    return ("".join(made) + text[place:]).strip(), removed


def runs(text: str) -> set[tuple[str, ...]]:
    """All runs of `RUN` words."""
    found = words(text)
    return {tuple(found[start : start + RUN]) for start in range(len(found) - RUN + 1)}
