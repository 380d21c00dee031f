"""Recorded talks with providers, played without a network: what we send is what was sent, what came is understood."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from research.limits.rates import Rates
from research.llm.client import ProviderModel
from research.llm.endpoint import Endpoint
from research.llm.providers import PROVIDERS, endpoint
from research.settings import Settings
from tests.live.talks import RECORDINGS, TALKS, tape
from tests.providers import KEY, Provider, whole

FILES = sorted(RECORDINGS.glob("*.yaml"))


async def held(talk: str, at: Endpoint) -> None:
    model = ProviderModel(at, Rates())
    try:
        await TALKS[talk](model)
    finally:
        await model.aclose()
        model.rates.close()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_a_recorded_talk_is_held_again(file: Path, tmp_path: Path) -> None:
    name, _, talk = file.stem.rpartition("-")
    row = PROVIDERS[name]
    with tape(file, record=False):
        await held(talk, endpoint(f"{name}:{row.cheap}", Settings(tmp_path), {row.key_variables[0]: "any-key"}))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recording_is_small_and_holds_no_key(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text) < 100_000
    assert not re.search(r"\bsk-|bearer [^K]|set-cookie", text, re.IGNORECASE)


def replies(body: dict[str, Any]) -> str:
    text = json.dumps(body)
    return '{"city": "Paris", "in_europe": true}' if "France" in text else "One, two, three, four, five."


def tool_turns() -> Iterator[dict[str, Any]]:
    """What a provider says that calls the tool, and then answers."""
    usage = {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}
    call = {"id": "c1", "type": "function", "function": {"name": "depth", "arguments": '{"lake": "Lake Baikal"}'}}
    messages = [
        ({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"),
        ({"role": "assistant", "content": "It is 1,642 metres deep."}, "stop"),
    ]
    for message, finish in messages:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        yield {"id": "c", "object": "chat.completion", "model": "model-1", "choices": [choice], "usage": usage}


@pytest.mark.parametrize("talk", TALKS)
async def test_a_talk_is_recorded_without_the_key_and_plays_when_nobody_is_there(talk: str, tmp_path: Path) -> None:
    file = tmp_path / "loopback.yaml"
    async with Provider(replies) as provider:
        if talk == "tool":
            provider.faults.extend(whole(turn) for turn in tool_turns())
        at = provider.endpoint("openai-chat")
        with tape(file, record=True):
            await held(talk, at)
        asked = len(provider.requests)
    assert asked == (2 if talk == "tool" else 1)
    assert KEY not in file.read_text(encoding="utf-8")
    with tape(file, record=False):
        await held(talk, at)
