"""The search engines by name, made from the user's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...errors import UsageError
from .base import Engine
from .brave import Brave
from .duckduckgo import DuckDuckGo
from .mojeek import Mojeek
from .searxng import SearXNG
from .serper import Serper
from .tavily import Tavily
from .wikipedia import Wikipedia

ENGINES: dict[str, Callable[[Mapping[str, str]], Engine]] = {
    "duckduckgo": lambda s: DuckDuckGo(**_base(s, "DUCKDUCKGO_BASE_URL")),
    "mojeek": lambda s: Mojeek(**_base(s, "MOJEEK_BASE_URL")),
    "wikipedia": lambda s: Wikipedia(**_base(s, "WIKIPEDIA_BASE_URL")),
    "searxng": lambda s: SearXNG(**_base(s, "SEARXNG_URL")),
    "brave": lambda s: Brave(s.get("BRAVE_API_KEY", ""), **_base(s, "BRAVE_BASE_URL")),
    "tavily": lambda s: Tavily(s.get("TAVILY_API_KEY", ""), **_base(s, "TAVILY_BASE_URL")),
    "serper": lambda s: Serper(s.get("SERPER_API_KEY", ""), **_base(s, "SERPER_BASE_URL")),
}


def engine(name: str, settings: Mapping[str, str]) -> Engine:
    """The engine called `name`. `settings` holds the variables that the table names; each may be absent.

    Raises: UsageError where no engine has that name.
    """
    if name not in ENGINES:
        raise UsageError(f"there is no search engine {name!r}. Known are: {', '.join(ENGINES)}")
    return ENGINES[name](settings)


def _base(settings: Mapping[str, str], variable: str) -> dict[str, str]:
    return {"base": settings[variable]} if settings.get(variable) else {}
