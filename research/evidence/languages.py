"""Whether two texts are plainly in different languages: by script, and by their commonest words."""

from __future__ import annotations

import unicodedata
from collections import Counter

from ..sentences import STOP_WORDS, words

ENOUGH = 0.15  # share of a language's commonest words from which a text is taken to be in it
LONGEST = 2_000  # characters that are looked at

_COMMON = {
    "de": "der die das und ist ein eine einen im den dem des von zu mit auf fur nicht sich auch um sind wurde bei am",
    "fr": "le la les et est un une des du dans pour que qui au aux sur par pas ne il elle sont avec plus",
    "es": "el la los las y es un una de del en que por con para se su al son fue mas no",
    "it": "il lo la gli le e un una di del della che in per con si non sono nel nella da al piu",
    "pt": "o a os as e um uma de do da dos das em no na que por com para se nao foi sao mais",
    "nl": "de het een en van is in op te dat die voor met niet zijn aan er bij ook door om",
}
_LANGUAGES = {"en": STOP_WORDS, **{name: frozenset(listed.split()) for name, listed in _COMMON.items()}}
_SCRIPTS = (
    "LATIN",
    "CYRILLIC",
    "GREEK",
    "ARABIC",
    "HEBREW",
    "DEVANAGARI",
    "THAI",
    "HANGUL",
    "HIRAGANA",
    "KATAKANA",
    "CJK",
)


def differ(one: str, other: str) -> bool:
    """True only where both languages can be told and are not the same."""
    ours, theirs = _script(one), _script(other)
    if ours != theirs:
        return bool(ours and theirs) and {ours, theirs} != {"JAPANESE", "CJK"}
    first, second = _language(one), _language(other)
    return bool(first and second and first != second)


def _script(text: str) -> str:
    """The script of most letters; Japanese where a text holds kana."""
    counts = Counter(unicodedata.name(char, "").partition(" ")[0] for char in text[:LONGEST] if char.isalpha())
    known = {name: counts[name] for name in _SCRIPTS if counts[name]}
    if "HIRAGANA" in known or "KATAKANA" in known:
        known["JAPANESE"] = known.pop("HIRAGANA", 0) + known.pop("KATAKANA", 0) + known.pop("CJK", 0)
    return max(known, key=lambda name: known[name], default="")


def _language(text: str) -> str:
    found = words(text[:LONGEST])
    shares = {name: sum(word in common for word in found) / max(4, len(found)) for name, common in _LANGUAGES.items()}
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= ENOUGH else ""
