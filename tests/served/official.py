"""A server of one tool, by the SDK."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("official")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def height(city: str) -> str:
    """How tall the tower of a city's minster is."""
    return f"The tower of {city} minster is 161.53 metres tall."


if __name__ == "__main__":
    server.run("stdio")
