"""Copies of one text: a story that several sites carry is one source, not several.

Shingles of five words, compared by resemblance and containment (Broder, "On the
resemblance and containment of documents", 1997), over whole sets instead of samples.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..sentences import words

SHINGLE = 5  # words
RESEMBLANCE = 0.5  # shared shingles ÷ all shingles of both, from which two texts are copies
CONTAINMENT = 0.8  # shared shingles ÷ those of the shorter text
FEWEST = 30  # shingles of a text that may count as contained: a sentence quoted elsewhere makes no copy
MOST = 50_000  # words of a text that are looked at


def syndicated(texts: Sequence[str]) -> list[list[int]]:
    """The positions of `texts`, grouped so that copies stand together, in order of first appearance.

    Give whole pages or long passages. Texts without a word are nobody's copy.
    """
    groups: list[list[int]] = []
    made = [shingles(text) for text in texts]
    for position, own in enumerate(made):
        for group in groups:
            if any(are_copies(own, made[other]) for other in group):
                group.append(position)
                break
        else:
            groups.append([position])
    return groups


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """All runs of five words; of a shorter text the one run that it is."""
    found = words(text)[:MOST]
    if not found:
        return frozenset()
    return frozenset(tuple(found[start : start + SHINGLE]) for start in range(max(1, len(found) - SHINGLE + 1)))


def are_copies(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    smaller = min(len(one), len(other))
    if not smaller:
        return False
    shared = len(one & other)
    resembling = shared >= RESEMBLANCE * (len(one) + len(other) - shared)
    return resembling or (smaller >= FEWEST and shared >= CONTAINMENT * smaller)
