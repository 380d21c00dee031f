"""The dialects that providers speak, as pure translations: no sockets, no clocks, no keys."""

from __future__ import annotations

from collections.abc import Mapping

from research.llm.wires import anthropic, openai_chat, openai_responses
from research.llm.wires.base import Dialect, Encoded, Stream, Wire

__all__ = ["WIRES", "Dialect", "Encoded", "Stream", "Wire"]

WIRES: Mapping[str, Wire] = {
    "anthropic": anthropic,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
}
