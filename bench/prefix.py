"""What a provider's prompt cache could serve of an investigation: `python -m bench.prefix`.

A scripted investigation of 20 turns is sent over each wire. Of every request after the
first, the part that the request before it began with, byte for byte in the order in which
providers read it (tools, system prompt, turns), is what a prefix cache could serve. What
is printed is its share of all input. Where the history is shortened, the prefix ends with
the system prompt; that is printed for a small window too.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research.llm.messages import Request
from research.llm.wires import WIRES, Dialect

TURNS = 20
WINDOWS = (60_000, 3_000)  # tokens of history, beyond which it is shortened


def prompt(request: Request, wire: str, dialect: Dialect) -> list[bytes]:
    """What a cache sees of a request: tools and system prompt, then block after block, without marks of the cache.

    A text that is marked goes as a list of one in Chat Completions; a cache sees the text.
    """
    body = json.loads(json.dumps(WIRES[wire].encode(request, "model", stream=True, dialect=dialect).body))
    turns = body.get("messages") or body["input"]
    head = [body.get("tools"), body.get("system"), body.get("instructions")]
    return [json.dumps(part, ensure_ascii=False).encode() for part in (_bare(head), *_blocks(turns))]


def _blocks(turns: Sequence[dict[str, Any]]) -> list[Any]:
    """The blocks of each turn, so that a turn to which one is added begins as it was."""
    blocks: list[Any] = []
    for turn in map(_bare, turns):
        content = turn.get("content")
        blocks += [{**turn, "content": block} for block in content] if isinstance(content, list) else [turn]
    return blocks


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        bare = {key: _bare(one) for key, one in value.items() if key != "cache_control"}
        content = bare.get("content")
        if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
            bare["content"] = content[0]["text"]
        return bare
    return [_bare(one) for one in value] if isinstance(value, list) else value


def shared(before: Sequence[bytes], after: Sequence[bytes]) -> int:
    """The bytes with which both begin."""
    first, second = b"".join(before), b"".join(after)
    if second.startswith(first):
        return len(first)
    return next(place for place, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1])


def share(prompts: Sequence[Sequence[bytes]]) -> float:
    """The share of all input that the requests before could have left in a cache."""
    served = sum(shared(before, after) for before, after in itertools.pairwise(prompts))
    return served / sum(len(part) for parts in prompts for part in parts)


async def requests(folder: Path, window: int) -> list[Request]:
    """The requests of a whole investigation."""
    from tests.loops import Loops, long_turn

    loops = Loops(folder)
    changes = ["searches = 30", "pages = 30", f"window = {window}"]
    await loops.run([long_turn(number, TURNS) for number in range(TURNS)], changes, TURNS + 2)
    return loops.requests


def main() -> None:
    dialects = {"plain": Dialect(), "marked": Dialect(cache_markers=True)}
    for window in WINDOWS:
        with tempfile.TemporaryDirectory() as folder:
            sent = asyncio.run(requests(Path(folder), window))
        for wire in WIRES:
            for name, dialect in dialects.items():
                prompts = [prompt(request, wire, dialect) for request in sent]
                pairs = itertools.pairwise(prompts)
                whole = sum(after[: len(before)] == before for before, after in pairs)
                size = sum(len(part) for parts in prompts for part in parts)
                print(
                    f"window {window:>6,}  {wire:<16} {name:<7} {len(sent)} requests, {size:,} bytes of input: "
                    f"{whole} of {len(sent) - 1} extend the one before; a cache could serve {share(prompts):.1%}"
                )


if __name__ == "__main__":
    os.environ.setdefault("HOME", tempfile.gettempdir())
    main()
