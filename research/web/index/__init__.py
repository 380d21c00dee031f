"""A full-text index of the user's own documents, or of a recorded set of pages, as a web to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .local import LocalWeb
from .schema import documents

if TYPE_CHECKING:
    from .building import PageReader, build
    from .sources import Unreadable
    from .writing import BuildReport

__all__ = ["BuildReport", "LocalWeb", "PageReader", "Unreadable", "build", "documents"]

_HOMES = {"build": "building", "PageReader": "building", "Unreadable": "sources", "BuildReport": "writing"}


def __getattr__(name: str) -> Any:
    """What only building needs is imported when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
