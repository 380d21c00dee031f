"""The SDK's server, on stdin and stdout. It is imported when it runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ..errors import UsageError
from .lines import Lines
from .session import Serving
from .wording import SCHEMAS, description, instructions, schema


async def serve(serving: Serving) -> None:
    """Serve on stdin and stdout until the client leaves. Nothing else reaches stdout meanwhile.

    Raises: UsageError where the SDK is not installed.
    """
    try:
        from mcp.server.stdio import stdio_server
    except ImportError:
        from ..mcp.server import MISSING

        raise UsageError(f"research mcp: {MISSING}") from None
    server = served(serving)
    try:
        async with _lines() as lines, stdio_server(stdin=lines) as (reading, writing):
            if lines is not None:
                lines.answers = writing
            await server.run(reading, writing, server.create_initialization_options())
    except BaseExceptionGroup as faults:
        _unless_stopped(faults)


def _unless_stopped(faults: BaseExceptionGroup[BaseException]) -> None:
    """While the session is stopped, the SDK's own streams break under calls that end: that is the stop, and no fault.

    Raises: CancelledError for it; else `faults`.
    """
    import anyio

    task = asyncio.current_task()
    ends = (asyncio.CancelledError, anyio.BrokenResourceError, anyio.ClosedResourceError)
    if task is not None and task.cancelling() and faults.split(ends)[1] is None:
        raise asyncio.CancelledError from None
    raise faults


@asynccontextmanager
async def _lines() -> AsyncIterator[Any]:
    """The lines of stdin; None where it is a file. The SDK reads it in a thread that no signal ends."""
    reader = asyncio.StreamReader()
    try:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
    except ValueError:
        yield None
        return
    try:
        yield Lines(reader)
    finally:
        transport.close()


def served(serving: Serving) -> Any:
    """The SDK's server of these tools."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    from .. import __version__

    hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=True)
    tools = [
        types.Tool(name=name, description=description(name), input_schema=schema(name), annotations=hints)
        for name in SCHEMAS
    ]

    async def listed(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def called(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        told = await serving.call(params.name, params.arguments or {})
        content: list[Any] = [types.TextContent(text=told.text)]
        return types.CallToolResult(content=content, structured_content=told.data, is_error=told.failed)

    return Server(
        "research", version=__version__, instructions=instructions(), on_list_tools=listed,
        on_call_tool=called,
    )  # fmt: skip
