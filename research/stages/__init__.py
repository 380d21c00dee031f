"""The kinds of stages, one module each, in the order in which data passes through them."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from ..kinds import Kind

_NAMES = (
    "plan", "search", "rerank", "screen", "fetch", "extract", "quote", "synthesize", "verify", "investigate",
    "recall", "prompt",
)  # fmt: skip


class _Kinds(Mapping[str, Kind]):
    """Each kind is imported when a pipeline first names it: most pipelines need half of them."""

    def __getitem__(self, name: str) -> Kind:
        if name not in _NAMES:
            raise KeyError(name)
        kind: Kind = import_module(f".{name}", __package__).KIND
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


KINDS: Mapping[str, Kind] = _Kinds()
