"""The lines of a client, of which those that are no message are answered here: the SDK drops them without a word."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

LONGEST = 1 << 20  # bytes of a request
CHUNK = 1 << 16  # bytes
TAIL = 400  # bytes kept of the end of a line that is too long
TOO_LONG = "Parse error: the message is longer than 1 MB"
UNREAD = "Parse error: this is no JSON, holds half of a surrogate pair, or is nested too deeply"
UNFIT = "Invalid Request: this is no message of JSON-RPC 2.0"

# Where the SDKs write a request's id: behind its protocol and method, or at its end.
_ID = r'"id"\s*:\s*(?P<id>-?\d{1,18}|"[^"\\]{0,100}")\s*'
_FIRST = re.compile(rf'\s*\{{(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]{{0,100}}"\s*,)*+\s*{_ID}[,}}]')
_LAST = re.compile(rf'[,{{]\s*{_ID}(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}}\s*\Z')


class Lines:
    """The lines of `reader` that are messages; the others are answered with an error on `answers`, a session's stream.

    Both wait for nobody but the other end, and hold no more than a line.
    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.answers: Any = None

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line, length in self._cut():
            text = line.decode(errors="replace")
            reason = TOO_LONG if length > LONGEST else _wrong(text)
            if reason is None:
                yield text
            elif text.strip():
                await self._refuse(text, reason)

    async def _cut(self) -> AsyncIterator[tuple[bytes, int]]:
        """Each line, and its length; of one that is too long the beginning and the end."""
        held, length = bytearray(), 0
        while chunk := await self._reader.read(CHUNK):
            for place, part in enumerate(chunk.split(b"\n")):
                if place:
                    yield bytes(held), length
                    held, length = bytearray(), 0
                held += part
                length += len(part)
                if len(held) > LONGEST:
                    del held[LONGEST - TAIL : len(held) - TAIL]
        yield bytes(held), length

    async def _refuse(self, text: str, reason: str) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError

        code = INVALID_REQUEST if reason is UNFIT else PARSE_ERROR
        error = JSONRPCError(jsonrpc="2.0", id=asked(text), error=ErrorData(code=code, message=reason))
        try:
            await self.answers.send(SessionMessage(error))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the client has left


def _wrong(text: str) -> str | None:
    """Why a line is no message, if it is none."""
    from mcp_types import jsonrpc_message_adapter
    from pydantic import ValidationError

    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        return UNREAD if error.errors(include_url=False, include_input=False)[0]["type"] == "json_invalid" else UNFIT
    return None


def asked(text: str) -> int | str | None:
    """The id of the request that `text` was to be, as far as that can be told."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        found = _FIRST.match(text) or _LAST.search(text, max(0, len(text) - TAIL))
        value = {"id": json.loads(found["id"])} if found else None
    known = value.get("id") if isinstance(value, dict) else None
    if isinstance(known, bool) or (isinstance(known, str) and not known.isprintable()):
        return None
    return known if isinstance(known, int | str) else None
