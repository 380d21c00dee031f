"""What a stage can be: the kinds of stages, with their types, as a pipeline file is checked against them."""

import types
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from .records import Question

INPUTS: dict[str, Any] = {"question": Question, "as_of": str, "web_date": str}  # what every run is given


class Params(BaseModel):
    """A kind's own settings. They shape its output, so they are part of its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Reply(BaseModel):
    """What a model's reply must fit."""


class Sampling(Params):
    """How a model is asked: part of the recipe."""

    max_tokens: int = Field(1000, ge=1, le=200_000)  # for the reply
    reasoning_tokens: int = Field(0, ge=0, le=200_000)  # a further allowance, for thinking
    temperature: float | None = Field(None, ge=0, le=2)


class Policy(Params):
    """How work is carried out. It changes no output, and is in no key."""

    timeout: float | None = Field(None, gt=0)  # seconds for one call
    retries: int = Field(0, ge=0, le=10)  # further tries of what may pass
    parallel: int | None = Field(None, ge=1)  # calls of this stage at once
    patience: float | None = Field(None, gt=0)  # seconds after which `want` no longer waits for stragglers


def _together(results: Sequence[Any], params: Any) -> list[Any]:
    """How results are joined unless a kind knows better: lists end to end, others as they are."""
    if results and all(isinstance(result, (list, tuple)) for result in results):
        return [item for result in results for item in result]
    return list(results)


class Kind(NamedTuple):
    """A kind of stage.

    `run(job, **inputs)` makes one result of type `gives`. `join` turns the results of a
    fanned-out stage, in rank order, into the list that others take. `dropped` tells why a
    result is of no use (None if it is), so that `want` replaces it. `tool` raises ValueError
    for a file that describes no such tool.
    """

    name: str
    version: int  # a new one whenever the same recipe and inputs may give another result
    run: Callable[..., Awaitable[Any]]
    gives: Any
    takes: Mapping[str, Any] = {}
    optional: Mapping[str, Any] = {}
    takes_any: bool = False  # any further inputs, whatever they are called
    unprompted: frozenset[str] = frozenset()  # inputs that its prompt has no placeholder for
    prompted: frozenset[str] = frozenset()  # further placeholders: parameters that the prompt tells
    params: type[Params] = Params
    model: bool = False  # asks a model, with a prompt
    max_tokens: int = 1000  # for its reply, unless the file says otherwise
    # Asks the web: for "search" and "fetch" its source is in the keys, for "search" its engines as well; "tools" are
    # those of a server.
    web: Literal["", "search", "fetch", "tools"] = ""
    refetchable: bool = False  # its results may be let go of when the store is full
    prompts: Mapping[str, frozenset[str]] = {}  # further prompts, with their placeholders
    tool: Callable[[str, str], object] | None = None  # uses tools, and reads a tool's file (name, text) or raises
    always: tuple[str, ...] = ()  # tools whose files come with any tool
    servers: str = ""  # tools called so, ":" and a name are those of a server; the file of that name words them
    parts: Callable[[Any], Mapping[str, Any]] | None = None  # of its stage: the stages that its work calls on
    join: Callable[[Sequence[Any], Any], list[Any]] = _together
    dropped: Callable[[Any], str | None] | None = None
    instead: Callable[[Mapping[str, Any], Exception], Any] | None = None  # stands for what failed, and is not kept

    def placeholders(self, taken: typing.Iterable[str]) -> frozenset[str]:
        """The placeholders that its prompt must have, no more and no fewer."""
        return (frozenset(taken) - self.unprompted) | self.prompted


def element(kind: Any) -> Any | None:
    """`X` of `list[X]` or `tuple[X, ...]`; None for what is no list. Any has elements of Any."""
    if kind is Any:
        return Any
    if typing.get_origin(kind) in (list, tuple):
        return typing.get_args(kind)[0]
    return None


def attribute(kind: Any, path: Sequence[str]) -> Any | None:
    """The type at the end of a path of attributes, mapped over lists; None if there is none."""
    for name in path:
        if kind is Any:
            return Any
        inner = element(kind)
        record = kind if inner is None else inner
        if not (isinstance(record, type) and issubclass(record, BaseModel) and name in record.model_fields):
            return None
        found: Any = record.model_fields[name].annotation
        kind = found if inner is None else list[found]
    return kind


def fits(given: Any, wanted: Any) -> bool:
    """Whether a value of type `given` may be taken as `wanted`."""
    if Any in (given, wanted) or given == wanted:
        return True
    inner, outer = element(given), element(wanted)
    if inner is not None and outer is not None:
        return fits(inner, outer)
    if typing.get_origin(wanted) in (types.UnionType, typing.Union):
        return any(fits(given, one) for one in typing.get_args(wanted))
    return isinstance(given, type) and isinstance(wanted, type) and issubclass(given, wanted)


def shown(kind: Any) -> str:
    """A type as an error message names it.

    >>> shown(list[Question]), shown(tuple[str, ...])
    ('list of Question', 'list of str')
    """
    inner = element(kind)
    if kind is Any:
        return "any value"
    return f"list of {shown(inner)}" if inner is not None else getattr(kind, "__name__", str(kind))


def follow(value: Any, path: Sequence[str]) -> Any:
    """The value at the end of a path of attributes (or keys), mapped over lists.

    Raises: LookupError if a value of a free form lacks it.
    """
    for name in path:
        if isinstance(value, (list, tuple)):
            value = [_member(item, name) for item in value]
        else:
            value = _member(value, name)
    return value


def _member(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, Mapping) else getattr(value, name)
