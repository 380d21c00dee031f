"""Text as it is stored: Unicode form C, no invisible characters, white space made plain.

Every step takes time in proportion to the text's length, whatever the text.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST_TEXT = 1_000_000  # characters of a page that are kept
_LONGEST_MARKS = 30  # combining marks in a row: the Stream-Safe Text Format's limit (UAX #15)

# Controls (but tab and newline), soft hyphens, zero-width and direction characters, tag characters
# and variation selectors beyond the emoji ones: nothing a reader sees, and a known way to hide orders.
# Zero-width joiner and non-joiner stay: Persian and Indic scripts are spelt with them.
_INVISIBLE = re.compile(
    "[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e01ef]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NEWLINES = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACES = re.compile(r"[^\S\n]+")
_AROUND_NEWLINE = re.compile(r" ?\n ?")
_BLANK_LINES = re.compile(r"\n{3,}")
_MAYBE_MARKS = re.compile(rf"[^\w\s\x00-\u02ff]{{{_LONGEST_MARKS + 1},}}")


def tidy(text: str) -> str:
    """`text` with one space between words and at most one blank line between lines."""
    text = stream_safe(_INVISIBLE.sub("", _SURROGATE.sub("\ufffd", text)))
    text = _SPACES.sub(" ", _NEWLINES.sub("\n", text))
    text = _BLANK_LINES.sub("\n\n", _AROUND_NEWLINE.sub("\n", text)).strip()
    return unicodedata.normalize("NFC", text)


def line(text: str) -> str:
    """`text` on one line, for a title or a name."""
    return " ".join(tidy(text).split())


def shorten(text: str, longest: int = LONGEST_TEXT) -> tuple[str, bool]:
    """At most `longest` characters of `text`, ending between words where there are any; whether it was cut."""
    if len(text) <= longest:
        return text, False
    end = max(text.rfind(" ", longest - 200, longest), text.rfind("\n", longest - 200, longest))
    return text[: end if end > 0 else longest].rstrip(), True


def stream_safe(text: str) -> str:
    """`text` without combining marks past the 30th in a row: normalising takes quadratic time over those."""
    return _MAYBE_MARKS.sub(_fewer_marks, text)


def _fewer_marks(run: re.Match[str]) -> str:
    kept, marks = [], 0
    for char in run[0]:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= _LONGEST_MARKS:
            kept.append(char)
    return "".join(kept)
