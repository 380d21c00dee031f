"""Text of strangers, encoded for where it goes: a terminal, Markdown, CSV, JSON. HTML is escaped by its templates.

Whatever is printed or written passes through here once, at the end. Each function takes
plain text and gives text that its reader shows and does not obey.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

_LINE_ENDS = r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"  # as others that stay text: compiled at first use
_JOINERS = "\u200c\u200d"  # Persian, Indic scripts and emoji need them
_ESC = "\x1b"


class Shown(dict[int, str]):
    """Character → what is shown of it, made at first use; for `str.translate`."""

    kept = "\n\t" + _JOINERS

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = shown = "\ufffd" if "\ud800" <= char <= "\udfff" else "" if self.hides(char) else char
        return shown

    def hides(self, char: str) -> bool:
        return char not in self.kept and unicodedata.category(char) in ("Cc", "Cf")


_SHOWN = Shown()


def in_lines(text: str) -> str:
    """`text` with every kind of line end as a newline."""
    return re.sub(_LINE_ENDS, "\n", text)


def clean(text: str) -> str:
    """`text` for a terminal: of control characters only newline and tab, nothing that reorders text.

    Escape sequences lose their escape character and show as what they are. The result can
    be encoded in UTF-8.
    """
    return text if text.isprintable() else in_lines(text).translate(_SHOWN)


def on_one_line(text: str) -> str:
    """`text` for a terminal, without line breaks."""
    return " ".join(clean(text).split())


# Markdown ---------------------------------------------------------------------------------

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~$&!^]")  # of CommonMark, tables, strikethrough and formulas
# Addresses that some reader makes links of by itself, whatever is escaped in them: only code is left alone.
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]{1,20}:/|www\.|mailto:)\S*|[^\s@]{1,64}@[^\s@]\S*", re.IGNORECASE)
_LEADING = r"([-+=:])|(\d{1,9})(?=[.)](?:\s|$))"


def markdown(text: str) -> str:
    """`text` on one line of Markdown, shown letter by letter: no markup, no link, no image, no list."""
    escaped = markdown_within(on_one_line(text))
    leading = re.match(_LEADING, escaped)
    if leading is None:
        return escaped
    return f"{leading[2]}\\{escaped[leading.end() :]}" if leading[2] else f"\\{escaped}"


def markdown_within(text: str) -> str:
    """The same for text that begins no line; its spaces stay."""
    plain = clean(text).replace("\n", " ")
    made, place = [], 0
    for address in _ADDRESS.finditer(plain):
        made += [_MARKUP.sub(r"\\\g<0>", plain[place : address.start()]), markdown_span(address[0])]
        place = address.end()
    return "".join([*made, _MARKUP.sub(r"\\\g<0>", plain[place:])])


def markdown_code(text: str) -> str:
    """`text` as a code block that nothing in it can end."""
    body = clean(text).strip("\n")
    ticks = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{fence}\n{body}\n{fence}"


def markdown_span(text: str) -> str:
    """`text` as inline code that nothing in it can end."""
    body = on_one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", body)), default=0))
    space = " " if body[:1] in ("`", " ", "") or body[-1:] in ("`", " ") else ""
    return f"{fence}{space}{body}{space}{fence}"


def markdown_link(url: str) -> str:
    """A page's address as an autolink; as plain text where it is no web address."""
    address = web_address(url)
    return f"<{address}>" if address else markdown(url)


# Addresses --------------------------------------------------------------------------------


def web_address(url: str) -> str:
    """An http(s) address in ASCII without anything that could end it where it is written; "" for what is none."""
    from urllib.parse import quote, urlsplit

    try:
        parts = urlsplit(clean(url).strip())
        host = parts.hostname
    except ValueError:
        return ""
    if parts.scheme.lower() not in ("http", "https") or not host or "@" in parts.netloc:
        return ""
    # `'` and brackets of every kind are escaped too: no reader of links agrees with another about them.
    rest = quote(parts.geturl().partition("://")[2], safe="/?#&=%:;,.+-_~@!$*")
    return f"{parts.scheme.lower()}://{rest}"


FRAGMENT_WORDS = 6  # at either end of a long quote


def at_quote(url: str, quote: str) -> str:
    """The address that opens a page at a quote (URL Fragment Text Directives, WICG); "" where `url` is none."""
    address = web_address(url)
    words = on_one_line(quote).split()
    if not address or not words:
        return address
    if len(words) <= 2 * FRAGMENT_WORDS:
        directive = _encoded(words)
    else:
        directive = f"{_encoded(words[:FRAGMENT_WORDS])},{_encoded(words[-FRAGMENT_WORDS:])}"
    return f"{address}{'' if '#' in address else '#'}:~:text={directive}"


def _encoded(words: list[str]) -> str:
    from urllib.parse import quote

    return quote(" ".join(words), safe="").replace("-", "%2D")  # a dash ends a directive's prefix


def terminal_link(address: str, label: str) -> str:
    """`label` as a link to `address` in terminals that know OSC 8; without a web address the label alone."""
    address = address if web_address(address.partition(":~:")[0]) and address.isascii() else ""
    shown = clean(label)
    return f"{_ESC}]8;;{address}{_ESC}\\{shown}{_ESC}]8;;{_ESC}\\" if address else shown


# CSV, JSON --------------------------------------------------------------------------------


_FORMULA = r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|\t"


def csv_cell(value: object) -> object:
    """A cell that no spreadsheet computes: text that begins like a formula gets an apostrophe. Numbers stay numbers."""
    if not isinstance(value, str):
        return value
    text = clean(value)
    return f"'{text}" if re.match(_FORMULA, text) else text


_UNSEEN = r"[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"


def escaped_json(text: str) -> str:
    """JSON text in which control and invisible characters are written as escapes: the same data, safe to show."""
    return text if text.isascii() and "\x7f" not in text else re.sub(_UNSEEN, _as_escape, text)


def _as_escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"


def as_json(value: Any, indent: int | None = 1) -> str:
    """JSON data as text, without NaN or infinities.

    Raises: ValueError if there are any.
    """
    return escaped_json(json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False))


def counted(number: int, name: str) -> str:
    """
    >>> counted(1, "row"), counted(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def span(seconds: float) -> str:
    """
    >>> span(3.2), span(125), span(7384)
    ('3 s', '2 min 5 s', '2 h 3 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"
