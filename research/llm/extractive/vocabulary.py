"""The words by which the built-in model reads questions: English, and question words of a few more languages."""

from __future__ import annotations

import re
from enum import StrEnum

from ... import sentences
from .terms import term


class Kind(StrEnum):
    """What an answer must hold."""

    WHO = "a name"
    WHEN = "a date"
    COUNT = "a number"
    WHERE = "a place"
    WHY = "a reason"
    ANY = "a statement"


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_MEASURES = (
    "number|percentage|percent|population|rate|price|cost|age|height|length|speed|distance|capacity|area|total|amount|"
    "salary|temperature|share|score|value"
)
_KINDS = {
    Kind.COUNT: (
        r"how (?:many|much|old|tall|long|far|often|large|big|high|deep|fast|heavy|wide|hot|cold|few)\b",
        rf"(?:wh\w+|was|is|are|were) (?:\w+ ){{0,4}}?(?:{_MEASURES}) (?:of|in|for)\b",
        rf"what (?:is|was|are|were) (?:[\w-]+ ){{0,5}}(?:{_MEASURES})\b",
        r"wie ?viele?\b|combien\b|cu[aá]nt[oa]s?\b|quant[ioae]\b|сколько\b",
        r"何[人個回本冊歳枚国]|いくつ|いくら|多少|几[个個人次年]|몇|얼마|كم\b|چند\b|कितन",
    ),
    Kind.WHEN: (
        r"when\b(?! (?:do|should|can) (?:you|we|i)\b)",
        r"(?:what|which) (?:\w+ )?(?:year|date|day|month|century|decade|time)\b",
        r"wann\b|quand\b|cu[aá]ndo\b|quando\b|когда\b|в каком году|언제|متى\b|कब\b|کی\b|چه زمانی\b",
        r"いつ|何年|什么时候|什麼時候|何时|何時|哪一?年|日期",
    ),
    Kind.WHERE: (
        r"where\b|(?:what|which) (?:\w+ )?(?:country|city|town|state|place|location|continent|county|province)\b",
        r"wo\b|où\b|d[oó]nde\b|dove\b|где\b|どこ|哪里|哪裡|哪儿|在哪|哪个国家|哪个城市|어디|أين\b|कहाँ|کجا",
    ),
    Kind.WHO: (
        r"who(?:se|m)?\b|(?:what|which) (?:\w+ )?(?:person|actor|actress|singer|author|player|team|company)\b",
        r"wer\b|qui\b|qui[eé]n(?:es)?\b|chi\b|кто\b|誰|谁|누구|누가|من هو|किस(?:ने|का)|कौन|چه کسی",
    ),
    Kind.WHY: (
        r"why\b|(?:what|which) (?:\w+ ){0,3}(?:cause[sd]?|reason|reasons)\b",
        r"warum\b|pourquoi\b|почему\b|なぜ|为什么|為什麼|为何|왜|لماذا|क्यों|چرا",
    ),
}
_KIND_PATTERNS = {kind: re.compile(rf"(?<!\w)(?:{'|'.join(forms)})", re.IGNORECASE) for kind, forms in _KINDS.items()}
# Scripts without spaces: a question word may stand inside what looks like a word.
_INSIDE_WORDS = re.compile(
    r"何[人個回本冊歳枚国年时時]|いくつ|いくら|いつ|どこ|誰|なぜ|多少|几[个個人次年]|什么时候|什麼時候|哪一?年|日期|"
    r"哪里|哪裡|哪儿|在哪|哪个国家|哪个城市|谁|为什么|為什麼|为何|몇|얼마|언제|어디|누구|누가"
)


def kind_of(question: str) -> Kind:
    """The kind of the question word that stands first; of equals, the one of `Kind`'s table."""
    if unspaced := _INSIDE_WORDS.search(question):
        question = unspaced[0]
    starts = {kind: match.start() for kind, pattern in _KIND_PATTERNS.items() if (match := pattern.search(question))}
    return min(starts, key=lambda kind: starts[kind]) if starts else Kind.ANY


QUESTION_WORDS = r"(?:who|whom|whose|when|where|why|how|what|which|is|are|was|were|did|does|do|has|have|can)\b"

# A capital at the question's very beginning makes no name of these.
FIRST_WORDS = sentences.STOP_WORDS | _listed(
    "name tell give list describe explain define find show compare according today currently please say"
)
# Words that say what is asked about the topic, and seldom stand beside the answer.
FRAME = frozenset(
    term(word)
    for word in _listed(
        "much many long far type kind sort example list describe explain name names named call called know known "
        "person people place country city state way method thing something someone anyone year date day time number "
        "current currently latest recent recently new now today ever ago earlier previous first last old one "
        "mean meaning happen happened happens become became get got give given tell say said do does make made "
        "use used go going come came take took play role work set part show include consider considered there "
        "location located situated reason cause difference different between compare compared comparison "
        "find exactly actually according stand stood decide decided keep kept exceed exceeded change changed high "
        "please main present begin start end author written word term"
    )
)
MONTHS = frozenset(
    term(month) for month in _listed("jan feb apr jun jul aug sep oct nov dec march")
)  # "may" is no sign
# Words that pick one out of many: whoever says so of something answers a question for it.
SUPERLATIVES = frozenset(
    term(word)
    for word in _listed(
        "biggest largest highest lowest longest shortest oldest youngest smallest fastest slowest heaviest deepest "
        "richest poorest earliest best worst busiest warmest coldest hottest wettest driest nearest closest farthest "
        "fewest least cheapest strongest peak record maximum minimum"
    )
)
