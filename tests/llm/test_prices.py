"""Prices, against sums worked out by hand from the providers' price pages (dollars per million tokens)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from research.errors import UsageError
from research.llm.messages import Usage
from research.llm.prices import Prices
from research.llm.providers import PROVIDERS
from research.settings import Settings


def prices(environment: dict[str, str] | None = None, **settings: Any) -> Prices:
    return Prices(Settings(Path("/nowhere"), **settings), environment or {})


MIXED = Usage(input=1_000, cache_read=5_000, cache_write=200, output=300, reasoning=100)


@pytest.mark.parametrize(
    ("model", "usage", "nano"),
    [
        # $1 in, $5 out, cache: read $0.10, write $1.25
        ("anthropic:claude-haiku-4-5", MIXED, 1_000 * 1_000 + 5_000 * 100 + 200 * 1_250 + 300 * 5_000),
        # $2.50 in, $10 out, cached $1.25; writing to the cache costs what fresh input does
        ("openai:gpt-4o", MIXED, 1_200 * 2_500 + 5_000 * 1_250 + 300 * 10_000),
        # $0.15 in, $0.60 out, cached $0.075: reasoning is output, and not paid twice
        ("openai:gpt-4o-mini", Usage(input=1_000, output=1_000, reasoning=900), 1_000 * 150 + 1_000 * 600),
        # $0.59 in, $0.79 out
        ("groq:llama-3.3-70b-versatile", Usage(input=1, output=1), 590 + 790),
        # $1.25 in, $10 out up to 200,000 tokens of input, $2.50 and $15 beyond, cached ones counted in
        ("gemini:gemini-2.5-pro", Usage(input=200_000, output=10), 200_000 * 1_250 + 10 * 10_000),
        ("gemini:gemini-2.5-pro", Usage(input=200_001, output=10), 200_001 * 2_500 + 10 * 15_000),
        ("openrouter:openai/gpt-4o-mini", Usage(input=10, output=10), 10 * 150 + 10 * 600),
        ("openai:gpt-4o", Usage(), 0),
    ],
)  # fmt: skip
def test_prices_are_what_the_provider_asks(model: str, usage: Usage, nano: int) -> None:
    assert prices().price(model, usage) == nano


@pytest.mark.parametrize("model", ["openai:no-such-model", "mine:gpt-4o", "nobody:x"])
def test_an_unknown_price_is_none_and_never_nothing(model: str) -> None:
    assert prices().price(model, MIXED) is None
    assert prices().told(model) == "unknown"
    assert prices().origin(model) == "no list has it"


def test_the_users_prices_stand_above_the_list() -> None:
    mine = prices(prices={"openai:gpt-4o": {"input": 0.1, "output": 0.4, "cache_read": 0.01}})
    assert mine.price("openai:gpt-4o", MIXED) == 1_000 * 100 + 5_000 * 10 + 200 * 100 + 300 * 400
    assert mine.told("openai:gpt-4o") == "$0.1 in, $0.4 out"
    assert mine.price("openai:gpt-4o-mini", Usage(input=1)) == 150


@pytest.mark.parametrize(
    ("model", "usage", "nano"),
    [
        # $1 in, $5 out, cache: read $0.10, write $1.25: all of it halved
        ("anthropic:claude-haiku-4-5", MIXED, (1_000 * 1_000 + 5_000 * 100 + 200 * 1_250 + 300 * 5_000) // 2),
        ("openai:gpt-4o-mini", Usage(input=1_000, output=1_000), (1_000 * 150 + 1_000 * 600) // 2),
        ("groq:llama-3.3-70b-versatile", Usage(input=1, output=2), (590 + 2 * 790) // 2),  # no price of its own
        ("openai:gpt-4o", Usage(input=1_000, output=300), 1_000 * 100 // 2 + 300 * 400 // 2),  # the user's own
        ("ollama:llama4", MIXED, 0),
        ("openai:no-such-model", MIXED, None),
    ],
)  # fmt: skip
def test_a_batch_costs_what_the_list_says_and_else_half(model: str, usage: Usage, nano: int | None) -> None:
    settings = Settings(Path("/nowhere"), prices={"openai:gpt-4o": {"input": 0.1, "output": 0.4}})
    assert Prices(settings, {}, batch=True).price(model, usage) == nano


def test_fractions_of_a_nano_dollar_are_rounded_up() -> None:
    assert prices(prices={"a:b": {"input": 0.0001, "output": 0}}).price("a:b", Usage(input=1)) == 1
    assert prices(prices={"a:b": {"input": 0.0001, "output": 0}}).price("a:b", Usage(input=10)) == 1


def test_a_price_half_told_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"\[prices.a:b\]: add output, in dollars per million tokens"):
        prices(prices={"a:b": {"input": 1.0}})


def test_what_runs_on_this_machine_is_free_unless_the_user_says_otherwise() -> None:
    own = {"mine": {"wire": "openai-chat", "base_url": "http://127.0.0.1:9000/v1"}}
    for model in ("builtin:extractive", "ollama:llama4", "vllm:x", "llama.cpp:x"):
        assert prices().price(model, MIXED) == 0
        assert prices().told(model) == "free"
    assert prices(providers=own).price("mine:x", MIXED) == 0
    assert (
        prices(providers=own, prices={"mine:x": {"input": 1.0, "output": 1.0}}).price("mine:x", Usage(input=1)) == 1_000
    )


def test_an_address_that_the_list_knows_decides_whose_prices_they_are() -> None:
    own = {"mine": {"wire": "openai-chat", "base_url": "https://api.groq.com/openai/v1"}}
    assert prices(providers=own).price("mine:llama-3.3-70b-versatile", Usage(input=1)) == 590
    routed = prices({"OPENAI_BASE_URL": "https://proxy.example/v1"})
    assert routed.price("openai:gpt-4o", Usage(input=1)) == 2_500


def test_search_fees_come_from_the_users_config() -> None:
    assert prices(engines={"brave": {"usd_per_search": 0.005}}).search_fee("brave") == 5_000_000
    assert prices().search_fee("duckduckgo") == 0
    assert prices().search_fee("tavily") is None


def test_the_list_is_named_with_its_version_and_day() -> None:
    assert re.fullmatch(r"genai-prices [\d.]+, last verified 20\d\d-\d\d-\d\d", prices().list_name)


def test_every_default_model_has_a_price_in_the_list() -> None:
    for name, row in PROVIDERS.items():
        for model in filter(None, (row.cheap, row.capable)):
            assert prices().price(f"{name}:{model}", MIXED), f"{name}:{model}"
        if row.cheap:
            cheap, capable = (prices().price(f"{name}:{model}", MIXED) or 0 for model in (row.cheap, row.capable))
            assert cheap < capable


def test_local_models_never_load_the_list() -> None:
    code = """if True:
        import sys
        from pathlib import Path
        from research.llm.messages import Usage
        from research.llm.prices import Prices
        from research.settings import Settings
        asked = Prices(Settings(Path("/nowhere")), {})
        assert asked.price("builtin:extractive", Usage(input=5)) == asked.price("ollama:x", Usage(input=5)) == 0
        assert asked.told("ollama:x") == "free" and asked.window("ollama:x") is None
        assert "genai_prices" not in sys.modules
        asked.price("openai:gpt-4o", Usage(input=5))
        assert "genai_prices" in sys.modules and "httpx" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True)
