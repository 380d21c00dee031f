"""URLs: one spelling for each address, and which ones may be fetched at all.

RFC 3986 (section 6.2, normalisation that changes no meaning) and UTS 46 for host names.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import TypeGuard
from urllib.parse import quote, urlsplit

LONGEST_URL = 2_000  # characters

# Added by whoever links to a page, to count readers; no server chooses content by them.
_TRACKING = {
    "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "srsltid", "fbclid", "msclkid", "yclid", "ysclid", "twclid",
    "ttclid", "li_fat_id", "igsh", "igshid", "epik", "mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi",
    "hsctatracking", "mkt_tok", "oly_enc_id", "oly_anon_id", "vero_id", "vero_conv", "rb_clickid", "wickedid",
    "guccounter", "guce_referrer", "guce_referrer_sig", "__twitter_impression", "pk_campaign", "pk_kwd", "pk_source",
    "pk_medium", "pk_content", "mtm_campaign", "mtm_keyword", "mtm_kwd", "mtm_source", "mtm_medium", "mtm_content",
    "mtm_cid", "mtm_group", "mtm_placement",
}  # fmt: skip
_PORTS = {"http": 80, "https": 443}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\\]|[\u2028\u2029\ud800-\udfff]")  # apart, so that it compiles fast
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\Z")
_BRACKETED = re.compile(r"\[[0-9A-Fa-f:.]+\](:\d*)?\Z", re.ASCII)
_NUMBER = re.compile(r"(\d+|0x[0-9a-f]*)\Z")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")


@functools.lru_cache(maxsize=1_000)
def canonical(url: str) -> str:
    """The one spelling of an http, https or file URL, so that equal addresses compare equal.

    Lower case scheme and host (in its ASCII form), no default port, fragment or tracking
    parameters, `/./` and `/../` resolved, percent-encoding in one form. Parameters that
    may mean something stay, in their order.

    >>> canonical("HTTP://Example.ORG:80/a/../b?utm_source=x&id=2#top")
    'http://example.org/b?id=2'

    Raises: ValueError for anything else: relative, another scheme, user info, control
    characters, backslashes, a host that is no name or address.
    """
    if _CONTROL.search(url):
        raise ValueError("the URL holds control characters or backslashes")
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https", "file"):
        raise ValueError("the URL is not absolute, or neither http, https nor file")
    if "@" in parts.netloc:
        raise ValueError("the URL holds a user name or password")
    path = _resolved(_escaped(parts.path, "/!$&'()*+,;=:@[]") or "/")
    if parts.scheme == "file":
        return _file_url(parts.netloc, path)
    host, port = _host(parts.netloc, parts.hostname or ""), parts.port
    if port == 0:
        raise ValueError("the URL names port 0")
    place = host if port in (None, _PORTS[parts.scheme]) else f"{host}:{port}"
    query = _without_tracking(_escaped(parts.query, "/?!$&'()*+,;=:@[]"))
    return f"{parts.scheme}://{place}{path}" + (f"?{query}" if query else "")


def is_fetchable(url: object) -> TypeGuard[str]:
    """Whether this is an absolute http(s) URL of sound form and at most 2,000 characters.

    Form only: whether its address may be reached is for the fetcher to decide, after
    name resolution.
    """
    if not isinstance(url, str) or len(url) > LONGEST_URL or url != url.strip():
        return False
    try:
        return canonical(url).startswith("http")
    except ValueError:
        return False


def site(url: str) -> str:
    """The host without `www.`, for names and caps per site; empty for files and broken URLs.

    >>> site("https://www.example.org:8080/a")
    'example.org'
    """
    try:
        host = urlsplit(canonical(url)).hostname or ""
    except ValueError:
        return ""
    shorter = host.removeprefix("www.")
    return shorter if "." in shorter else host


def _host(netloc: str, name: str) -> str:
    """A host name in ASCII, or an address in its usual form (IPv6 in brackets)."""
    if "[" in netloc:
        if not _BRACKETED.match(netloc):
            raise ValueError("the URL's host is no valid address")
        return f"[{ipaddress.IPv6Address(name).compressed}]"
    if not name.isascii():
        import idna

        name = idna.encode(name, uts46=True).decode("ascii")
    name = name.removesuffix(".")
    if not _NAME.match(name):
        raise ValueError("the URL's host is no valid name")
    if _NUMBER.match(name.rpartition(".")[2]):  # as in browsers, what ends in a number is an address
        return str(ipaddress.IPv4Address(name))
    return name


def _file_url(host: str, path: str) -> str:
    if host not in ("", "localhost") or not path.startswith("/"):
        raise ValueError("the file URL has no absolute path, or names another machine")
    return f"file://{path}"


def _escaped(text: str, keep: str) -> str:
    """`text` with escapes of unreserved characters undone, the others in upper case, and what must be escaped so."""
    return quote(_ESCAPE.sub(_escape, text), safe=keep + "%")


def _escape(match: re.Match[str]) -> str:
    digits = match[1]
    if digits is None:  # a percent sign that stands for itself
        return "%25"
    char = chr(int(digits, 16))
    return char if char.isascii() and (char.isalnum() or char in "-._~") else f"%{digits.upper()}"


def _resolved(path: str) -> str:
    """The path without `.` and `..` segments (RFC 3986, 5.2.4)."""
    segments = path.split("/")
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[max(1, len(kept) - 1) :]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


def _without_tracking(query: str) -> str:
    return "&".join(part for part in query.split("&") if not _tracks(part.partition("=")[0].lower()))


def _tracks(name: str) -> bool:
    return name in _TRACKING or (name.startswith("utm_") and name[4:].replace("_", "x").isalnum())
