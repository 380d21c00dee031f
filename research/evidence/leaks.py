"""Text of our own prompts in a model's reply: orders in a page can ask for it, and no reader needs it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..sentences import spans, words

RUN = 8  # words in a row that no answer shares with a prompt by chance

_FENCE = re.compile(r"</?data-(?:[0-9a-f]{16}[^<>\n]{0,120}>?|[0-9a-f]{0,15}\Z)")  # whole, or broken off


def without_prompt(text: str, prompt: str, evidence: Sequence[str] = ()) -> tuple[str, int]:
    """`text` without its sentences that repeat `prompt`, and how many those were; fences go too.

    What stands in `evidence` may be repeated: a page can be about prompts.
    """
    text = _FENCE.sub("", text)
    sentences = spans(text)
    told = [words(text[start:end]) for start, end in sentences]
    leaked = _touched(told, _prompts_runs(prompt))
    if leaked and evidence:
        leaked = _touched(told, _prompts_runs(prompt).difference(*map(runs, evidence)))
    made, place = [], 0
    for number in sorted(leaked):
        start, end = sentences[number]
        made.append(text[place:start].rstrip(" \t"))
        place = end
    return ("".join(made) + text[place:]).strip(), len(leaked)


@lru_cache(maxsize=32)
def _prompts_runs(prompt: str) -> frozenset[tuple[str, ...]]:
    return frozenset(runs(prompt))


def _touched(sentences: Sequence[Sequence[str]], ours: frozenset[tuple[str, ...]]) -> set[int]:
    """Which sentences have a part in a run of `ours`; one may go over several short sentences."""
    owners = [(word, number) for number, sentence in enumerate(sentences) for word in sentence]
    touched: set[int] = set()
    for start in range(len(owners) - RUN + 1 if ours else 0):
        piece = owners[start : start + RUN]
        if tuple(word for word, _ in piece) in ours:
            touched.update(number for _, number in piece)
    return touched


def runs(text: str) -> set[tuple[str, ...]]:
    """All runs of `RUN` words."""
    found = words(text)
    return {tuple(found[start : start + RUN]) for start in range(len(found) - RUN + 1)}
