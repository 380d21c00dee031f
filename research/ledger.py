"""What work took: tokens, dollars, seconds, tries. Kept beside artifacts, never in them.

Two totals are never mixed: what a run *paid now*, and what it would have cost *as if
cold*, had nothing been reused. Money is integer nano-dollars; an unknown price is None,
and makes every total that holds it a lower bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

NANO = 1_000_000_000


class Call(NamedTuple):
    """One call of a model, an engine or a site, as settled."""

    what: Literal["model", "search", "fetch", "tool"]
    name: str  # "anthropic:NAME", "local:docs", a host, "mcp:NAME"
    tier: str = ""
    usd: int | None = 0  # nano-dollars; None: the price is unknown
    input: int = 0  # fresh tokens
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0  # with the reasoning tokens
    reasoning: int = 0
    seconds: float = 0.0
    waited: float = 0.0  # seconds of them spent waiting for a rate slot or a retry
    tries: int = 1  # this one, and those before it that cost nothing
    first: float = 0.0  # seconds until the first piece of text, of the last try
    failed: str = ""  # the kind of error; what it cost was in vain
    estimated: bool = False  # the provider told no usage: this is the most that it can be
    batched: bool = False  # by a provider's batch interface, at its price


_BLANK = Call._field_defaults


@dataclass(eq=False, repr=False)
class Receipt:
    """What making one artifact took. `seconds` is wall time, without that of its parts."""

    seconds: float = 0.0
    calls: list[Call] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # "narrowed from 81,000 to 12,000 characters"
    passing: bool = False  # another time may give better: it serves this run, and is not kept
    outcome: str = ""  # what became of a page: "ok", "ok (PDF)", "blocked"
    nested: dict[str, dict[str, Any]] = field(default_factory=dict)  # by key, the parts that the work is made of

    def plain(self) -> dict[str, Any]:
        """As JSON data, without what has its default value."""
        calls = [{k: v for k, v in call._asdict().items() if k not in _BLANK or v != _BLANK[k]} for call in self.calls]
        plain: dict[str, Any] = {"seconds": round(self.seconds, 4)}
        if calls:
            plain["calls"] = calls
        if self.notes:
            plain["notes"] = self.notes
        if self.outcome:
            plain["outcome"] = self.outcome
        if self.nested:
            plain["nested"] = list(self.nested.values())
        return plain


@dataclass
class Total:
    """A sum over calls. `unknown` counts the calls whose price is not known."""

    usd: int = 0
    unknown: int = 0
    models: int = 0
    searches: int = 0
    fetches: int = 0
    input: int = 0
    cached: int = 0  # of the input, read from a provider's cache
    output: int = 0
    estimated: int = 0  # calls whose usage was not told, at the most that they can have cost
    waited: float = 0.0  # seconds that calls waited for rate slots and further tries, added up
    batched: int = 0  # calls at the price of providers' batches

    def add(self, calls: Iterable[dict[str, Any]]) -> None:
        """Adds calls as `Receipt.plain` gives them."""
        for call in calls:
            usd = call.get("usd", 0)
            self.usd += usd or 0
            self.unknown += usd is None
            self.models += call["what"] == "model"
            self.searches += call["what"] == "search"
            self.fetches += call["what"] == "fetch"
            self.input += call.get("input", 0) + call.get("cache_read", 0) + call.get("cache_write", 0)
            self.cached += call.get("cache_read", 0)
            self.output += call.get("output", 0)
            self.estimated += call.get("estimated", False)
            self.batched += call.get("batched", False)
            self.waited = round(self.waited + call.get("waited", 0.0), 4)


def dollars(nano: int, unknown: int = 0) -> str:
    """An amount as people read it.

    >>> dollars(1_234_000_000), dollars(420_000), dollars(20_000), dollars(0), dollars(1_000_000, unknown=1)
    ('$1.23', '$0.00042', '$0.000020', '$0', '≥ $0.0010')
    """
    digits = 2 if nano >= NANO // 100 else 11 - len(str(nano))  # cents, or two figures that tell something
    amount = f"${nano / NANO:.{digits}f}" if nano else "$0"
    return f"≥ {amount}" if unknown else amount


Lines = Iterable[Mapping[str, Any]]


def paid(lines: Lines) -> Total:
    """What a run paid, from its journal: all that it made, of use or not."""
    total = Total()
    for line in lines:
        if line["event"] in ("made", "in_vain"):
            total.add(line.get("receipt", {}).get("calls", ()))
    return total


def as_if_cold(lines: Lines) -> Total:
    """What its answer would have cost with nothing reused; without what was done in vain."""
    total = Total()
    for work in used(lines).values():
        total.add(work["receipt"].get("calls", ()))
    return total


def seconds_as_if_cold(lines: Lines) -> float:
    """How long it would have taken with nothing reused: the critical path over recorded durations."""
    return max((span.end for span in timetable(used(lines)).values()), default=0.0)


class Span(NamedTuple):
    """Seconds since the run began. `end` is when others have the result: later than begin and work where an item was
    done ahead, and waited to be chosen."""

    begin: float
    seconds: float
    end: float


def timetable(works: Mapping[str, Mapping[str, Any]]) -> dict[str, Span]:
    """When each work of `used` would have been done with nothing reused, each as soon as all it needs is there."""
    spans: dict[str, Span] = {}

    def ended(keys: Iterable[str]) -> float:
        return max((span(key).end for key in keys if key in works), default=0.0)

    def span(key: str) -> Span:
        if key not in spans:
            work = works[key]
            ready, seconds = ended([*work["needs"], *work.get("after", ())]), float(work["receipt"].get("seconds", 0.0))
            begin = min(ready, ended(work["ahead"])) if "ahead" in work else ready
            spans[key] = Span(begin, seconds, max(ready, begin + seconds))
        return spans[key]

    for key in works:
        span(key)
    return spans


def in_vain(lines: Lines) -> Total:
    """What was paid for and is of no use to the answer: failed tries, pages fetched ahead and passed over."""
    lines = list(lines)
    works, total = used(lines), Total()
    for line in lines:
        if line["event"] == "in_vain" or (line["event"] == "made" and line["key"] not in works):
            total.add(line.get("receipt", {}).get("calls", ()))
    return total


def used(lines: Lines) -> dict[str, Mapping[str, Any]]:
    """The work that stages took up, by key: made or reused, but not only done ahead. Work with parts needs them,
    and brings them along where it was reused as a whole; so does a selection with what was tried for it. A part that
    was taken up again came after what it came after the first time: else it could come after itself."""
    works: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        if line["event"] == "selected":
            for work in line.get("passed", {}).values():
                works.setdefault(work["key"], {**work, "stage": line["stage"]})
        if line["event"] in ("made", "reused") and line.get("item") is not None:
            parts = {part["key"]: {**part, "stage": line["stage"]} for part in line["receipt"].get("nested", ())}
            works = parts | works
            if "within" not in line or line["key"] not in works:
                works[line["key"]] = {**line, "needs": [*line["needs"], *parts]} if parts else line
    return works
