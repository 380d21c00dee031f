"""No spelling of an internal address gets through, and no public one is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from research.errors import UsageError
from research.web.guard import Guard, Policy, RefusedAddress, is_public, target

# The registries' blocks that are not globally reachable, and what lies at their edges. Written down from
# iana-ipv4-special-registry, iana-ipv6-special-registry, and the multicast and ipv6-address-space registries.
NOT_GLOBAL = [
    "0.0.0.0/8",
    "0.0.0.0/32",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.0.0/29",
    "192.0.0.8/32",
    "192.0.0.170/32",
    "192.0.0.171/32",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "224.0.0.0/4",
    "192.88.99.0/24",
    "::1/128",
    "::/128",
    "::ffff:0:0/96",
    "::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/23",
    "2001::/32",
    "2001:2::/48",
    "2001:10::/28",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fd00::/8",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "4000::/3",
    "8000::/1",
    "64:ff9b::7f00:0/104",
    "64:ff9b::a00:0/104",
    "64:ff9b::a9fe:0/112",
]
GLOBAL = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.167.255.255",
    "192.169.0.0",
    "192.175.48.1",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001::1",
    "2620:4f:8000::1",
    "2001:200::1",
    "2003::1",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("block", NOT_GLOBAL)
def test_special_blocks_are_not_public(block: str) -> None:
    network = ip_network(block)
    assert not is_public(str(network[0]))
    assert not is_public(str(network[-1]))
    assert not is_public(str(network[network.num_addresses // 2]))


@pytest.mark.parametrize("address", GLOBAL)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


def test_what_is_no_address_is_not_public() -> None:
    for text in ("", "localhost", "fe80::1%eth0", "2606:4700::1%1", "1.2.3", "0x7f000001", "1.1.1.1/32"):
        assert not is_public(text)


INTERNAL = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0x7f.1/",
    "http://0X7F.0X0.0X0.0X1/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://127.0.0.01/",
    "http://127.000.000.001/",
    "http://127.0.0.1./",
    "http://127.0.0.1.:80/",
    "http://127.1./",
    "http://2130706433./",
    "http://１２７.０.０.１/",
    "http://１２７.1/",
    "http://127。0。0。1/",
    "http://127．0．0．1/",
    "http://127｡0｡0｡1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://0/",
    "http://0.0.0.0/",
    "http://0x0/",
    "http://00000/",
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[::1%25lo]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
    "http://[::1]:80/",
    "http://[::1",
    "http://::1/",
    "http://127.0.0.1:80/",
    "http://127.0.0.1:8080/",
    "http://example.org@127.0.0.1/",
    "http://127.0.0.1@example.org/",
    "http://user:pass@127.0.0.1/",
    "http://example.org:80@127.0.0.1/",
    "http://127.0.0.1#@example.org/",
    "http://127.0.0.1?@example.org/",
    "http://127.0.0.1\\@example.org/",
    "http://example.org\\@127.0.0.1/",
    "http:\\\\127.0.0.1\\",
    "http:/127.0.0.1/",
    "http:127.0.0.1/",
    "//127.0.0.1/",
    "///127.0.0.1/",
    "http:///127.0.0.1/",
    " http://127.0.0.1/",
    "http://127.0.0.1 /",
    "http:// 127.0.0.1/",
    "http://127.0.0.1\t/",
    "http://127.0.\n0.1/",
    "http://127.0.0.1%00.example.org/",
    "http://127.0.0.1\x00.example.org/",
    "http://%31%32%37.0.0.1/",
    "http://127%2e0%2e0%2e1/",
    "http://127.0.0.\u00ad1/",
    "http://127.0.0.1\u200b/",
    "http://127\u2024 0.0.1/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://ｌｏｃａｌｈｏｓｔ/",
    "http://loc\u00adalhost/",
    "http://localhost:22/",
    "http://app.localhost/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://3232235777/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://2852039166/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://metadata.google.internal/",
    "http://255.255.255.255/",
    "http://224.0.0.1/",
    "ftp://127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:25/",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun/x",
    "javascript:alert(1)",
    "http://example.org:22/",
    "http://example.org:6379/",
    "http://example.org:0/",
    "http://example.org:99999/",
    "",
    "http://",
    "http://.",
    "http://../",
]
PUBLIC = [
    "http://example.org",
    "http://example.org/",
    "https://example.org:443/a?b=c#d",
    "http://example.org:80/",
    "HTTP://EXAMPLE.ORG/",
    "https://www.example.co.uk/path/",
    "https://example.org./",
    "https://xn--mller-kva.example/",
    "https://müller.example/",
    "https://例え.テスト/",
    "https://BÜCHER.example/",
    "https://sub_domain.example.org/",
    "https://a-b.example.org/",
    "https://1.1.1.1/",
    "https://8.8.8.8:443/",
    "https://[2606:4700:4700::1111]/",
    "https://[2606:4700:4700:0:0:0:0:1111]:443/x",
    "https://example.org/a@b?c=d@e",
    "https://example.org/http://127.0.0.1/",
    "https://example.org/?url=http://127.0.0.1/",
    "https://127.example.org/",
    "https://4chan.example/",
    "https://example.org/%7Euser/a%20b?x=%2F",
]
NAMES = {
    "localhost": ["127.0.0.1", "::1"],
    "app.localhost": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
}


async def _resolve(host: str, port: int) -> Sequence[str]:
    return NAMES.get(host, ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])


async def _dialled(url: str, policy: Policy | None = None) -> Sequence[str]:
    """The addresses that a fetch of `url` would dial."""
    place = target(url)
    return await Guard(policy, _resolve).addresses(place.host, place.port)


def test_there_are_enough_spellings() -> None:
    assert len(set(INTERNAL)) >= 60
    assert len(set(PUBLIC)) >= 20


@pytest.mark.parametrize("url", INTERNAL, ids=ascii)
async def test_internal_addresses_are_refused(url: str) -> None:
    with pytest.raises(RefusedAddress) as refusal:
        await _dialled(url)
    assert str(refusal.value) == str(RefusedAddress())  # one message for all: it tells nothing


@pytest.mark.parametrize("url", PUBLIC, ids=ascii)
async def test_public_addresses_are_not_refused(url: str) -> None:
    assert await _dialled(url)


def test_a_target_keeps_path_and_query_and_drops_the_fragment() -> None:
    place = target("HTTPS://Example.ORG:443/a/../b%7e?utm_source=x&q=1#frag")
    assert place.url == "https://example.org/a/../b%7e?utm_source=x&q=1"
    assert (place.scheme, place.host, place.port) == ("https", "example.org", 443)
    assert target("http://example.org:8080?x").url == "http://example.org:8080/?x"
    assert target("http://[2606:4700::0:1]:8080/").origin == "http://[2606:4700::1]:8080"


@pytest.mark.parametrize(
    "addresses",
    [
        ["10.0.0.5"],
        ["93.184.215.14", "10.0.0.5"],
        ["::ffff:10.0.0.5"],
        ["2606:4700::1", "fd00::1"],
        ["93.184.215.14", "no address"],
        ["fe80::1%2"],
    ],
)
async def test_one_internal_address_refuses_the_name(addresses: list[str]) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    with pytest.raises(RefusedAddress):
        await Guard(resolve=resolve).addresses("mixed.example", 443)


async def test_a_name_is_looked_up_once_and_an_address_never() -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["93.184.215.14"] if len(asked) == 1 else ["127.0.0.1"]

    guard = Guard(resolve=resolve)
    assert await guard.addresses("rebinding.example", 80) == ["93.184.215.14"]
    assert await guard.addresses("1.1.1.1", 80) == ["1.1.1.1"]
    assert asked == ["rebinding.example"]
    with pytest.raises(RefusedAddress):
        await guard.addresses("rebinding.example", 80)


async def test_ranges_can_be_allowed() -> None:
    policy = Policy.of(["127.0.0.0/8", "fd00::/8"])
    assert await _dialled("http://127.0.0.1:8080/", policy) == ["127.0.0.1"]
    assert await _dialled("http://[fd00::1]:9000/", policy) == ["fd00::1"]
    assert await _dialled("http://1.1.1.1/", policy) == ["1.1.1.1"]
    for url in ("http://10.0.0.1/", "http://[::1]/", "http://localhost/", "http://1.1.1.1:8080/"):
        with pytest.raises(RefusedAddress):  # localhost is ::1 as well, which is not allowed
            await _dialled(url, policy)


@pytest.mark.parametrize("block", ["", "localhost", "127.0.0.1/8", "300.0.0.0/8", "10.0.0.0/33"])
def test_what_is_no_range_is_a_usage_error(block: str) -> None:
    with pytest.raises(UsageError, match=r"allow_addresses"):
        Policy.of([block])


async def test_a_refusal_does_not_pass_with_time() -> None:
    assert RefusedAddress.passing is False
    with pytest.raises(RefusedAddress):
        async with asyncio.timeout(1):
            await _dialled("http://127.0.0.1/")
