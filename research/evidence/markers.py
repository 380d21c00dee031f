"""Citation markers in a model's text: read in all usual spellings, checked, renumbered.

Read are `[1]`, `[1, 2]`, `[1-3]`, `[1][2]`, `[^1]`, `[[1]](link)`, `[Fact 1]`, `【1】` and
`【1†source】`. Code, years (`[2024]`) and words in brackets are left alone. What comes out
holds `[n]` only, n being a source's number in order of first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..records import Citation, Fact, Mark, Sentence
from ..sentences import spans
from .checks import judge
from .links import ParsedText, delinked

_ITEM = r"\^?#?\d{1,4}(?:\s?[-–—]\s?\^?\d{1,4})?"
_NAME = r"(?:(?:facts?|sources?|refs?|references?|quotes?|ids?|docs?|documents?)[ :#]{0,2})?"
_LIST = rf"{_NAME}{_ITEM}(?:\s?(?:[,;&]|and|\s)\s?{_NAME}{_ITEM}){{0,60}}"
_LENTICULAR = rf"【\s?(?:{_LIST}|\d{{1,4}}:\d{{1,4}})\s?(?:†[^】\n]{{0,80}})?】"
_GROUP = rf"\\?[\[［]\s?{_LIST}\s?\\?[\]］]|{_LENTICULAR}"
_CLUSTER = re.compile(rf"(?:{_GROUP})(?:[ \t]?(?:{_GROUP}))*+", re.IGNORECASE)
_ONE_GROUP = re.compile(_GROUP, re.IGNORECASE)
_NUMBERS = re.compile(r"(\d{1,4})(?:\s?[-–—]\s?\^?(\d{1,4}))?")
_YEARS = range(1000, 3000)

_CODE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})[^\n]*(?:\n(?:.*?^ {0,3}(?P=fence)[`~]*[ \t]*$|.*\Z)|\Z)"
    r"|(?<!`)(?P<tick>`{1,2})(?!`)[^\n]{1,500}?(?<!`)(?P=tick)(?!`)",
    re.DOTALL | re.MULTILINE,
)
_ROUNDS = 20  # taking a marker out of brackets can leave another marker


@dataclass(frozen=True)
class Cluster:
    """Neighbouring markers: `text[start:end]` names the facts `ids`, in order, none twice."""

    start: int
    end: int
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Marked:
    """A text whose markers are `[n]`, n the number of a source; `numbers` is that of each source's key."""

    text: str
    clusters: tuple[Cluster, ...]
    numbers: Mapping[str, int]
    removed_markers: int
    removed_links: int


def code_spans(text: str) -> list[tuple[int, int]]:
    """Where `text` is code, fenced or inline, as Markdown has it."""
    return [match.span() for match in _CODE.finditer(text)]


def find(text: str) -> list[Cluster]:
    """The markers of `text` outside of code, whether or not they name anything.

    In an answer's text, `ids` are the numbers of its citations.
    """
    found = []
    for start, end in _prose(text):
        for match in _CLUSTER.finditer(text, start, end):
            cluster = _read(match)
            if cluster:
                found.append(cluster)
    return found


def apply(text: str, known: Mapping[int, str]) -> Marked:
    """`text` with its unknown markers and all links taken out, and the others numbered by source.

    `known` gives the source's key (its URL) for each fact id. Nothing else is changed.
    """
    parsed = delinked(text.strip(), code_spans, _CLUSTER)
    parsed = _without_lists(parsed, known)
    removed = 0
    current = parsed.text
    for _ in range(_ROUNDS):
        current, count = _without_unknown(current, known)
        again = delinked(current.strip(), code_spans, _CLUSTER)
        removed += count
        parsed = ParsedText(again.text, parsed.links + again.links)
        if not count and again.text == current:
            break
        current = again.text
    return _numbered(current, known, removed, parsed.links)


def _prose(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    for start, end in code_spans(text):
        yield place, start
        place = end
    yield place, len(text)


def _read(match: re.Match[str]) -> Cluster | None:
    """The cluster's ids; None where all its numbers are years."""
    ids = [number for group in _ONE_GROUP.finditer(match[0]) for number in _ids(group[0])]
    if all(number in _YEARS for number in ids):
        return None
    return Cluster(match.start(), match.end(), tuple(dict.fromkeys(ids)))


def _ids(group: str) -> Iterator[int]:
    if re.match(r"【\d+:", group):
        yield -1  # an index into a provider's own search results: none of our facts
        return
    for first, last in _NUMBERS.findall(group.partition("†")[0]):
        low, high = sorted((int(first), int(last or first)))
        if low in _YEARS and high in _YEARS:
            yield low
        else:
            yield from range(low, high + 1)


def _without_unknown(text: str, known: Mapping[int, str]) -> tuple[str, int]:
    """Clusters keep the ids they know; how many clusters held others is counted by id, a range once."""
    made, place, removed = [], 0, 0
    for cluster in find(text):
        valid = [number for number in cluster.ids if number in known]
        if len(valid) == len(cluster.ids):
            continue
        removed += _unknown_items(text[cluster.start : cluster.end], known)
        before = text[place : cluster.start]
        made.append(before + "".join(f"[{number}]" for number in valid) if valid else before.rstrip(" \t"))
        place = cluster.end
    return "".join(made) + text[place:], removed


def _unknown_items(cluster: str, known: Mapping[int, str]) -> int:
    count = 0
    for group in _ONE_GROUP.finditer(cluster):
        if re.match(r"【\d+:", group[0]):
            count += 1
            continue
        for first, last in _NUMBERS.findall(group[0].partition("†")[0]):
            low, high = sorted((int(first), int(last or first)))
            count += any(number not in known for number in range(low, high + 1))
    return count


def _without_lists(parsed: ParsedText, known: Mapping[int, str]) -> ParsedText:
    """The text without a list of sources at its end: the program writes that.

    It stays if it names a fact that is cited nowhere else.
    """
    match = _SOURCE_LIST.search(parsed.text)
    if match is None:
        return parsed
    body = parsed.text[: match.start()]
    cited = {number for cluster in find(body) for number in cluster.ids}
    listed = {number for cluster in find(match[0]) for number in cluster.ids if number in known}
    return ParsedText(body.rstrip(), parsed.links) if body.strip() and listed <= cited else parsed


_SOURCE_LIST = re.compile(
    r"(?:^|\n)[ \t#*_]{0,8}(?:sources?|references?|citations?|bibliography|footnotes|quellen|références|fuentes|出典)"
    r"[ \t:*_]{0,8}(?:\n[ \t]*(?:[-*+•][ \t]+|\d{1,3}[.)][ \t]+)?[\[【］\\][^\n]{0,500}|\n[ \t]*)+\Z"
    r"|(?:\n[ \t]{0,3}\[\^\d{1,3}\][ \t]*:?[^\n]{0,500}|\n[ \t]*)+\Z",
    re.IGNORECASE,
)


def _numbered(text: str, known: Mapping[int, str], removed: int, links: int) -> Marked:
    numbers: dict[str, int] = {}
    made: list[str] = []
    clusters = []
    place = length = 0
    for cluster in find(text):
        own = dict.fromkeys(numbers.setdefault(known[number], len(numbers) + 1) for number in cluster.ids)
        marker = "".join(f"[{number}]" for number in own)
        before = text[place : cluster.start]
        start = length + len(before)
        clusters.append(Cluster(start, start + len(marker), cluster.ids))
        made.extend((before, marker))
        length, place = start + len(marker), cluster.end
    made.append(text[place:])
    return Marked("".join(made), tuple(clusters), numbers, removed, links)


@dataclass(frozen=True)
class Cited:
    """A text with its checked citations: what an answer is made of."""

    text: str
    citations: tuple[Citation, ...]
    sentences: tuple[Sentence, ...]
    removed_markers: int
    removed_links: int
    notes: tuple[str, ...]


def cite(text: str, facts: Sequence[Fact], judge: Callable[[str, Sequence[Fact]], tuple[Mark, str]] = judge) -> Cited:
    """A model's `text` over numbered `facts` (ids count from 1), with citations and each sentence's status.

    `judge` gives that. A citation spans the sentence that its marker stands in; facts of one page share a number.
    """
    marked = apply(text, {number: fact.url for number, fact in enumerate(facts, start=1)})
    citations: list[Citation] = []
    sentences = []
    for start, end in _sentences(marked):
        ids = dict.fromkeys(i for c in marked.clusters if start <= c.start and c.end <= end for i in c.ids)
        own = [facts[number - 1] for number in ids]
        citations.extend(Citation(number=marked.numbers[f.url], start=start, end=end, fact=f) for f in own)
        if own or _asserts(marked.text[start:end]):
            status, reason = judge(marked.text[start:end], own)
            sentences.append(Sentence(start=start, end=end, status=status, reason=reason))
    notes: tuple[str, ...] = ()
    if marked.removed_links:
        notes = (f"{marked.removed_links} links that the model wrote were taken out.",)
    return Cited(marked.text, tuple(citations), tuple(sentences), marked.removed_markers, marked.removed_links, notes)


def _sentences(marked: Marked) -> list[tuple[int, int]]:
    """Sentences outside of fenced code; one that is nothing but markers belongs to the one before."""
    text = marked.text
    fenced = [(start, end) for start, end in code_spans(text) if text[start:end].lstrip().startswith(("```", "~~~"))]
    found: list[tuple[int, int]] = []
    for start, end in spans(text):
        if any(start < stop and begin < end for begin, stop in fenced):
            continue
        held = [c for c in marked.clusters if start <= c.start and c.end <= end]
        bare = sum(c.end - c.start for c in held) == len("".join(text[start:end].split()).rstrip(".,;:"))
        if held and bare and found:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _asserts(sentence: str) -> bool:
    """Whether a line without citations says something: no heading, no rule, no lead-in to a list."""
    if not any(char.isalnum() for char in sentence) or sentence.startswith("#"):
        return False
    heading = re.fullmatch(r"\*\*[^*\n]{1,80}\*\*:?|__[^_\n]{1,80}__:?", sentence)
    return heading is None and not (sentence.endswith(":") and not any(char.isdigit() for char in sentence))
