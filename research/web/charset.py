"""From bytes to characters: byte order mark, header, declaration in the page, detection, in that order.

Names and their meanings are those of the WHATWG Encoding standard: what calls itself
iso-8859-1 is read as windows-1252, gb2312 as gb18030, and so on.
"""

from __future__ import annotations

import codecs
import re

from .media import wide_encoding

_PRESCAN = 8192  # bytes in which a declaration is looked for; the standard says 1,024, and pages disobey
_DETECTED = 200_000  # bytes that detection sees
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"<meta\b[^>]{0,400}?\bcharset\s*=\s*[\"']?\s*([\w:.+-]+)", re.IGNORECASE)
_XML = re.compile(rb"\A\s*<\?xml\b[^>]{0,200}?\bencoding\s*=\s*[\"']\s*([\w:.+-]+)", re.IGNORECASE)
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([\w:.+-]+)", re.IGNORECASE)

# Label → (name shown, Python's codec), where Python's own table differs from the standard.
_LABELS = {
    **dict.fromkeys(
        ("ascii", "us-ascii", "iso-8859-1", "iso8859-1", "latin1", "latin-1", "l1", "x-user-defined"),
        ("windows-1252", "cp1252"),
    ),
    **dict.fromkeys(("gb2312", "gbk", "gb_2312-80", "x-gbk"), ("gb18030", "gb18030")),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j"), ("shift_jis", "cp932")),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "ksc5601", "windows-949", "uhc"), ("euc-kr", "cp949")),
    **dict.fromkeys(("iso-8859-9", "latin5"), ("windows-1254", "cp1254")),
    **dict.fromkeys(("tis-620", "iso-8859-11", "windows-874"), ("windows-874", "cp874")),
    **dict.fromkeys(("big5", "big5-hkscs", "x-x-big5"), ("big5", "big5hkscs")),
    **dict.fromkeys(("x-mac-cyrillic", "maccyrillic"), ("x-mac-cyrillic", "mac_cyrillic")),
    # Who can read a declaration of these as ASCII has refuted it.
    **dict.fromkeys(("utf-16", "utf-16le", "utf-16be", "utf-16-le", "utf-16-be", "unicode"), ("utf-8", "utf-8")),
    **dict.fromkeys(("utf-32", "utf-32le", "utf-32be", "utf-7"), ("utf-8", "utf-8")),
}
_MISTAKEN = frozenset({"ibm852", "ibm855", "mac-centraleurope"})  # detected in short western text, and used by no page
_SHOWN = {"cp1251": "windows-1251", "cp1252": "windows-1252", "utf-8-sig": "utf-8"}


def decode(body: bytes, content_type: str = "") -> tuple[str, str]:
    """The text of `body`, and what was used with who said so: "windows-1251 (meta)".

    A declaration is believed unless the bytes refute it: then the next source decides.
    Never fails; what can't be decoded becomes U+FFFD.
    """
    wide, origin = wide_encoding(body[:64])
    if wide:
        return body.decode(wide, "replace").removeprefix("\ufeff"), f"{wide} ({origin})"
    if body.startswith(codecs.BOM_UTF8):
        return body[3:].decode("utf-8", "replace"), "utf-8 (byte order mark)"
    utf8 = _valid_utf8(body)
    for origin, label in _declared(body, content_type):
        name, codec = _look_up(label)
        if codec and (text := _decoded(body, codec, utf8)) is not None:
            return text, f"{name} ({origin})"
    return _detected(body, utf8)


def _declared(body: bytes, content_type: str) -> list[tuple[str, str]]:
    found = []
    if header := _HEADER.search(content_type):
        found.append(("header", header[1]))
    head = _COMMENT.sub(b"", body[:_PRESCAN])
    if declared := _XML.search(head) or _META.search(head):
        found.append(("meta", declared[1].decode("ascii", "replace")))
    return found


def _look_up(label: str) -> tuple[str, str]:
    """The name to show and Python's codec; ("", "") for a label that names no text encoding."""
    label = label.strip().lower()
    if label in _LABELS:
        return _LABELS[label]
    try:
        info = codecs.lookup(label)
    except (LookupError, ValueError):
        return "", ""
    if not info._is_text_encoding or info.name in ("idna", "punycode", "raw_unicode_escape", "unicode_escape"):
        return "", ""
    return _SHOWN.get(info.name, label if label != "utf8" else "utf-8"), info.name


def _valid_utf8(body: bytes) -> str | None:
    """The text where `body` is UTF-8 and not plain ASCII; a character cut off at the end is forgiven."""
    if body.isascii():
        return None
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return None


def _decoded(body: bytes, codec: str, utf8: str | None) -> str | None:
    """The text under a declared codec, None where the bytes refute it.

    Text beyond ASCII that is valid UTF-8 is UTF-8, whatever was declared: other encodings
    give such sequences by chance once in many thousand pages.
    """
    if utf8 is not None:
        return utf8 if codec == "utf-8" else None
    try:
        text = body.decode(codec, "replace")
    except (LookupError, UnicodeError):
        return None
    bad = text.count("\ufffd")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return text if 10 * bad <= beyond_ascii else None


def _detected(body: bytes, utf8: str | None) -> tuple[str, str]:
    if utf8 is not None or body.isascii():
        return utf8 if utf8 is not None else body.decode("ascii"), "utf-8 (detected)"
    import cchardet

    guess = str(cchardet.detect(body[:_DETECTED])["encoding"] or "")
    name, codec = _look_up("" if guess.lower() in _MISTAKEN else guess)
    if codec and (text := _decoded(body, codec, None)) is not None:
        return text, f"{name} (detected)"
    return body.decode("cp1252", "replace"), "windows-1252 (assumed)"
