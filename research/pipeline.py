"""A pipeline: its stages, bound to kinds, prompts and parameters. `loading.py` reads it from a file."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from .kinds import Kind, Params, Policy, Sampling, element
from .prompts import Prompt
from .store import digest

TIERS = ("cheap", "capable")


class Source(NamedTuple):
    """Where an input comes from: a result's name and a path of attributes in it."""

    name: str
    path: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        name, *path = text.split(".")
        return cls(name, tuple(path))

    def __str__(self) -> str:
        return ".".join((self.name, *self.path))


class Prefetch(NamedTuple):
    """The first `top` values of `source` are worked on while `each` is still awaited."""

    source: Source
    top: int


class Stage(NamedTuple):
    """One step, as declared. `takes` maps the kind's input names to where they come from."""

    name: str
    kind: Kind
    gives: str
    takes: Mapping[str, Source]
    item: str = ""  # the input that is fanned out, and
    each: Source | None = None  # over what
    model: str = ""  # a tier, or "provider:model"
    prompt: Prompt | None = None
    params: Params = Params()
    sampling: Sampling | None = None
    want: int | None = None
    policy: Policy = Policy()
    prefetch: Prefetch | None = None
    prompts: Mapping[str, Prompt] = {}  # further ones, by what the kind calls them
    tools: Mapping[str, Prompt] = {}  # what a model is told of each tool
    servers: tuple[str, ...] = ()  # whose tools it may call too, as the user's settings name them

    @property
    def parts(self) -> Mapping[str, Self]:
        """The stages that its work calls on, by the names that the work knows them by."""
        return {} if self.kind.parts is None else self.kind.parts(self)

    @property
    def models(self) -> Iterable[str]:
        """The tiers and models that it and its parts are bound to."""
        return dict.fromkeys(one.model for one in (self, *self.parts.values()) if one.model)

    @property
    def files(self) -> Iterable[Prompt]:
        """All that is told to its models, as it stands in files."""
        yield from () if self.prompt is None else (self.prompt,)
        yield from self.prompts.values()
        yield from self.tools.values()

    @property
    def type(self) -> Any:
        """The type of what others take from it: joined, if it is fanned out."""
        if self.each is None or element(self.kind.gives) is not None:
            return self.kind.gives
        return list[self.kind.gives]  # type: ignore[name-defined]

    @property
    def sources(self) -> Iterable[Source]:
        yield from self.takes.values()
        if self.each is not None:
            yield self.each
        if self.prefetch is not None:
            yield self.prefetch.source


class Pipeline(NamedTuple):
    """A checked pipeline. `text` is the file as it was read."""

    name: str
    description: str
    answer: str
    stages: Mapping[str, Stage]  # in an order in which each comes after what it takes
    text: str

    @property
    def digest(self) -> str:
        """Of the file and of all its prompts."""
        return digest("".join([self.text, *(file.digest for s in self.stages.values() for file in s.files)]))

    @property
    def servers(self) -> Iterable[str]:
        """The servers whose tools its models may call."""
        return dict.fromkeys(name for stage in self.stages.values() for name in stage.servers)

    def giving(self, name: str) -> Stage | None:
        """The stage that gives `name`; None for what every run is given."""
        return next((stage for stage in self.stages.values() if stage.gives == name), None)
