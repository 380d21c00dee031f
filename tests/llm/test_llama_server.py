"""A real llama.cpp server takes what the wire sends, and what it says is understood; nothing rests on its prose.

It wants the extra `llama`, and RESEARCH_TEST_GGUF to name the weights of a small instruct model.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from research.errors import AuthError, BadRequestError, ContextTooLongError
from research.limits.rates import Rates
from research.llm.client import ProviderModel
from research.llm.messages import Message, Request, Tool
from research.llm.providers import endpoint
from research.llm.structured import ask
from research.settings import Settings
from tests.conftest import ENVIRONMENT, ROOT
from tests.live.talks import DEPTH, Capital

WEIGHTS = ENVIRONMENT.get("RESEARCH_TEST_GGUF", "")
LIBRARY = find_spec("xllamacpp")
LOADING = 120.0  # seconds at most
KEY = "canary-key-of-llama"

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(LIBRARY is None, reason="xllamacpp is not installed: pip install -e '.[llama]'"),
    pytest.mark.skipif(not Path(WEIGHTS).is_file(), reason="RESEARCH_TEST_GGUF names no file of weights"),
]


@dataclass(frozen=True)
class Server:
    url: str
    key: str = ""

    @asynccontextmanager
    async def model(self, key: str = "", stream: bool = True) -> AsyncIterator[ProviderModel]:
        environment = {"LLAMA_CPP_BASE_URL": self.url, "LLAMA_API_KEY": key or self.key}
        at = endpoint("llama.cpp:any", Settings(Path("nowhere")), environment)
        model = ProviderModel(at, Rates(), stream=stream, sleep=lambda _: asyncio.sleep(0))
        try:
            yield model
        finally:
            await model.aclose()
            model.rates.close()


@contextmanager
def running(*key: str) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert LIBRARY is not None
    assert LIBRARY.origin is not None
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(Path(LIBRARY.origin).parents[1])])
    process = subprocess.Popen(
        [sys.executable, ROOT / "tests" / "llama_server.py", str(port), WEIGHTS, *key],
        env={**os.environ, "PYTHONPATH": path, "OMP_WAIT_POLICY": "passive"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port, process)
        yield Server(f"http://127.0.0.1:{port}/v1", *key)
    finally:
        process.kill()
        process.communicate()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until it has loaded its model and says so."""
    import time
    import urllib.error
    import urllib.request

    until = time.monotonic() + LOADING
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
                if reply.status == 200:
                    return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.2)
    pytest.fail(f"the server did not begin to serve (exit code {process.poll()})")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


def said(text: str, tokens: int = 60) -> Request:
    return Request("Be brief.", (Message("user", text),), tokens, temperature=0.0)


async def test_a_streamed_text(server: Server) -> None:
    heard: list[str | None] = []
    async with server.model() as model:
        completion = await model.complete(said("Count from one to five."), on_text=heard.append)
    assert completion.text
    assert "".join(piece or "" for piece in heard) == completion.text
    assert len(heard) > 1
    assert completion.finish in ("stop", "length")
    assert 0 < completion.usage.output <= 60
    assert completion.usage.input + completion.usage.cache_read > 5


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_by_schema(server: Server, stream: bool) -> None:
    async with server.model(stream=stream) as model:
        reply = await ask(model, said("What is the capital of France, and is it in Europe?"), Capital)
    assert isinstance(reply.city, str)


@pytest.mark.parametrize("stream", [True, False])
async def test_tools_are_taken(server: Server, stream: bool) -> None:
    request = replace(said("How deep is Lake Baikal? Call the tool.", 120), tools=(DEPTH,))
    async with server.model(stream=stream) as model:
        completion = await model.complete(request)
        assert completion.text or completion.calls
        assert completion.finish == ("tool_calls" if completion.calls else completion.finish)
        for call in completion.calls:
            assert (call.name, call.id != "") == ("depth", True)
            json.loads(call.arguments)
        given = [Message("tool", '{"metres": 1642}', call_id=call.id) for call in completion.calls]
        turn = Message("assistant", completion.text, completion.calls, replay=completion.replay)
        further = given or [Message("user", "In metres?")]
        answer = await model.complete(replace(request, messages=(*request.messages, turn, *further)))
        assert answer.text or answer.calls


async def test_a_request_that_is_wrong(server: Server) -> None:
    broken = Tool("depth", "", {"type": "object", "properties": {"lake": {"type": "no such type"}}})
    async with server.model() as model:
        with pytest.raises(BadRequestError, match=r"llama\.cpp"):
            await model.complete(replace(said("Hello."), tools=(broken,)))


async def test_a_request_that_is_longer_than_the_model_takes(server: Server) -> None:
    async with server.model() as model:
        with pytest.raises(ContextTooLongError):
            await model.complete(said("word " * 6_000))


async def test_a_key_that_is_wrong() -> None:
    with running(KEY) as guarded:
        async with guarded.model("another-key-altogether") as model:
            with pytest.raises(AuthError, match="LLAMA_API_KEY") as caught:
                await model.complete(said("Hello.", 4))
            assert "another-key" not in str(caught.value)
        async with guarded.model() as model:
            assert (await model.complete(said("Hello.", 4))).usage.output > 0
