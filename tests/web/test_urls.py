"""One spelling per address. The expected forms are worked out from RFC 3986 and UTS 46, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.web.urls import canonical, is_fetchable, site

SPELLINGS = [
    ("HTTP://Example.ORG", "http://example.org/"),
    ("http://example.org:80/a", "http://example.org/a"),
    ("https://example.org:443/a", "https://example.org/a"),
    ("https://example.org:80/a", "https://example.org:80/a"),
    ("http://example.org:/a", "http://example.org/a"),
    ("http://example.org./a", "http://example.org/a"),
    ("  http://example.org/a ", "http://example.org/a"),
    ("http://example.org/a#part", "http://example.org/a"),
    ("http://example.org/a?", "http://example.org/a"),
    ("http://example.org/./a/../b/%2e%2E/c/.", "http://example.org/c/"),
    ("http://example.org/../..", "http://example.org/"),
    ("http://example.org/a//b/", "http://example.org/a//b/"),
    ("http://example.org/%7Euser/%e4%bd%a0%2f", "http://example.org/~user/%E4%BD%A0%2F"),
    ("http://example.org/你 b", "http://example.org/%E4%BD%A0%20b"),
    ("http://example.org/100%/%zz", "http://example.org/100%25/%25zz"),
    ("http://example.org/(a);b=1,c'!$*+@:", "http://example.org/(a);b=1,c'!$*+@:"),
    ("http://example.org/?q=a+b%20c%26d&e[]=|", "http://example.org/?q=a+b%20c%26d&e[]=%7C"),
    ("http://Bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://faß.example/", "http://xn--fa-hia.example/"),
    ("http://example。org/", "http://example.org/"),
    ("http://１２７.0.0.1/", "http://127.0.0.1/"),
    ("http://[2001:DB8:0::1]:80/", "http://[2001:db8::1]/"),
    ("http://[2001:db8::1]:8080/", "http://[2001:db8::1]:8080/"),
    ("FILE:///srv/a%20b/../c.html#x", "file:///srv/c.html"),
    ("file://localhost/srv/what%3F.md", "file:///srv/what%3F.md"),
]


@pytest.mark.parametrize(("url", "expected"), SPELLINGS)
def test_equal_addresses_have_one_spelling(url: str, expected: str) -> None:
    assert canonical(url) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("utm_source=x&utm_medium=y", ""),
        ("id=7&UTM_Campaign=x&fbclid=abc&page=2", "?id=7&page=2"),
        ("utm%5Fsource=x&gclid", ""),
        ("b=2&a=1&b=1", "?b=2&a=1&b=1"),
        ("ref=main&source=rss&campaign=3&s=1&id=&gclids=1", "?ref=main&source=rss&campaign=3&s=1&id=&gclids=1"),
        ("u=http%3A%2F%2Fx.example%2F%3Futm_source%3Da", "?u=http%3A%2F%2Fx.example%2F%3Futm_source%3Da"),
    ],
)
def test_only_parameters_that_mean_nothing_go(query: str, expected: str) -> None:
    assert canonical(f"https://example.org/p?{query}") == f"https://example.org/p{expected}"


REFUSED = [
    "",
    "example.org/a",
    "/a",
    "//example.org/a",
    "javascript:alert(1)",
    "data:text/html,x",
    "ftp://example.org/",
    "mailto:a@example.org",
    "http:example.org",
    "http:///a",
    "http://",
    "http://user@example.org/",
    "http://user:secret@example.org/",
    "http://example.org\\@127.0.0.1/",
    "http:\\\\example.org/",
    "http://exa mple.org/",
    "http://example.org:0/",
    "http://example.org:99999/",
    "http://example.org:８０/",
    "http://example.org:80a/",
    "http://exam%70le.org/",
    "http://example..org/",
    "http://127.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://[::1%25eth0]/",
    "http://[v1.fe]/",
    "http://[::1/",
    "http://[::1]x/",
    "http://a[::1]/",
    "http://" + "a" * 64 + ".example/",
    "http://example.org/a\nb",
    "http://example.org/\x00",
    "http://example.org/\x85",
    "http://example.org/\u2028",
    "http://example.org/\ud800",
]


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_no_sound_web_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical(url)
    assert not is_fetchable(url)
    assert site(url) == ""


@pytest.mark.parametrize("url", [None, 7, b"http://example.org/", ["http://example.org/"], "http://example.org/ "])
def test_only_clean_text_is_fetchable(url: object) -> None:
    assert not is_fetchable(url)


def test_files_and_overlong_urls_are_not_fetchable() -> None:
    assert not is_fetchable("file:///etc/passwd")
    assert is_fetchable("http://example.org/" + "a" * 1_981)
    assert not is_fetchable("http://example.org/" + "a" * 1_982)
    assert not is_fetchable("http://example.org/" + "a" * 10_000)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://www.Example.org:8080/a", "example.org"),
        ("https://www.com/", "www.com"),
        ("https://news.example.org/", "news.example.org"),
        ("http://[::1]:8/", "::1"),
        ("file:///srv/a", ""),
    ],
)
def test_a_site_is_its_host(url: str, expected: str) -> None:
    assert site(url) == expected


@given(st.text(st.sampled_from("ab/.%2eEfF?&=#;:@[]ä你~ +'\"<|"), max_size=40))
def test_a_canonical_url_is_canonical(rest: str) -> None:
    try:
        once = canonical(f"http://example.org/{rest}")
    except ValueError:
        return
    assert canonical(once) == once
    assert once.isascii()
    assert "#" not in once
