"""Text cut into sentences (with offsets) and into words that compare well.

Both are linear in the length of the text, whatever it holds: they are run on whole
pages that strangers wrote.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# Written without spaces between words: runs of these become bigrams, as in Lucene's CJKAnalyzer.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs of Indic scripts and points that stay after folding; `\w` leaves them out.
_SIGNS = "\u0900-\u0963\u0966-\u0dff\u0f71-\u0f84\u1dc0-\u1dff"

_TOKEN = re.compile(
    rf"(?P<number>\d++(?:[.,]\d++)*+)"
    rf"|(?P<unspaced>[{UNSPACED}]++)"
    rf"|(?P<word>[^\W\d_{UNSPACED}](?:[^\W_{UNSPACED}]|[{_SIGNS}])*+(?:'[^\W\d_]++)*+)"
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")

# Terminators, closing quotes and brackets, and citation markers that stand behind the full stop.
_END = re.compile(
    r"(?P<mark>[.!?…]++|[。！？｡]++)"
    r"(?P<close>[\"'”’»›)\]}」』）】*_]*+(?: ?(?:\[\^?\d[\d,; –\-^]{0,60}\]|【\d[^】\n]{0,60}】))*+)"
)
_TABLE_ROW = re.compile(r"\s*\|.*\|\s*|[^|\n]+(?:\|[^|\n]*){2,}")
_OPENERS = "\"'“‘«‹([{「『（*_¿¡"
_LAST_WORD = re.compile(r"[^\s(\[\"“‘']+$")
_FIRST_WORD = re.compile(r"\w+")
_LOOK_BACK = 24  # no abbreviation is longer


def _listed(words_in_a_row: str) -> frozenset[str]:
    return frozenset(words_in_a_row.split())


# A full stop behind these never ends a sentence: a name, a number or the rest of the phrase follows.
_INTRODUCE = _listed(
    "mr mrs ms dr prof sir st mt ft gen col lt capt cmdr sgt sen rep gov pres hon rev fr vs cf e.g i.e eg ie viz "
    "fig figs eq no nos vol vols pp p ch sec art ed eds approx ca est dept univ messrs mme mlle "
    "z.b bzw nr abb bd hrsg"
)
# Behind these it may: only where a word follows that usually opens a sentence.
_MAY_END = _listed(
    "inc ltd co corp llc plc jr sr bros etc al a.m p.m am pm ph.d m.d b.a m.a d.c u.s u.k u.n e.u a.d b.c "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs fri sat sun "
    "ave blvd rd min max sq avg"
)
_STARTERS = _listed(
    "the a an this that these those it its he she they we i you his her their our there here in on at by for from "
    "with as but and or so if when while after before since although however moreover meanwhile also according "
    "during under over among both each many most some several no not what who how why where to until despite"
)

STOP_WORDS = _listed(
    "a about above after again all also although am an and any are as at be because been before being below between "
    "both but by can could did do does doing down during each either etc few for from further had has have having he "
    "her here hers herself him himself his how however i if in into is it its itself just may me might more most much "
    "must my myself of off on once only onto or other our ours out over own per same shall she should since so some "
    "such than that the their theirs them themselves then there these they this those through thus to too under "
    "until up upon us very was we were what when where which while who whom whose why will with within would yet you "
    "your yours"
)


def spans(text: str) -> list[tuple[int, int]]:
    """The sentences of `text` as (start, end), in order, without surrounding white space.

    A line break always ends a sentence, and a row of a table is one. Closing quotes and
    brackets, and citation markers behind the full stop, belong to the sentence before.
    """
    found: list[tuple[int, int]] = []
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        found.extend(_in_line(text, start, end))
        start = end
    return found


def _in_line(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    cuts = [] if _is_table_row(text, start, end) else list(_cuts(text, start, end))
    for stop in (*cuts, end):
        while start < stop and text[start].isspace():
            start += 1
        last = stop
        while last > start and text[last - 1].isspace():
            last -= 1
        if last > start:
            yield start, last
        start = stop


def _is_table_row(text: str, start: int, end: int) -> bool:
    return text.find("|", start, end) >= 0 and _TABLE_ROW.fullmatch(text[start:end].rstrip()) is not None


def _cuts(text: str, start: int, end: int) -> Iterator[int]:
    for match in _END.finditer(text, start, end):
        after = match.end()
        spaced = after == end or text[after].isspace()
        if match["mark"][0] in "。！？｡" or (spaced and _ends_here(text, start, match, end)):
            yield after


def _ends_here(text: str, start: int, match: re.Match[str], end: int) -> bool:
    """Whether a terminator with white space behind it ends its sentence."""
    following = text[match.end() : min(end, match.end() + 80)].lstrip().lstrip(_OPENERS)
    if not following or following[0].islower():
        return not following
    if match["mark"] != "." or match["close"]:
        return True
    before = text[max(start, match.start() - _LOOK_BACK) : match.start()]
    word = _LAST_WORD.search(before)
    if word is None:
        return True
    lead = text[start : match.start()] if match.start() - start < _LOOK_BACK else "…"
    if word[0].isdigit() and not lead.strip(" \t#*->").strip("0123456789"):
        return False  # "1. An item of a list"
    return _word_may_end(word[0], following)


def _word_may_end(word: str, following: str) -> bool:
    plain = word.lower()
    if plain in _INTRODUCE:
        return plain in {"no", "art", "p"} and not following[0].isdigit()
    initial = len(word) == 1 and word.isupper()
    dotted = "." in word and all(len(part) == 1 for part in word.split("."))
    if initial or dotted or plain in _MAY_END:
        first = _FIRST_WORD.match(following)
        return first is not None and first[0].lower() in _STARTERS and first[0][0].isupper()
    return True


class _Folding(dict[int, str]):
    """Character → its folded form, made at first use. Folding one at a time keeps it linear:
    `unicodedata.normalize` sorts runs of combining marks by insertion."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold(chr(code))
        return folded


def _fold(char: str) -> str:
    if char in "’ʼ＇":
        return "'"
    parts = unicodedata.normalize("NFKD", char)
    # Classes 7 to 9 (nukta, kana voicing, virama) tell letters apart; the others are accents and points.
    bare = "".join(part for part in parts if unicodedata.combining(part) in (0, 7, 8, 9))
    return (bare if bare != parts else unicodedata.normalize("NFKC", char)).casefold()


_FOLDED = _Folding()


def fold(text: str) -> str:
    """`text` in lower case without accents, in compatibility form (one character at a time)."""
    return text.lower() if text.isascii() else text.translate(_FOLDED)


def words(text: str) -> list[str]:
    """The words of `text`: folded, numbers whole ("3.0", "1,234" as "1234"), CJK runs as bigrams.

    >>> words("Élan rose 1,234.5 % in the U.S.")
    ['elan', 'rose', '1234.5', 'in', 'the', 'u', 's']
    """
    found: list[str] = []
    for match in _TOKEN.finditer(fold(text)):
        token = match[0]
        if match.lastgroup == "number":
            found.append(_number(token))
        elif match.lastgroup == "word":
            found.append(token)
        else:
            found.extend(token[i : i + 2] for i in range(max(1, len(token) - 1)))
    return found


def _number(token: str) -> str:
    if _GROUPED.fullmatch(token):
        return token.replace(",", "")
    if token.count(".") > 1 and "," not in token:
        return token  # a version, a date, an address
    return token.replace(",", ".") if token.count(",") == 1 and "." not in token else token


def content_words(text: str) -> list[str]:
    """`words` without English stop words, reduced to a common stem ("rates", "rated" → "rat").

    "no" and "not" are kept: they carry the meaning.
    """
    return [stem(word) for word in words(text) if word not in STOP_WORDS and word != "s"]


@lru_cache(maxsize=4_000)
def stem(word: str) -> str:
    """An English word without its plural, -ing, -ed, possessive or final e; others as they are."""
    if len(word) > 40 or not word.isascii():
        return word
    word = word.removesuffix("'s")
    if len(word) > 3:
        word = _singular(word)
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) > 2 and re.search(r"[aeiouy]", root):
            word = root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
