"""Real providers and a real engine, through what is shipped: `pytest -m live`, with keys in their usual variables.

With RESEARCH_RECORD=1 the talks are recorded, for `test_recordings.py` to play without a network.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from research.limits.rates import Rates
from research.llm.client import ProviderModel
from research.llm.providers import PROVIDERS, endpoint, key_of, provider
from research.settings import Settings
from research.webs import KEYLESS
from tests.conftest import ENVIRONMENT
from tests.live.talks import RECORDINGS, TALKS, tape

pytestmark = [pytest.mark.live, pytest.mark.filterwarnings("default")]
RECORD = ENVIRONMENT.get("RESEARCH_RECORD") == "1"
ASKED = [name for name, row in PROVIDERS.items() if row.cheap]


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("name", ASKED)
async def test_a_provider(name: str, talk: str, tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    row = provider(name, settings, ENVIRONMENT)
    if not key_of(row, ENVIRONMENT):
        pytest.skip(f"{name}: no key in {' or '.join(row.key_variables)}")
    model = ProviderModel(endpoint(f"{name}:{row.cheap}", settings, ENVIRONMENT), Rates())
    try:
        if RECORD:
            with tape(RECORDINGS / f"{name}-{talk}.yaml", record=True):
                await TALKS[talk](model)
        else:
            await TALKS[talk](model)
    finally:
        await model.aclose()
        model.rates.close()


@pytest.mark.parametrize("name", KEYLESS.split(","))
async def test_an_engine_without_a_key(name: str) -> None:
    from research.transport import Client
    from research.web.engines import engine
    from research.web.engines.asking import EngineSearch
    from research.web.fetch import USER_AGENT

    asked = engine(name, os.environ)
    try:
        socket.getaddrinfo("wikipedia.org", 443)
    except OSError as error:
        pytest.skip(f"{name}: no network here ({error})")
    async with Client(headers={"User-Agent": USER_AGENT}) as client:
        hits = await EngineSearch(asked, client).search("Ulm Minster", 5)
    assert any("ulm" in f"{hit.title} {hit.url}".casefold() for hit in hits)
