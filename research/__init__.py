"""research answers a question from the web, with citations that can be checked, at a cost that is known.

>>> from research import ask
>>> answer = await ask("What is the US inflation rate?", offline=True)   # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "BudgetError",
    "Citation",
    "Ending",
    "Fact",
    "Pipeline",
    "PipelineError",
    "ProviderError",
    "ResearchError",
    "StoreError",
    "UsageError",
    "WebError",
    "ask",
]

if TYPE_CHECKING:
    from .api import ask
    from .errors import BudgetError, PipelineError, ProviderError, ResearchError, StoreError, UsageError, WebError
    from .pipeline import Pipeline
    from .records import Answer, Citation, Ending, Fact

_HOMES = {
    "ask": "api",
    "Pipeline": "pipeline",
    **dict.fromkeys(("Answer", "Citation", "Ending", "Fact"), "records"),
}


def __getattr__(name: str) -> Any:
    """Imported when first used, so that the command line starts fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES.get(name, 'errors')}", __name__), name)
