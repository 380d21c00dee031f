"""What a question asks for, read from its words alone: topic, names, years, kind of answer.

English is read best; of a few other languages only the question words are known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .terms import asked_terms, term
from .vocabulary import FIRST_WORDS, FRAME, MONTHS, QUESTION_WORDS, SUPERLATIVES, Kind, kind_of

NAME_WEIGHT = 2.0  # words of names, and numbers, against 1.0 for any other word of the topic
SUPERLATIVE_WEIGHT = 1.5
LONGEST_HALVED = 300  # characters of a question that is tried for "in X and in Y"
FRAME_WEIGHT = 0.3  # words that say what is asked about the topic, and seldom stand beside the answer


@dataclass(frozen=True)
class Asked:
    """What was read from a question.

    `weights`: each content word (as a term), and how much it tells about what is asked.
    `names`: groups of words that name something. `dates`: years and months. `parts`: the
    questions it is made of. `said`: each name and date (alone in a tuple) as the question spells it.
    """

    text: str
    kind: Kind
    weights: Mapping[str, float]
    names: tuple[tuple[str, ...], ...]
    dates: tuple[str, ...]
    parts: tuple[str, ...]
    said: Mapping[tuple[str, ...], str]

    @property
    def importance(self) -> dict[str, float]:
        """The weights with names no heavier than other words: a name tells pages apart, a date their passages."""
        named = {word for name in self.names for word in name if word not in self.dates}
        return {word: min(weight, 1.0) if word in named else weight for word, weight in self.weights.items()}

    @property
    def topic(self) -> dict[str, float]:
        """The words that tell something and are neither names nor numbers: what is asked about those."""
        return {word: weight for word, weight in self.weights.items() if FRAME_WEIGHT < weight < NAME_WEIGHT}

    @property
    def english(self) -> bool:
        return _ENGLISH.search(self.text) is not None

    def spelled(self, name: tuple[str, ...]) -> str:
        """A name, or a date alone in a tuple, in the question's own words."""
        return self.said.get(name) or " ".join(name)


_ENGLISH = re.compile(r"\b(?:the|is|are|was|were|did|does|do|of|in|who|what|when|where|which|how|why)\b", re.IGNORECASE)
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_CALENDAR = frozenset(
    [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ]
)
_QUOTED = re.compile(r"[\"“«„‘'](?=\S)([^\"“”«»„]{2,80}?)(?<=\S)[\"”»“’'](?!\w)")
# In Japanese, hiragana is grammar; so are some characters in Chinese.
_TOPIC = re.compile(r"[\u30a0-\u30ff\uac00-\ud7af]|[^\W的是了在有和与多少什么哪谁吗呢几何請请列\u3040-\u309f]{2}")
_NAME = re.compile(r"[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω]|^[^\W\d_].*\d")  # a capital, or a word with digits that begins with a letter
_PUNCTUATION = "\"'“”‘’«»„()[]?!.,;:…"
_CONNECTING = frozenset(("of", "the", "de", "la", "von", "van", "and"))
_SPLIT = re.compile(rf"(?:,?\s+and|,|;|\?)\s+(?={QUESTION_WORDS})", re.IGNORECASE)
_TWICE = re.compile(r"(?P<open>.+?) (?P<by>in|of|for|by|at|from|to) (?P<one>[^,]+?),? and (?P=by) (?P<other>[^,]+?)")
_OPENS = re.compile(rf"(?:(?:in|on|at|to|for|from|by|with)\s+)?{QUESTION_WORDS}", re.IGNORECASE)


def read(text: str) -> Asked:
    """`text` as far as its words tell what it asks for."""
    text = " ".join(text.split())
    names = _names(text)
    named = {word for name in names for word in name}
    words = dict.fromkeys([*asked_terms(text), *(word for name in names for word in name)])
    weights = {word: _weight(word, named) for word in words}
    dates = tuple(word for word in words if word in MONTHS or _YEAR.fullmatch(word))
    said = {(word,): token.strip(_PUNCTUATION) for token in reversed(text.split()) for word in asked_terms(token)}
    return Asked(text, kind_of(text), weights, tuple(names), dates, tuple(_parts(text)), said | names)


def _weight(word: str, named: set[str]) -> float:
    if word in named or word in MONTHS or any(char.isdigit() for char in word):
        return NAME_WEIGHT
    grammar = len(word) < 3 and not word.isascii() and not _TOPIC.search(word)
    if word in SUPERLATIVES:
        return SUPERLATIVE_WEIGHT
    return FRAME_WEIGHT if word in FRAME or grammar else 1.0


def _names(text: str) -> dict[tuple[str, ...], str]:
    """Quoted phrases, capitalised phrases and words like "GPT-5", in order, each once: their words, and as spelled."""
    found = [match[1] for match in _QUOTED.finditer(text)]
    if not text.isupper() and not text.istitle():
        found += _capitalised(text)
    names: dict[tuple[str, ...], str] = {}
    for phrase in found:
        names.setdefault(tuple(_name_words(phrase)), phrase)
    names.pop((), None)
    return names


def _capitalised(text: str) -> list[str]:
    """Runs of capitalised words and words with digits, small connecting words inside them included."""
    runs: list[list[str]] = [[]]
    for index, token in enumerate(text.split()):
        bare = token.strip(_PUNCTUATION)
        opens = not index and (re.split("['’]", bare.lower())[0] in FIRST_WORDS or not bare.isascii())
        if not opens and _NAME.search(bare) and bare not in _CALENDAR:
            runs[-1].append(bare)
        elif runs[-1] and token in _CONNECTING:
            runs[-1].append(token)
        else:
            runs.append([])
        if token[-1:] in ",;:?":
            runs.append([])
    return [re.sub(rf"(?: (?:{'|'.join(_CONNECTING)}))+$", "", " ".join(run)) for run in runs if run]


def _name_words(phrase: str) -> list[str]:
    if phrase.isupper() and phrase.isalpha():  # "WHO", "IT"
        return asked_terms(phrase) or [term(phrase.lower())]
    return [word for word in asked_terms(phrase) if word not in _CONNECTING]


def _parts(text: str) -> list[str]:
    """The questions that a compound one is made of; one that is not compound is its only part."""
    parts = [part.strip(" ,;?") for part in _SPLIT.split(text)]
    if _OPENS.match(text) and all(len(part.split()) > 2 for part in parts if part):
        parts = [half for part in parts if part for half in _halves(part)]
        return parts if len(parts) > 1 else [text]
    return [text]


def _halves(part: str) -> list[str]:
    """ "How high was it in X and in Y": the same question about each."""
    match = _TWICE.fullmatch(part) if len(part) <= LONGEST_HALVED else None
    return [f"{match['open']} {match['by']} {match[side]}" for side in ("one", "other")] if match else [part]
