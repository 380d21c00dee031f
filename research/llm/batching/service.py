"""What the interfaces have in common: how a batch is created, looked at, and read; and the requests that do so."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from research.errors import MalformedError, ProviderError, UnreachableError, UsageError
from research.llm.connections import Connections
from research.llm.endpoint import Endpoint, authorization
from research.llm.failures import failure
from research.llm.redaction import BLANK, secrets_of
from research.llm.wires import Encoded
from research.llm.wires.base import load, parts, words

if TYPE_CHECKING:
    from research.transport import TransportError

Json = dict[str, Any]
DEADLINE = 60.0  # seconds of a request that carries little
TRANSFER = 1_800.0  # seconds of one that carries a whole batch, or its results
SKEW = 600.0  # seconds by which the provider's clock may be behind ours
PAGES = 20  # of the provider's list of batches that are looked through

EXPIRED, CANCELLED = "expired", "cancelled"
NOT_RUN = "not run"  # by the provider's own counts
MISSING = "missing"  # it may have been run, and be paid for


class Progress(NamedTuple):
    """How far a batch is: the provider's word for it, and requests. `refused`: it was not run at all, and why;
    `outputs`: where results are, once it has `ended`; `late`: some that should be there are not told yet."""

    status: str
    ended: bool
    done: int
    failed: int
    total: int
    refused: Json | None = None
    outputs: tuple[str, ...] = ()
    late: bool = False


class UnusableIdError(MalformedError):
    """A batch was made, but nobody can ask for it by the id that was told."""


class Found(NamedTuple):
    """A batch in the provider's list. `sure`: it is ours by its name or its results; else it might be a stranger's."""

    id: str
    sure: bool


class Reply(NamedTuple):
    """What became of a request: the status and JSON of its response; `gone` where it has none, and why."""

    status: int = 0
    body: Any = None
    gone: str = ""


UNREADABLE = ("", Reply(gone=MISSING))  # what stands for a line that is no result


class Service(Protocol):
    """A provider's batches. `most` requests and `largest` bytes are what one may hold.

    All may raise ProviderError or one of its kinds.
    """

    most: int
    largest: int

    def line(self, name: str, encoded: Encoded) -> bytes:
        """A request as a batch holds it, under a name that its result will carry."""
        ...

    async def create(self, batch: str, lines: list[bytes]) -> str:
        """The provider's id of a new batch, which is ours by the name `batch`."""
        ...

    async def find(self, batch: str, names: Collection[str], since: float, known: Collection[str]) -> Found | None:
        """A batch that was perhaps created after `since` (Unix time), and of which we have not heard;
        it is none of those `known`."""
        ...

    async def look(self, id: str) -> Progress: ...

    def results(self, progress: Progress) -> AsyncGenerator[tuple[str, Reply], None]:
        """Each request's name and reply, in any order; `UNREADABLE` for a line that is none."""
        ...

    async def cancel(self, id: str) -> None: ...


@dataclass
class Talk:
    """Requests to an endpoint's provider, with its key. Connections are made with the first; close it when done."""

    endpoint: Endpoint
    headers: Mapping[str, str] = field(default_factory=dict)
    _connections: Connections = field(default_factory=Connections, init=False, repr=False)

    def __post_init__(self) -> None:
        self._secrets = secrets_of(self.endpoint.key, self.endpoint.base_url)

    async def ask(
        self, method: str, path: str, *, content: bytes | None = None, kind: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> Json:  # fmt: skip
        """The JSON of the reply. Raises: ProviderError or one of its kinds."""
        deadline = DEADLINE if content is None else TRANSFER
        body = b""
        async for piece in self._pieces(method, path, deadline, content, kind, params):
            body += piece
        return self._loaded(body)

    async def listed(
        self, path: str, after: str, created: Callable[[Json], float], since: float
    ) -> AsyncGenerator[Json, None]:
        """The provider's batches, newest first, page by page back to `since`. `after` is the parameter that asks for
        the next page. Raises: as `ask`."""
        more: dict[str, str] = {}
        for _ in range(PAGES):
            page = await self.ask("GET", path, params={"limit": "100", **more})
            batches = parts(page, "data")
            for one in batches:
                yield one
            last = identity(batches[-1]) if batches else ""
            if not last or not page.get("has_more") or created(batches[-1]) < since - SKEW:
                return
            more = {after: last}

    async def lines(self, path: str) -> AsyncGenerator[Json | None, None]:
        """The JSON lines of a file, None for one that is no object. Raises: as `ask`."""
        rest = b""
        async for piece in self._pieces("GET", path, TRANSFER):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                if line.strip():
                    yield self._line(line)
        if rest.strip():
            yield self._line(rest)

    def _line(self, data: bytes) -> Json | None:
        try:
            return self._loaded(data)
        except MalformedError:
            return None

    def _loaded(self, data: bytes) -> Json:
        """With no secret in it: replies are kept on disk."""
        for secret in self._secrets:
            data = data.replace(secret.encode(), BLANK.encode())
        return load(data, self.endpoint.name)

    async def _pieces(
        self, method: str, path: str, deadline: float, content: bytes | None = None, kind: str = "",
        params: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[bytes, None]:  # fmt: skip
        from research.transport import Caps, TransportError

        here = self.endpoint
        headers = {"accept": "*/*", **self.headers, **authorization(here)} | ({"content-type": kind} if content else {})
        caps = Caps(wire=1 << 32, decoded=1 << 33)  # read line by line
        url = here.base_url.rstrip("/") + path
        try:
            async with self._connections.client().stream(
                method, url, deadline=deadline, headers=headers, content=content, params=params, caps=caps
            ) as reply:
                if reply.status >= 300:
                    body = b"".join([piece async for piece in reply.pieces()])[: 1 << 20]
                    key = here.key_name or "its key"
                    raise failure(reply.status, reply.headers, body, here.name, key=key, secrets=self._secrets)
                async for piece in reply.pieces():
                    yield piece
        except TransportError as error:
            raise self._translated(error) from None

    def _translated(self, error: TransportError) -> ProviderError | UsageError:
        from research.transport import BadAddress

        told = f"{self.endpoint.name}: {error}"
        if isinstance(error, BadAddress):
            return UsageError(told)
        failed = UnreachableError(told)
        failed.passing = error.passing
        return failed

    async def aclose(self) -> None:
        await self._connections.aclose()


def identity(value: Json, key: str = "id") -> str:
    """The provider's id in `value`, "" if it is none that an address or a record could hold."""
    id = words(value, key)
    return id if id.isascii() and id.isprintable() else ""


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
