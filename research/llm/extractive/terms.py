"""Words as the built-in model compares them: stems, with a few families of words made one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ... import sentences

# Irregular forms, and nouns and verbs that questions and answers use for one another.
_FAMILIES = (
    "win won winner winning wins victory victor champion",
    "birth born birthday birthplace birthdate",
    "death died die dies dead dying",
    "write wrote written writer writes author authored writing",
    "found founded founder founders establish established founding",
    "invent invented inventor invention",
    "compose composed composer",
    "sing sang sung singer sings singing vocals vocalist",
    "direct directed director",
    "marry married wife husband spouse marriage",
    "child children son daughter sons daughters kids",
    "play played plays portrayed portrays portray",
    "build built constructed construction building",
    "locate located location situated lies",
    "big large",
    "biggest largest greatest",
    "high tall height",
    "highest tallest",
    "long length",
    "old age aged",
    "begin began begun beginning start started starts",
    "end ended ends finish finished",
    "discover discovered discoverer discovery",
    "call called known name named names",
    "cost costs price prices priced",
    "lead led leader leads",
    "hold held holds host hosted hosts",
    "star starred starring stars",
    "make made makes maker",
    "publish published publisher publication",
    "elect elected election",
    "kill killed murder murdered assassinated",
    "film films movie movies",
    "population inhabitants",
    "introduce introduced introduction",
    "release released releases launch launched",
    "job work worked works occupation profession",
    "fight fought battle battles",
    "grow grew grown growth",
    "rise rose risen rises increase increased increases",
    "fall fell fallen falls decrease decreased decline declined",
    "teach taught teacher",
    "sell sold sales sale",
    "own owned owner owners owns",
    "buy bought purchase purchased acquired",
    "think thought",
    "speak spoke spoken speakers",
    "mean meaning means meant",
    "jan january",
    "feb february",
    "mar march",
    "apr april",
    "jun june",
    "jul july",
    "aug august",
    "sep sept september",
    "oct october",
    "nov november",
    "dec december",
    "percent percentage",
    "hydro hydropower hydroelectric",
)
_ONE: Mapping[str, str] = {
    sentences.stem(word): sentences.stem(family.split()[0]) for family in reversed(_FAMILIES) for word in family.split()
}
# What is written in several ways. "US" in capitals only: "us" is a pronoun.
_SPELLINGS = (
    (re.compile(r"\b(?:U\.S\.A\.|U\.S\.?(?!\w)|US(?!\w)|United States(?: of America)?)"), "USA"),
    (re.compile(r"\b(?:U\.K\.?(?!\w)|United Kingdom)"), "UK"),
    (re.compile(r"\b([Cc]onsumer [Pp]rices?)\b"), r"\1 inflation"),
    (re.compile(r"\b([Gg]ross [Dd]omestic [Pp]roduct)\b"), r"\1 GDP"),
)
_TITLED = re.compile(
    r"\b(?!(?:The|An?|In|On|At|Of|For|From|By|And|But|When|While|As)\b)"
    r"[A-Z][a-z]+(?:[- ](?:(?:of|the|for|and|on|in) ){0,2}[A-Z][a-z]+)+"
)
_INITIAL = re.compile(r"[A-Z]")


def terms(text: str) -> list[str]:
    """The content words of `text`, comparable with those of a question; of names also the initials
    ("World Health Organization": world, health, organization, who)."""
    initials = ["".join(_INITIAL.findall(name)).lower() for name in _TITLED.findall(text)]
    return asked_terms(text) + initials


def asked_terms(text: str) -> list[str]:
    """The content words of a question, in the form of `terms`: what is to be found, so without initials."""
    for pattern, name in _SPELLINGS:
        text = pattern.sub(name, text)
    return [_ONE.get(word, word) for word in sentences.content_words(text) if word != "s"]


def term(word: str) -> str:
    """One (folded, lower-case) word in the form of `terms`."""
    stem = sentences.stem(word)
    return _ONE.get(stem, stem)
