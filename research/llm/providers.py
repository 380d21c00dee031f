"""Who serves models, and how each is talked to: one row a provider, and the users' own.

Sources: each provider's API reference (base URL, variables, fields). A row speaks for the provider's newest
models; where older ones want to be asked otherwise, `OLDER` says how.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ..errors import UsageError
from ..settings import Settings
from ..values import address, checked, near

if TYPE_CHECKING:
    from .endpoint import Endpoint

BUILTIN = "builtin:extractive"
BUILTIN_REVISION = "2"  # a new one whenever the built-in model may answer otherwise: it is part of keys
THINKS = 2_000  # tokens, for models that think whether asked to or not; so few mean an effort of "low"


class Provider(NamedTuple):
    """`cheap` and `capable` are the tiers' models, "" where that depends on what is installed or deployed.

    `local`: served by the user's own machine, at no cost; its key may be missing.
    `thinks`: tokens that its models are allowed for thinking even where a stage allows none.
    """

    wire: str
    base_url: str
    key_variables: tuple[str, ...]
    url_variable: str
    ways: Mapping[str, Any]  # how its dialect differs: arguments of wires.Dialect
    cheap: str = ""
    capable: str = ""
    local: bool = False
    thinks: int = 0
    limits: Mapping[str, Any] = {}  # arguments of endpoint.Limits


_CHAT = {"limit": "max_tokens", "reasoning": "effort"}  # Chat Completions as most services speak it
_CLAUDE = {"reasoning": "adaptive", "cache_markers": True, "temperature": False}
_GPT = {"reasoning": "effort", "temperature": False}
_ROUTED = _CHAT | {"reasoning": "budget", "reasoning_back": ("reasoning_details",), "cache_markers": True}
_DEEPSEEK = _CHAT | {"structured": "object", "reasoning_back": ("reasoning_content",)}
_NEW = _CHAT | {"limit": "max_completion_tokens"}
_PLAIN = _CHAT | {"reasoning": "none"}

# In the order in which a provider is chosen when only its key is set.
PROVIDERS: dict[str, Provider] = {
    name: Provider(wire, url, tuple(key.split()), variable, ways, cheap, capable, local, thinks)
    for name, wire, url, key, variable, ways, cheap, capable, local, thinks in (
        ("anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
         _CLAUDE, "claude-haiku-5-5", "claude-sonnet-5-5", False, THINKS),
        ("openai", "openai-responses", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL",
         _GPT, "gpt-6-luna", "gpt-6.1-sol", False, THINKS),
        ("openrouter", "openai-chat", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL",
         _ROUTED, "openai/gpt-6-luna", "anthropic/claude-sonnet-5.5", False, THINKS),
        ("gemini", "openai-chat", "https://generativelanguage.googleapis.com/v1beta/openai",
         "GEMINI_API_KEY GOOGLE_API_KEY", "GEMINI_BASE_URL",
         _NEW, "gemini-3.5-flash-lite", "gemini-3.8-flash", False, THINKS),
        ("groq", "openai-chat", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "GROQ_BASE_URL",
         _NEW, "openai/gpt-oss-20b", "openai/gpt-oss-120b", False, THINKS),
        ("mistral", "openai-chat", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "MISTRAL_BASE_URL",
         _PLAIN, "mistral-small-latest", "mistral-medium-latest", False, 0),
        ("deepseek", "openai-chat", "https://api.deepseek.com", "DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL",
         _DEEPSEEK, "deepseek-flash", "deepseek-v4-pro", False, THINKS),
        ("together", "openai-chat", "https://api.together.ai/v1", "TOGETHER_API_KEY", "TOGETHER_BASE_URL",
         _CHAT, "openai/gpt-oss-120b", "zai-org/GLM-5.3", False, THINKS),
        ("xai", "openai-chat", "https://api.x.ai/v1", "XAI_API_KEY", "XAI_BASE_URL",
         _NEW, "grok-4.3", "grok-4.7", False, THINKS),
        ("azure", "openai-chat", "https://RESOURCE.openai.azure.com/openai/v1", "AZURE_OPENAI_API_KEY",
         "AZURE_OPENAI_ENDPOINT", _GPT, "", "", False, THINKS),
        ("ollama", "openai-chat", "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", "OLLAMA_HOST",
         _PLAIN, "", "", True, 0),
        ("vllm", "openai-chat", "http://127.0.0.1:8000/v1", "VLLM_API_KEY", "VLLM_BASE_URL", _PLAIN, "", "", True, 0),
        ("llama.cpp", "openai-chat", "http://127.0.0.1:8080/v1", "LLAMA_API_KEY", "LLAMA_CPP_BASE_URL",
         _PLAIN, "", "", True, 0),
    )
}  # fmt: skip

# Provider, the models' names, what is different about them. None of them thinks unless it is told to.
OLDER: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("anthropic", r"claude-(v?[123]\b|(opus|sonnet)-4-(0|2025))",
     {"structured": "tool", "reasoning": "budget", "temperature": True}),
    ("anthropic", r"claude-(opus|sonnet|haiku)-4-[1-5]\b", {"reasoning": "budget", "temperature": True}),
    ("anthropic", r"claude-(opus|sonnet)-4-[678]\b", {}),
    ("openai", r"(ft:)?(gpt-[34]|chatgpt)", {"reasoning": "none", "temperature": True}),
    ("azure", r"gpt-?[34]", {"reasoning": "none", "temperature": True}),
    ("xai", r"grok-.*non-reasoning", {"reasoning": "none"}),
    ("groq", r"(?!openai/gpt-oss)", {"structured": "object", "reasoning": "none"}),
)  # fmt: skip


def provider(name: str, settings: Settings, environment: Mapping[str, str]) -> Provider:
    """The provider's row, with what the user's file and environment change about it.

    Raises: UsageError if there is none of that name, or its address is not known.
    """
    table = settings.providers.get(name, {})
    row = PROVIDERS.get(name)
    if row is None and not {"wire", "base_url"} <= {*table}:
        known = [*PROVIDERS, *settings.providers]
        raise UsageError(
            f"there is no provider {name!r}. Known are {', '.join(known)}; others need [providers.{name}] with wire "
            f"and base_url in the user's config{near(name, known)}"
        )
    row = row or Provider(table["wire"], "", (), "", _PLAIN, local=_loopback(table["base_url"]))
    base = _address(row, environment) or table.get("base_url", "") or row.base_url
    if "RESOURCE" in base:
        raise UsageError(f"{name} has no address of its own: set {row.url_variable}, like {row.base_url}")
    if name == "openai" and _host(base) != _host(row.base_url):
        row = row._replace(wire="openai-chat")  # what stands behind another address mostly speaks no other wire
    keys = (table["key_env"],) if "key_env" in table else row.key_variables
    changed = _part(table, "wire", "cheap", "capable", "local")
    limits = _part(table, "requests_per_minute", "tokens_per_minute", "at_once")
    return row._replace(base_url=base, key_variables=keys, limits=limits, **changed)


def _part(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: table[key] for key in keys if key in table}


def endpoint(model: str, settings: Settings, environment: Mapping[str, str]) -> Endpoint:
    """Where and how `model` ("provider:model") is asked. Its key may be missing: `check_key` tells.

    Raises: UsageError for a name that means nothing.
    """
    from .endpoint import Endpoint, Limits
    from .wires import Dialect

    name, model_name = split(model)
    row = provider(name, settings, environment)
    older = next((ways for of, pattern, ways in OLDER if of == name and re.match(pattern, model_name)), None)
    told = _part(settings.providers.get(name, {}), "limit", "structured", "reasoning", "temperature")
    variable = key_of(row, environment)
    return Endpoint(
        name,
        model_name,
        row.wire,
        row.base_url,
        Dialect(**{**row.ways, **(older or {}), **told}),
        key=environment.get(variable, "").strip(),
        key_name=variable or next(iter(row.key_variables), ""),
        local=row.local or _loopback(row.base_url),
        limits=Limits(**row.limits),
        thinking=row.thinks if older is None else 0,
    )


def key_of(row: Provider, environment: Mapping[str, str]) -> str:
    """The variable that holds its key, "" if none does."""
    return next((variable for variable in row.key_variables if environment.get(variable, "").strip()), "")


def check_key(model: str, settings: Settings, environment: Mapping[str, str]) -> None:
    """Raises: UsageError for an unknown provider; if it wants a key and there is none, it names the variable."""
    row = provider(split(model)[0], settings, environment)
    if row.key_variables and not key_of(row, environment) and not row.local and not _loopback(row.base_url):
        variable = " or ".join(row.key_variables)
        raise UsageError(f"{model} needs a key: set {variable}, or choose another model with --cheap and --capable")


def split(model: str) -> tuple[str, str]:
    """Provider and model of "provider:model". Raises: UsageError if it is no such name."""
    name, colon, rest = model.partition(":")
    if not colon or not name or not rest:
        example = f"anthropic:{PROVIDERS['anthropic'].cheap}"
        raise UsageError(f"{model!r} names no model; write PROVIDER:MODEL, like {example}")
    return name, rest


def _address(row: Provider, environment: Mapping[str, str]) -> str:
    """The address that the environment gives, "" if none. One without a path gets the row's."""
    given = environment.get(row.url_variable, "").strip()
    if not given:
        return ""
    if "://" not in given:
        given = f"http://{given}"  # OLLAMA_HOST=127.0.0.1:11434, or without the port
        given = given if urlsplit(given).port else f"{given}:{urlsplit(row.base_url).port or 80}"
    given = checked(address, given.replace("://0.0.0.0", "://127.0.0.1"), row.url_variable)
    return given if urlsplit(given).path else given + urlsplit(row.base_url).path


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _loopback(url: str) -> bool:
    host = _host(url)
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){3}", host) is not None
