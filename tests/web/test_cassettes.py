"""What each engine is asked, to the header, pinned by recordings of our own client on loopback.

`python -m tests.web.test_cassettes` records them anew, after a change that is meant.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from research.records import Hit
from research.settings import engine_names
from research.transport import Client
from research.web.base import Options
from research.web.engines import ENGINES, engine
from research.web.engines.asking import EngineSearch
from research.web.fetch import USER_AGENT
from tests import faults
from tests.faults import FaultServer

vcr = pytest.importorskip("vcr")

CASSETTES = Path(__file__).resolve().parent.parent / "cassettes"
PORT = 18_321  # needed while recording only
KEY = "canary-of-a-key"
SECRET = ["Authorization", "X-Subscription-Token", "X-API-KEY"]
ASKED = [("solar sails", 3, Options()), ("Sonnensegel & Mond", 20, Options("de", "de", "month"))]
PATHS = {
    "duckduckgo": "/html/",
    "mojeek": "/search",
    "wikipedia": "/w/api.php",
    "searxng": "/search",
    "brave": "/res/v1/web/search",
    "tavily": "/search",
    "serper": "/search",
}
SAIL = {"url": "https://sails.test/", "link": "https://sails.test/", "title": "Solar sail", "content": "Light pushes."}
BOX = '<div class="result results_links"><a class="result__a" href="https://sails.test/">Solar sail</a></div>'
LINE = '<ul class=results-standard><li class=r1><h2><a class=title href="https://sails.test/">Solar sail</a></h2></li></ul>'
ANSWERS = {
    "duckduckgo": BOX.encode(),
    "mojeek": LINE.encode(),
    "wikipedia": json.dumps({"query": {"search": [{"title": "Solar sail", "snippet": "Light pushes."}]}}).encode(),
    "searxng": json.dumps({"results": [SAIL]}).encode(),
    "brave": json.dumps({"type": "search", "web": {"results": [SAIL]}}).encode(),
    "tavily": json.dumps({"results": [SAIL]}).encode(),
    "serper": json.dumps({"organic": [SAIL]}).encode(),
}


@contextmanager
def cassette(file: Path, record: bool = False, **more: Any) -> Iterator[Any]:
    """The recording in `file`. Raises: AssertionError if something in it was not asked for."""
    how = {
        "record_mode": "all" if record else "none",
        "match_on": ["method", "scheme", "host", "port", "path", "query", "headers", "body"],
        "filter_headers": [(name, "KEY") for name in SECRET],
        "decode_compressed_response": True,
        **more,
    }
    with vcr.use_cassette(str(file), **how) as tape:
        yield tape
    assert record or tape.all_played, f"{file.name} was only partly played"


async def _loopback(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.2"]


async def asked(name: str, how: Sequence[tuple[str, int, Options]] = ASKED) -> list[list[Hit]]:
    """What the engine says to each of these queries."""
    base, key = engine_names(name)
    variables = {base: f"http://{name}.test:{PORT}{PATHS[name]}", key: KEY}
    async with Client(addresses=_loopback, headers={"User-Agent": USER_AGENT}) as client:
        return [
            await EngineSearch(engine(name, variables), client, options).search(query, top)
            for query, top, options in how
        ]


def test_every_engine_has_a_cassette() -> None:
    assert {file.stem for file in CASSETTES.glob("*.yaml")} == set(ENGINES) == set(PATHS)


@pytest.mark.parametrize("name", PATHS)
async def test_an_engine_is_asked_as_it_was(name: str) -> None:
    with cassette(CASSETTES / f"{name}.yaml") as tape:
        for hits in await asked(name):
            assert [hit.title for hit in hits] == ["Solar sail"]
    assert len(tape.requests) == len(ASKED)


@pytest.mark.parametrize("name", PATHS)
async def test_another_question_is_not_on_the_cassette(name: str) -> None:
    query, top, _ = ASKED[0]
    other = (f"{query} 2025", top, Options())
    with cassette(CASSETTES / f"{name}.yaml"):
        with pytest.raises(vcr.errors.CannotOverwriteExistingCassetteException):
            await asked(name, [other])
        await asked(name)


async def test_a_cassette_that_is_partly_played_fails_the_test() -> None:
    tape = cassette(CASSETTES / "brave.yaml")
    tape.__enter__()
    await asked("brave", ASKED[:1])
    with pytest.raises(AssertionError, match=r"brave\.yaml was only partly played"):
        tape.__exit__(None, None, None)


def test_cassettes_are_small_and_hold_no_key() -> None:
    for file in CASSETTES.glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        assert KEY not in text, file.name
        assert len(text) < 4_000, file.name
        assert "cookie" not in text.lower(), file.name


async def _record() -> None:
    for name, path in PATHS.items():
        file = CASSETTES / f"{name}.yaml"
        file.unlink(missing_ok=True)
        server = FaultServer({path: faults.reply(ANSWERS[name])}, port=PORT)
        async with server:
            with cassette(file, record=True):
                await asked(name)


if __name__ == "__main__":
    asyncio.run(_record())
