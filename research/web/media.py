"""What a body is, by its bytes. Standard library only: the fetcher asks before it reads on.

The signatures are those of the WHATWG MIME Sniffing standard, and of the archive and
office formats that search results lead to.
"""

from __future__ import annotations

import re

HEAD = 4096  # bytes that decide

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF8", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\0\0\1\0", "image/x-icon"),
    (b"RIFF", "application/x-riff"),
    (b"OggS", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"PK\3\4", "application/zip"),
    (b"PK\5\6", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"{\\rtf", "application/rtf"),
    (b"%!PS", "application/postscript"),
    (b"\x7fELF", "application/x-executable"),
    (b"\0asm", "application/wasm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
)
_PRINTABLE_TOO = frozenset({b"BM", b"ID3", b"BZh", b"RIFF", b"GIF8", b"wOFF", b"wOF2", b"OggS"})
_WIDE_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_WIDE_ZEROS = (  # which of four bytes are zero in ASCII text without a mark
    ("utf-32-le", (False, True, True, True)),
    ("utf-32-be", (True, True, True, False)),
    ("utf-16-le", (False, True, False, True)),
    ("utf-16-be", (True, False, True, False)),
)
_CONTROLS = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")  # no text encoding but UTF-16 and UTF-32 uses them
_MOST_CONTROLS = 0.02  # of a text's bytes; compressed data has 0.1


def sniff(head: bytes) -> str:
    """The media type of what is no text, by its first `HEAD` bytes; "" where it may be text.

    >>> sniff(b"%PDF-1.7 ..."), sniff(b"<p>Hello"), sniff(bytes(range(256)))
    ('application/pdf', '', 'application/octet-stream')
    """
    head = head[:HEAD]
    if _is_pdf(head):
        return "application/pdf"
    for signature, media_type in _SIGNATURES:
        if head.startswith(signature) and (signature not in _PRINTABLE_TOO or _is_binary(head)):
            return media_type
    if head[4:8] == b"ftyp":
        return "video/mp4"
    return "application/octet-stream" if _is_binary(head) else ""


def wide_encoding(head: bytes) -> tuple[str, str]:
    """The codec of UTF-16 or UTF-32 text and what tells it; ("", "") for anything else.

    >>> wide_encoding("Hello".encode("utf-16-be"))
    ('utf-16-be', 'detected')
    """
    for mark, codec in _WIDE_MARKS:
        if head.startswith(mark):
            return codec, "byte order mark"
    start = head[:64]
    for codec, zeros in _WIDE_ZEROS:
        if len(start) >= 4 and all(_fits(byte, zeros[place % 4]) for place, byte in enumerate(start)):
            return codec, "detected"
    return "", ""


def _fits(byte: int, zero: bool) -> bool:
    """Whether a byte is zero where it should be, and printable ASCII elsewhere."""
    return byte == 0 if zero else 9 <= byte < 127


def _is_pdf(head: bytes) -> bool:
    """The mark may stand anywhere in the first 1,024 bytes (PDF 1.7, implementation note 13), but not in a page."""
    found = head[:1024].find(b"%PDF-")
    return found == 0 or (found > 0 and b"<" not in head[:found] and (found < 16 or _is_binary(head)))


def _is_binary(head: bytes) -> bool:
    if wide_encoding(head)[0]:
        return False
    return len(_CONTROLS.findall(head)) > _MOST_CONTROLS * len(head)
