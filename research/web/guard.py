"""Which addresses may be dialled: only those that the public internet can route to, unless allowed.

URLs come from search results, pages, redirects, models and users, and each may try to reach what
only this machine can. So the form is strict (one spelling per host: no octal or decimal addresses,
zones, user info), the name is looked up once, every address it has must be permitted, and those
addresses are what the transport dials. Refusals say nothing of what was found.

The table follows the IANA special-purpose registries, as of 2025:
https://www.iana.org/assignments/iana-ipv4-special-registry/ and
https://www.iana.org/assignments/iana-ipv6-special-registry/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from ..errors import UsageError, WebError
from ..network import Addresses, look_up
from .urls import canonical

Network = IPv4Network | IPv6Network

LONGEST_URL = 8_000  # characters; redirects may be longer than what a search result is let in with

_REFUSED_4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private use
        "100.64.0.0/10",  # carriers' shared space; some clouds' metadata
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's platform service: public by number, internal by routing
        "169.254.0.0/16",  # link local, metadata
        "172.16.0.0/12",  # private use
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, deprecated
        "192.168.0.0/16",  # private use
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_GLOBAL_6 = IPv6Network("2000::/3")  # what IANA gives out as global unicast; all else is refused
_TRANSLATED = IPv6Network("64:ff9b::/96")  # NAT64: an IPv4 address in the last 32 bits
_REFUSED_6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID and others
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",  # documentation
    )
)


class RefusedAddress(WebError):
    """The URL or what its name resolves to may not be read. The message is the same for every reason."""

    passing = False

    def __init__(self) -> None:
        super().__init__("the address may not be read; allow_addresses can open ranges of one's own")


def is_public(address: str) -> bool:
    """Whether `address` is one of the public internet; false for what is no address."""
    try:
        number = ip_address(address)
    except ValueError:
        return False
    if isinstance(number, IPv4Address):
        return not any(number in block for block in _REFUSED_4)
    if number.scope_id is not None:
        return False
    if number in _TRANSLATED:
        return is_public(str(IPv4Address(int(number) & 0xFFFFFFFF)))
    return number in _GLOBAL_6 and not any(number in block for block in _REFUSED_6)


@dataclass(frozen=True)
class Policy:
    """`allow` opens ranges that are not public, at any port; public addresses are dialled at `ports` only."""

    allow: tuple[Network, ...] = ()
    ports: frozenset[int] = frozenset({80, 443})

    @classmethod
    def of(cls, ranges: Iterable[str]) -> Policy:
        """The policy that also allows `ranges` ("127.0.0.0/8", "fd00::/8").

        Raises: UsageError for what is no range.
        """
        try:
            return cls(tuple(ip_network(block) for block in ranges))
        except ValueError as error:
            raise UsageError(f"allow_addresses: {error}. Write ranges as 127.0.0.0/8 or fd00::/8") from error

    def permits(self, address: str, port: int) -> bool:
        try:
            number = ip_address(address)
        except ValueError:
            return False
        plain = not (isinstance(number, IPv6Address) and number.scope_id is not None)
        if plain and any(number.version == block.version and number in block for block in self.allow):
            return True
        return port in self.ports and is_public(address)


@dataclass(frozen=True)
class Target:
    """A URL of sound form, taken apart: `url` names the host in ASCII and its one spelling."""

    url: str
    scheme: str
    host: str
    port: int

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{urlsplit(self.url).netloc}"


def target(url: str) -> Target:
    """`url` without fragment, its host in one spelling, the rest as given.

    Raises: RefusedAddress for any other form than http(s)://host[:port][/path][?query].
    """
    if len(url) > LONGEST_URL:
        raise RefusedAddress
    try:
        parts = urlsplit(canonical(url))
        given = urlsplit(url.strip())
        scheme, host = parts.scheme, parts.hostname or ""
        port = parts.port or {"http": 80, "https": 443}.get(scheme)
    except ValueError:
        raise RefusedAddress from None
    if port is None or not host:
        raise RefusedAddress
    whole = given._replace(scheme=scheme, netloc=parts.netloc, path=given.path or "/", fragment="")
    return Target(whole.geturl(), scheme, host, port)


class Guard:
    """Look-ups under a policy: `addresses` is what a transport's client takes."""

    def __init__(self, policy: Policy | None = None, resolve: Addresses = look_up) -> None:
        self.policy = policy or Policy()
        self._resolve = resolve

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of `host`, looked up once, if every one of them may be dialled.

        Raises: RefusedAddress if not; OSError where the name has none.
        """
        found = [host.strip("[]")] if _is_address(host.strip("[]")) else await self._resolve(host, port)
        if not all(self.policy.permits(address, port) for address in found):
            raise RefusedAddress
        return found


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
