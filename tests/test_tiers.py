"""What the tiers mean: what was set, else keys that are there, else a server that runs, else the built-in model."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from research.errors import BadRequestError, UsageError
from research.llm.messages import Message, Request
from research.settings import Settings
from research.tiers import PROBE, Choice, Tiers, listing

NO_OLLAMA = {"OLLAMA_HOST": "127.0.0.1:9"}  # the discard port: nothing answers


def tiers(environment: dict[str, str] | None = None, told: list[str] | None = None, **settings: Any) -> Tiers:
    notice = (lambda _: None) if told is None else told.append
    return Tiers(Settings(Path("/nowhere"), **settings), notice, {**NO_OLLAMA, **(environment or {})})


@contextmanager
def server(models: list[str], wait: float = 0.0) -> Iterator[str]:
    """A server on loopback that lists its models; its host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(wait)
            body = json.dumps({"object": "list", "data": [{"id": name, "object": "model"} for name in models]}).encode()
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        listening.server_close()


def test_what_is_set_is_meant() -> None:
    asked = tiers(cheap="groq:a", capable="mine:b", origins={"cheap": "flag --cheap"})
    assert asked.choice("cheap") == Choice("groq:a", "flag --cheap")
    assert asked.choice("capable").model == "mine:b"


def test_a_provider_alone_stands_for_its_model_of_the_tier() -> None:
    asked = tiers(cheap="anthropic", capable="anthropic")
    assert asked.choice("cheap").model == "anthropic:claude-haiku-5-5"
    assert asked.choice("capable").model == "anthropic:claude-sonnet-5-5"
    assert tiers(cheap="builtin", capable="builtin").choice("cheap").model == "builtin:extractive"


def test_one_tier_brings_the_other_along() -> None:
    assert tiers(capable="anthropic:claude-opus-5-5").choice("cheap") == Choice(
        "anthropic:claude-haiku-5-5", "goes with capable"
    )
    assert tiers(cheap="ollama:qwen").choice("capable") == Choice("ollama:qwen", "goes with cheap")
    assert tiers(cheap="builtin").choice("capable").model == "builtin:extractive"


def test_the_first_key_that_is_there_decides() -> None:
    keys = {"XAI_API_KEY": "x", "MISTRAL_API_KEY": "m"}
    assert tiers(keys).choice("cheap") == Choice("mistral:mistral-small-latest", "MISTRAL_API_KEY is set")
    assert tiers(keys).choice("capable").model == "mistral:mistral-medium-latest"
    assert tiers({**keys, "ANTHROPIC_API_KEY": "a"}).choice("cheap").model == "anthropic:claude-haiku-5-5"
    assert tiers({"GOOGLE_API_KEY": "g"}).choice("cheap") == Choice(
        "gemini:gemini-3.5-flash-lite", "GOOGLE_API_KEY is set"
    )
    assert tiers({"AZURE_OPENAI_API_KEY": "z"}).choice("cheap").model == "builtin:extractive"  # no deployment is known


def test_a_provider_of_ones_own_with_models_for_both_tiers_comes_first() -> None:
    own = {
        "mine": {
            "wire": "openai-chat",
            "base_url": "https://a.example/v1",
            "key_env": "MY_KEY",
            "cheap": "s",
            "capable": "l",
        }
    }
    assert tiers({"ANTHROPIC_API_KEY": "a", "MY_KEY": "k"}, providers=own).choice("capable") == Choice(
        "mine:l", "MY_KEY is set"
    )
    assert tiers({"ANTHROPIC_API_KEY": "a"}, providers=own).choice("cheap").model == "anthropic:claude-haiku-5-5"


def test_else_a_running_ollama_with_what_it_has() -> None:
    with server(["nomic-embed-text:latest", "llama4:8b", "qwen3:1b"]) as host:
        asked = tiers({"OLLAMA_HOST": host})
        assert asked.choice("cheap") == asked.choice("capable") == Choice("ollama:llama4:8b", "Ollama runs")
    with server([]) as host:
        assert tiers({"OLLAMA_HOST": host}).choice("cheap").model == "builtin:extractive"


def test_a_local_server_alone_stands_for_what_it_serves() -> None:
    with server(["/models/some.gguf"]) as host:
        assert (
            tiers({"LLAMA_CPP_BASE_URL": f"http://{host}"}, cheap="llama.cpp").choice("cheap").model
            == "llama.cpp:/models/some.gguf"
        )
    with pytest.raises(
        UsageError, match="vllm alone names no model, and nothing answers at its address; write vllm:MODEL"
    ):
        tiers({"VLLM_BASE_URL": "http://127.0.0.1:9/v1"}, cheap="vllm").choice("cheap")
    with pytest.raises(UsageError, match="azure alone names no model, and it has no default"):
        tiers({"AZURE_OPENAI_ENDPOINT": "https://a.example"}, cheap="azure").choice("cheap")


def test_a_server_that_does_not_answer_at_once_is_not_waited_for() -> None:
    with server(["slow"], wait=5 * PROBE) as host:
        began = time.monotonic()
        assert listing(f"http://{host}/v1") == []
        assert time.monotonic() - began < 3 * PROBE


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/v1", "https://127.0.0.1/v1", "http:///v1", "http://127.0.0.1:70000/v1"]
)
def test_no_server_is_an_empty_listing(url: str) -> None:
    assert listing(url) == []


def test_with_nothing_at_all_the_built_in_model_answers_and_says_so() -> None:
    told: list[str] = []
    models = tiers(told=told).models(["cheap", "capable"])
    assert {name: model.name for name, model in models.items()} == dict.fromkeys(
        ("cheap", "capable"), "builtin:extractive"
    )
    assert models["cheap"] is models["capable"]
    assert len(told) == 1
    assert "the built-in extractive one answers" in told[0]
    assert "\n" not in told[0]


def test_a_choice_that_nobody_made_is_told_in_one_line() -> None:
    told: list[str] = []
    tiers({"GROQ_API_KEY": "gsk-canary"}, told).models(["cheap", "capable"])
    assert told == [
        "No model was chosen, and GROQ_API_KEY is set: cheap groq:openai/gpt-oss-20b, capable groq:openai/gpt-oss-120b. "
        "Choose with --cheap and --capable."
    ]
    told.clear()
    tiers({"GROQ_API_KEY": "k"}, told, cheap="groq:a").models(["cheap", "capable", "groq:b"])
    assert told == []


def test_a_missing_key_is_told_before_anything_is_asked() -> None:
    with pytest.raises(UsageError, match="anthropic:claude-haiku-5-5 needs a key: set ANTHROPIC_API_KEY"):
        tiers(cheap="anthropic").models(["cheap"])
    with pytest.raises(UsageError, match="there is no provider 'nobody'"):
        tiers(cheap="nobody:x").models(["cheap"])
    with pytest.raises(UsageError, match="there is no built-in model 'builtin:gpt'"):
        tiers(cheap="builtin:gpt").models(["cheap"])
    models = tiers(cheap="builtin", capable="anthropic").models(["cheap"])  # what no stage needs may be missing
    assert models["cheap"].name == "builtin:extractive"


def test_a_pinned_model_is_bound_too() -> None:
    models = tiers({"GROQ_API_KEY": "k"}, cheap="groq:a").models(["cheap", "groq:a", "groq:b"])
    assert models["cheap"] is models["groq:a"]
    assert models["groq:b"].name == "groq:b"
    assert "'k'" not in repr(models)


async def test_a_model_is_opened_when_it_is_called() -> None:
    asked = tiers()
    [model] = asked.models(["cheap"]).values()
    with pytest.raises(BadRequestError, match="the built-in extractive model can't answer freely"):
        await model.complete(Request("", (Message("user", "hello"),), 10))
    await asked.aclose()


def test_looking_for_models_imports_nothing_heavy() -> None:
    code = """if True:
        import sys
        from pathlib import Path
        from research.settings import Settings
        from research.tiers import Tiers
        for environment in ({"OLLAMA_HOST": "127.0.0.1:9"}, {"ANTHROPIC_API_KEY": "k"}):
            asked = Tiers(Settings(Path("/nowhere")), environment=environment)
            assert asked.models(["cheap", "capable"]) and asked.prices and asked.rates
        heavy = {"httpx", "genai_prices", "research.llm.wires", "research.llm.client", "research.llm.extractive", "difflib"}
        assert not heavy & {*sys.modules}, heavy & {*sys.modules}"""
    subprocess.run([sys.executable, "-c", code], check=True)
