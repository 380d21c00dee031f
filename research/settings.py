"""Where things are: the user's folder, and what is shipped with the program."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SHIPPED = _PACKAGE / "shipped"  # in a wheel; in a checkout they lie beside the package

PIPELINES = _SHIPPED / "pipelines" if _SHIPPED.is_dir() else _PACKAGE.parent / "pipelines"
SAMPLE_WEB = _SHIPPED / "web" if _SHIPPED.is_dir() else _PACKAGE.parent / "fixtures" / "web"


@dataclass(frozen=True)
class Settings:
    """`home` holds store/, runs/ and index/."""

    home: Path

    @classmethod
    def read(cls) -> Settings:
        """`RESEARCH_HOME`, else `research` in the user's data folder (XDG base directory specification)."""
        if home := os.environ.get("RESEARCH_HOME"):
            return cls(Path(home).expanduser().absolute())
        data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
        return cls(Path(data).expanduser() / "research")

    @property
    def store(self) -> Path:
        return self.home / "store"

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    def index(self, name: str) -> Path:
        return self.home / "index" / f"{name}.db"
