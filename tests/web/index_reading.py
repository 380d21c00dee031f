"""A reader for index tests: plain and quick, and it remembers what it was given."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from research.records import Outcome, Page
from research.web.index import BuildReport, build


class PlainReader:
    """UTF-8 text without its tags; a body that starts with `%broken` can't be read."""

    def __init__(self) -> None:
        self.read_urls: list[str] = []
        self.types: dict[str, str] = {}

    async def read(self, body: bytes, *, url: str, content_type: str = "", status: int = 200) -> Page:
        await asyncio.sleep(0)
        self.read_urls.append(url)
        self.types[url] = content_type
        if status != 200:
            return Page(url=url, outcome=Outcome.GONE, detail=f"status {status}")
        if body.startswith(b"%broken"):
            return Page(url=url, outcome=Outcome.WRONG_TYPE, title="noise", detail="not a document")
        markup = body.decode()
        title = re.search("<title>(.*?)</title>", markup)
        text = re.sub("<title>.*?</title>|<[^>]*>", "", markup).strip()
        return Page(url=url, outcome=Outcome.OK, title=title[1] if title else "", text=text, date="2024-05-06")


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return folder


async def built(index: Path, sources: Path, reader: PlainReader | None = None) -> BuildReport:
    return await build(index, sources, reader or PlainReader())
