"""The table of providers, held against recorded traffic, and what environment and config change about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from research.errors import UsageError
from research.llm.messages import Message, Request
from research.llm.providers import PROVIDERS, check_key, endpoint
from research.llm.wires import WIRES
from research.settings import Settings


def settings(**changed: Any) -> Settings:
    return Settings(Path("/nowhere"), **changed)


UNRECORDED = {"azure"} | {name for name, row in PROVIDERS.items() if row.local}  # no client's requests to it are known


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name not in UNRECORDED])
def test_requests_go_where_recorded_ones_went(name: str, data: Callable[[str], Path]) -> None:
    """Real clients' requests were recorded with their addresses; the wires differ where a service has several."""
    index = data("llm-traffic") / "dev"
    urls = {
        json.loads(file.read_text())["request"]["url"].partition("?")[0] for file in index.rglob("recordings/*.json")
    }
    where = endpoint(f"{name}:{PROVIDERS[name].cheap}", settings(), {})
    request = Request("", (Message("user", "hello"),), 10)
    path = WIRES[where.wire].encode(request, where.model, stream=False, dialect=where.dialect).path
    wanted = where.base_url + path
    if name == "xai":  # recorded over its other wire only
        wanted = wanted.replace("/chat/completions", "/responses")
    assert wanted in urls


def test_the_providers_in_the_order_in_which_their_keys_are_looked_for() -> None:
    assert list(PROVIDERS) == [
        "anthropic", "openai", "openrouter", "gemini", "groq", "mistral", "deepseek", "together", "xai", "azure",
        "ollama", "vllm", "llama.cpp",
    ]  # fmt: skip
    for name, row in PROVIDERS.items():
        assert row.wire in WIRES
        assert urlsplit(row.base_url).scheme == ("http" if row.local else "https"), name
        assert row.key_variables
        assert row.url_variable.endswith(("_URL", "_HOST", "_ENDPOINT"))


@pytest.mark.parametrize(
    ("environment", "model", "url"),
    [
        ({"ANTHROPIC_BASE_URL": "https://proxy.example/anthropic/"}, "anthropic:x", "https://proxy.example/anthropic"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:8080"}, "openai:x", "http://127.0.0.1:8080/v1"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:8080/api"}, "openai:x", "http://127.0.0.1:8080/api"),
        ({"GROQ_BASE_URL": "https://api.groq.com"}, "groq:x", "https://api.groq.com/openai/v1"),
        ({"OLLAMA_HOST": "192.168.1.5:11434"}, "ollama:x", "http://192.168.1.5:11434/v1"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "ollama:x", "http://127.0.0.1:11434/v1"),
        ({"OLLAMA_HOST": "https://box.example:1"}, "ollama:x", "https://box.example:1/v1"),
        ({"AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/"}, "azure:x", "https://me.openai.azure.com/openai/v1"),
        ({}, "llama.cpp:x", "http://127.0.0.1:8080/v1"),
    ],
)
def test_the_usual_variables_give_the_address(environment: dict[str, str], model: str, url: str) -> None:
    assert endpoint(model, settings(), environment).base_url == url


def test_the_environment_beats_the_users_file() -> None:
    mine = settings(providers={"groq": {"base_url": "https://file.example/v1"}})
    assert endpoint("groq:x", mine, {}).base_url == "https://file.example/v1"
    assert endpoint("groq:x", mine, {"GROQ_BASE_URL": "https://env.example/v1"}).base_url == "https://env.example/v1"


@pytest.mark.parametrize("url", ["ftp://a", "https://", "https://user:sk-canary@a/v1", "https://a/v1?key=sk-canary"])
def test_an_address_that_is_none_is_told_by_its_variable(url: str) -> None:
    with pytest.raises(UsageError, match="ANTHROPIC_BASE_URL: it must") as caught:
        endpoint("anthropic:x", settings(), {"ANTHROPIC_BASE_URL": url})
    assert "canary" not in str(caught.value)


def test_what_the_user_says_about_a_provider_beats_the_table() -> None:
    mine = settings(
        providers={"anthropic": {"structured": "prompt", "key_env": "WORK_KEY", "cheap": "claude-3-5-haiku"}}
    )
    where = endpoint("anthropic:claude-3-5-haiku", mine, {"WORK_KEY": "k", "ANTHROPIC_API_KEY": "other"})
    assert (where.dialect.structured, where.dialect.reasoning) == ("prompt", "budget")
    assert (where.key, where.key_name) == ("k", "WORK_KEY")


def test_behind_another_address_openai_is_asked_by_chat_completions() -> None:
    assert endpoint("openai:gpt-6-luna", settings(), {}).wire == "openai-responses"
    assert endpoint("openai:x", settings(), {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}).wire == "openai-chat"
    mine = settings(providers={"openai": {"wire": "openai-responses"}})
    assert endpoint("openai:x", mine, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}).wire == "openai-responses"


def test_a_key_is_taken_from_the_first_variable_that_has_one() -> None:
    where = endpoint("gemini:x", settings(), {"GOOGLE_API_KEY": "g"})
    assert (where.key, where.key_name) == ("g", "GOOGLE_API_KEY")
    where = endpoint("gemini:x", settings(), {"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": "h"})
    assert (where.key, where.key_name) == ("h", "GEMINI_API_KEY")
    assert "'g'" not in repr(where)
    assert "'h'" not in repr(where)


def test_a_missing_key_is_an_error_that_names_the_variable() -> None:
    with pytest.raises(UsageError, match="mistral:x needs a key: set MISTRAL_API_KEY"):
        check_key("mistral:x", settings(), {})
    check_key("mistral:x", settings(), {"MISTRAL_API_KEY": "k"})
    check_key("ollama:x", settings(), {})
    own = settings(providers={"mine": {"wire": "anthropic", "base_url": "https://a.example", "key_env": "MY_KEY"}})
    with pytest.raises(UsageError, match="set MY_KEY"):
        check_key("mine:x", own, {})


def test_a_provider_of_ones_own() -> None:
    table = {
        "wire": "openai-chat", "base_url": "https://llm.example/v1", "key_env": "MY_KEY", "limit": "max_completion_tokens",
        "structured": "object", "reasoning": "effort", "temperature": False, "requests_per_minute": 60.0, "at_once": 4,
    }  # fmt: skip
    where = endpoint("mine:a/b:free", settings(providers={"mine": table}), {"MY_KEY": "k"})
    assert (where.provider, where.model, where.name) == ("mine", "a/b:free", "mine:a/b:free")
    assert (where.wire, where.base_url, where.key, where.local) == ("openai-chat", "https://llm.example/v1", "k", False)
    assert (where.dialect.limit, where.dialect.structured, where.dialect.reasoning) == (
        "max_completion_tokens",
        "object",
        "effort",
    )
    assert (where.limits.requests_per_minute, where.limits.tokens_per_minute, where.limits.at_once) == (60, None, 4)
    assert not where.dialect.temperature


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("antropic:x", "there is no provider 'antropic'. Known are anthropic, .*Did you mean 'anthropic'?"),
        ("mine:x", r"others need \[providers.mine\] with wire and base_url"),
        ("gpt-4o", "'gpt-4o' names no model; write PROVIDER:MODEL"),
        ("openai:", "'openai:' names no model"),
        ("azure:gpt-4o", "set AZURE_OPENAI_ENDPOINT, like https://RESOURCE.openai.azure.com"),
    ],
)
def test_a_name_that_means_nothing_is_an_error(model: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        endpoint(model, settings(), {})


@pytest.mark.parametrize(
    ("model", "structured", "reasoning", "temperature", "thinks"),
    [
        ("anthropic:claude-haiku-5-5", "schema", "adaptive", False, True),
        ("anthropic:claude-opus-4-6", "schema", "adaptive", False, False),
        ("anthropic:claude-haiku-4-5-20251001", "schema", "budget", True, False),
        ("anthropic:claude-sonnet-4-20250514", "tool", "budget", True, False),
        ("anthropic:claude-3-5-haiku-latest", "tool", "budget", True, False),
        ("openai:gpt-6-luna", "schema", "effort", False, True),
        ("openai:gpt-5-mini", "schema", "effort", False, True),
        ("openai:gpt-4.1-mini", "schema", "none", True, False),
        ("openai:o4-mini", "schema", "effort", False, True),
        ("groq:openai/gpt-oss-20b", "schema", "effort", True, True),
        ("groq:llama-3.3-70b-versatile", "object", "none", True, False),
        ("deepseek:deepseek-flash", "object", "effort", True, True),
        ("mistral:mistral-small-latest", "schema", "none", True, False),
    ],
)
def test_models_are_asked_in_the_way_of_their_generation(
    model: str, structured: str, reasoning: str, temperature: bool, thinks: bool
) -> None:
    where = endpoint(model, settings(), {})
    assert (where.dialect.structured, where.dialect.reasoning, where.dialect.temperature) == (
        structured,
        reasoning,
        temperature,
    )
    assert bool(where.thinking) == thinks
