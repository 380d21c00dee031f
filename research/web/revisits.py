"""Pages that were read before, so that a server can say that nothing has changed (RFC 9110, section 13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..records import Page

LONGEST = 500  # characters of a validator; longer ones are not sent back


@dataclass(frozen=True)
class Validators:
    """What a server calls the state of a page by."""

    etag: str = ""
    last_modified: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Validators:
        found = [headers.get(name, "").strip() for name in ("etag", "last-modified")]
        return cls(*(text if len(text) <= LONGEST and text.isprintable() else "" for text in found))

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)

    @property
    def headers(self) -> dict[str, str]:
        """The request's headers that ask for the page only if it has changed since."""
        asked = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: text for name, text in asked.items() if text}


class Revisits(Protocol):
    """Remembers pages by the URL at which they were finally read."""

    def earlier(self, url: str) -> tuple[Validators, Page] | None: ...

    def keep(self, url: str, validators: Validators, page: Page) -> None: ...
