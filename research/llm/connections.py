"""Connections to providers, which are made when they are first needed: their libraries take a while to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from research.transport import Client


class Connections:
    """Close them when done; they are made again if they are needed again."""

    def __init__(self) -> None:
        self._client: Client | None = None

    def client(self) -> Client:
        if self._client is None:
            from research.transport import Client

            self._client = Client()
        return self._client

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None
