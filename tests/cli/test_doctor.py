"""`research models` and `research doctor`: what is set and from where, what answers, and never a key."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from research.settings import KEYED, engine_names
from tests.commands import research

CANARY = "sk-canary-9f3b1c77d2"
CLOSED = "http://127.0.0.1:9"
NOWHERE = {
    "OLLAMA_HOST": "127.0.0.1:9", "DUCKDUCKGO_BASE_URL": CLOSED, "MOJEEK_BASE_URL": CLOSED, "WIKIPEDIA_BASE_URL": CLOSED,
}  # fmt: skip
REPLY = {
    "id": "1", "model": "served-1", "object": "chat.completion",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ready"}}],
    "usage": {"prompt_tokens": 1_000, "completion_tokens": 2, "total_tokens": 1_002},
}  # fmt: skip


@contextmanager
def provider(status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """A provider on loopback, and the keys that it was asked with. What it refuses, it repeats with the key."""
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            keys.append(self.headers["authorization"])
            refusal = {"error": {"message": f"Incorrect API key provided: {keys[-1]}", "code": "invalid_api_key"}}
            body = json.dumps(REPLY if status == 200 else refusal).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}/v1", keys
    finally:
        listening.shutdown()
        listening.server_close()


def own(home: Path, url: str) -> dict[str, str]:
    """An environment with a config of the user's, in which a provider of their own stands."""
    config = home / "config" / "research" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        f'cheap = "mine:small"\n[providers.mine]\nwire = "openai-chat"\nbase_url = "{url}"\nkey_env = "MY_KEY"\n'
        '[prices."mine:small"]\ninput = 1.0\noutput = 5.0\n'
    )
    return {"XDG_CONFIG_HOME": str(home / "config"), "MY_KEY": CANARY, **NOWHERE}


def test_every_setting_is_shown_with_its_origin(tmp_path: Path) -> None:
    environment = own(tmp_path, CLOSED)
    (tmp_path / "research.toml").write_text('pipeline = "small"\n')
    done = research(tmp_path, "doctor", "--search", "duckduckgo", RESEARCH_MAX_USD="0.20", **environment)
    config = environment["XDG_CONFIG_HOME"] + "/research/config.toml"
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in (
        f"home {tmp_path} (RESEARCH_HOME)",
        f"cheap mine:small ({config})",
        "capable – (default)",
        "pipeline small (./research.toml)",
        "search duckduckgo (flag --search)",
        "max_usd 0.2 (RESEARCH_MAX_USD)",
        f"providers.mine.base_url {CLOSED} ({config})",
        f"prices.mine:small.output 5.0 ({config})",
        "MY_KEY set (mine)",
        "ANTHROPIC_API_KEY not set (anthropic)",
        f"cheap mine:small ({config})",
        "capable mine:small (goes with cheap)",
        f"{tmp_path} writable",
        "mine 127.0.0.1:9 can't be reached: Connection refused",
        "duckduckgo 127.0.0.1:9 can't be reached: Connection refused",
    ):
        assert line in lines, line
    assert CANARY not in done.stdout + done.stderr
    assert done.returncode == 6


def test_what_holds_where_nothing_is_set(tmp_path: Path) -> None:
    done = research(tmp_path, "doctor", ANTHROPIC_API_KEY=" ", **NOWHERE)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in (
        "search duckduckgo,mojeek,wikipedia (default)",
        "max_usd $0.50 a question where a model costs money (default)",
        "deadline 120 s a question where a model costs money (default)",
        "max_calls – (default)",
        "ANTHROPIC_API_KEY not set (anthropic)",
        *(f"{engine_names(name)[1]} not set ({name})" for name in KEYED),
    ):
        assert line in lines, line


def test_live_asks_once_and_tells_what_it_cost(tmp_path: Path) -> None:
    with provider() as (url, keys):
        done = research(tmp_path, "doctor", "--live", "--search", "brave", **own(tmp_path, url))
    assert keys == [f"Bearer {CANARY}"]  # both tiers mean the same model: one call
    assert "cheap and capable mine:small  answers as served-1, 2 tokens for $0.0010 in" in done.stdout
    assert "brave" in done.stdout
    assert "BRAVE_API_KEY is not set" in done.stdout
    assert CANARY not in done.stdout + done.stderr
    assert done.returncode == 0


def test_a_refused_key_is_told_and_not_repeated(tmp_path: Path) -> None:
    with provider(401) as (url, keys):
        done = research(tmp_path, "doctor", "--live", "--search", "brave", **own(tmp_path, url))
    assert len(keys) == 1
    assert done.returncode == 2
    assert "MY_KEY" in done.stdout
    assert CANARY not in done.stdout + done.stderr


def test_without_live_nothing_is_sent(tmp_path: Path) -> None:
    with provider() as (url, keys):
        done = research(tmp_path, "doctor", "--search", "brave", **own(tmp_path, url))
    assert done.returncode == 0
    assert "127.0.0.1:" in done.stdout
    assert keys == []


def test_a_missing_key_is_found(tmp_path: Path) -> None:
    done = research(tmp_path, "doctor", "--cheap", "groq", "--search", "brave", **NOWHERE)
    assert done.returncode == 2
    assert "groq:openai/gpt-oss-20b needs a key: set GROQ_API_KEY" in done.stdout


def test_models_tell_meaning_price_and_window(tmp_path: Path) -> None:
    done = research(tmp_path, "models", ANTHROPIC_API_KEY=CANARY, **NOWHERE)
    assert done.returncode == 0
    assert "cheap    anthropic:claude-haiku-5-5\n         because: ANTHROPIC_API_KEY is set\n" in done.stdout
    assert "price: $0.1 in, $0.5 out per million tokens (genai-prices 0." in done.stdout
    assert "takes: 1,000,000 tokens" in done.stdout
    assert "set AZURE_OPENAI_ENDPOINT" in done.stdout
    assert CANARY not in done.stdout + done.stderr
    done = research(tmp_path, "models", "--cheap", "builtin", "--capable", "openai:no-such-model", **NOWHERE)
    assert "price: free" in done.stdout
    assert "price: unknown (no list has it)" in done.stdout


@pytest.mark.parametrize("command", ["models", "doctor"])
def test_what_a_folder_brings_along_reaches_no_terminal_as_it_is(tmp_path: Path, command: str) -> None:
    (tmp_path / "research.toml").write_text('cheap = "ollama:\\u001b]0;owned\\u0007"\n')
    done = (
        research(tmp_path, command, "--search", "brave", **NOWHERE)
        if command == "doctor"
        else research(tmp_path, command, **NOWHERE)
    )
    assert "ollama:" in done.stdout
    assert not {"\x1b", "\x07"} & {*done.stdout, *done.stderr}


def test_a_dry_run_spends_nothing_and_needs_no_key(tmp_path: Path) -> None:
    ask = ("ask", "--dry-run", "--cheap", "anthropic", "--capable", "mine:big", "How tall is it?")
    done = research(tmp_path, *ask, COLUMNS="200", **{**own(tmp_path, CLOSED), "MY_KEY": ""})
    assert done.returncode == 0
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line}
    assert "anthropic:claude-haiku-5-5" in rows["plan"]
    assert "mine:big" in rows["synthesize"]
    assert "duckduckgo" in rows["search"]
    assert "at worst" in rows["Expected"]
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "store").exists()
    figures = json.loads(
        research(
            tmp_path, *ask[:-1], "--json", "How tall is it?", XDG_CONFIG_HOME=str(tmp_path / "config"), **NOWHERE
        ).stdout
    )
    assert [row["stage"] for row in figures["stages"]] == ["plan", "search", "rerank", "fetch", "extract", "synthesize"]
    assert figures["total"]["calls"]["worst"] == sum(
        row["calls"]["worst"] for row in figures["stages"] if row["input"]["worst"]
    )
