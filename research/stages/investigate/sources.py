"""What an investigation has come across: every source under one number, for good."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...records import Hit, Outcome, Page

_ADDRESS = re.compile(r"https?://[^\s<>\"'`|]+", re.IGNORECASE)


@dataclass
class Source:
    """One address: as a search result told of it, and as it was read."""

    number: int
    url: str
    hit: Hit | None = None
    page: Page | None = None

    @property
    def handle(self) -> str:
        return f"p{self.number}"

    @property
    def readable(self) -> bool:
        return self.page is not None and self.page.outcome is Outcome.OK

    @property
    def title(self) -> str:
        return (self.page.title if self.page else "") or (self.hit.title if self.hit else "")


@dataclass
class Sources:
    """The sources by canonical address, in order of appearance. Only what a search, a tool of a server or the
    question named gets in."""

    _by_url: dict[str, Source] = field(default_factory=dict)
    searches: list[dict[str, Any]] = field(default_factory=list)  # query, and the numbers of its results

    @classmethod
    def of(cls, question: str) -> Sources:
        """With the addresses that stand in the user's question."""
        sources = cls()
        sources.named(question)
        return sources

    def named(self, text: str, most: int | None = None) -> list[Source]:
        """The sources at the addresses that stand in a text, each once; of the first `most`."""
        addresses = itertools.islice(_ADDRESS.finditer(text), most)
        found = [self.add(match[0].rstrip(".,;:!?)]}»”’")) for match in addresses]
        return list({source.number: source for source in found if source is not None}.values())

    def given(self, page: Page) -> Source:
        """What a server's tool gave, as a source. Its address is not one that can be fetched."""
        source = self._by_url.setdefault(page.url, Source(len(self._by_url) + 1, page.url))
        source.page = page
        return source

    def __len__(self) -> int:
        return len(self._by_url)

    @property
    def all(self) -> list[Source]:
        return list(self._by_url.values())

    def add(self, url: str, hit: Hit | None = None) -> Source | None:
        """The source at an address, new if need be; None for an address that can't be fetched."""
        from ...web.urls import canonical

        try:
            url = canonical(url)
        except ValueError:
            return None
        source = self._by_url.setdefault(url, Source(len(self._by_url) + 1, url))
        source.hit = source.hit or hit
        return source

    def found(self, query: str, hits: Iterable[Hit]) -> list[Source]:
        """The results of a search, each page once."""
        from ...web.merging import merge

        named = [source for hit in merge([list(hits)]) if (source := self.add(hit.url, hit)) is not None]
        self.searches.append({"query": query, "numbers": [source.number for source in named]})
        return named

    def known(self, url: str) -> Source | None:
        """The source at an address that a search or the question named; None for any other."""
        from ...web.urls import canonical

        try:
            return self._by_url.get(canonical(url))
        except ValueError:
            return None

    def numbered(self, number: int) -> Source | None:
        return next((source for source in self.all if source.number == number), None)

    def handled(self, handle: str) -> Source | None:
        return next((source for source in self.all if source.readable and source.handle == handle), None)
