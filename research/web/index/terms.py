"""What the index holds of a text, and what it is asked: words, and bigrams where no spaces stand between words."""

from __future__ import annotations

import re
import unicodedata

from ...sentences import STOP_WORDS, UNSPACED, fold

MOST_TERMS = 64  # of one query; what a longer one says beyond is not searched for
LONGEST_QUERY = 20_000  # characters; nor is what stands behind them

_RUN = re.compile(f"[{UNSPACED}]+")
# What FTS5's unicode61 leaves of "don't", "we'll", "it's".
_REMNANTS = frozenset(("s", "t", "d", "ll", "re", "ve", "m"))

# Names what `searchable` makes of texts. The entries of a text are deleted by giving the very
# same words again, so an index made in another way has to be filled anew.
ANALYSIS = f"1 {UNSPACED} {unicodedata.unidata_version}"


def searchable(text: str) -> str:
    """`text` folded, with each run of Chinese, Japanese, Korean, Thai … cut into bigrams and its last character.

    So every character of a run begins a word of the index.

    >>> searchable("Straße 東京都")
    'strasse  東京 京都 都 '
    """
    return _RUN.sub(_bigrams, fold(text))


def _bigrams(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(run[at : at + 2] for at in range(len(run)))} "


def terms(query: str) -> list[str]:
    """The words to look for, each once, in order: without English stop words unless there are no others.

    A run without spaces gives its bigrams. "US" and "WHO" in capitals are names, no stop words.
    """
    found: dict[str, None] = {}
    for word in _words(fold(query[:LONGEST_QUERY])):
        at = 0
        for match in _RUN.finditer(word):
            found[word[at : match.start()]] = None
            run, at = match[0], match.end()
            found.update(dict.fromkeys(run[i : i + 2] for i in range(max(1, len(run) - 1))))
        found[word[at:]] = None
    found.pop("", None)
    passed = (STOP_WORDS | _REMNANTS) - _acronyms(query[:LONGEST_QUERY])
    telling = [word for word in found if word not in passed]
    return (telling or list(found))[:MOST_TERMS]


def _acronyms(query: str) -> set[str]:
    """The words in capitals, folded, where not all are."""
    return set() if query.isupper() else {fold(word) for word in _words(query) if len(word) > 1 and word.isupper()}


def expression(query: str) -> str:
    """The FTS5 expression for any of the query's words; empty where it has none.

    Each stands in quotes, and holds letters, digits and marks alone, so that nothing in a
    query is read as an operator.
    """
    return " OR ".join(f'"{term}"' + "*" * (len(term) == 1 and is_unspaced(term)) for term in terms(query))


def is_unspaced(term: str) -> bool:
    """Whether a term is of a script without spaces, so that it may stand anywhere in a run."""
    return _RUN.match(term) is not None


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in text).split()
