"""Text of strangers, made safe for prompts (`fence`), and for terminals and files (`clean`)."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

from .normal import UNSEEN, is_variation

# Full-width forms look alike, stand for no special token, and are equal in `normal.view`: what a
# model quotes from a fence is found in the page.
_OPENING = re.compile(r"<(?=[A-Za-z/|!?<｜])")  # tags, <|im_start|>, </s>, <<SYS>>, <｜User｜>, our own fences
_BRACKETED = re.compile(
    r"\[(?=/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|UNUSED_TOKEN"
    r"|UNK|CLS|SEP|PAD|MASK|gMASK|BOS|EOS)\b)",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"^([ \t>#*]{0,8}(?:human|assistant|system|user|developer|instructions?|response|input|output)[ \t*]{0,4}):",
    re.IGNORECASE | re.MULTILINE,
)
_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_LABEL = re.compile(r"[^\w .-]+")
_JOINERS = "\u200c\u200d"  # Persian, Indic scripts and emoji need them


def fence(text: str, secret: bytes, label: str) -> str:
    """`text` as marked data for a prompt: `<data-D label="…">`, the text, `</data-D>`.

    D is a digest of label and text under `secret` (16 hexadecimal characters, BLAKE2b keyed,
    RFC 7693): unknown to whoever wrote the text, yet the same each time. Nothing in the
    text can pass for a fence, a tag, a chat template's token or the start of a turn.
    """
    inside = neutralised(text)
    name = _LABEL.sub(" ", label)[:80].strip()
    key = secret if len(secret) <= 64 else blake2b(secret).digest()
    digest = blake2b(f"{name}\0{inside}".encode(), key=key, digest_size=8).hexdigest()
    return f'<data-{digest} label="{name}">\n{inside}\n</data-{digest}>'


def neutralised(text: str) -> str:
    """`text` without invisible and control characters, its special tokens broken visibly.

    Only characters are dropped or put in their full-width form, so that a quote of the
    result is still located in `text`.
    """
    visible = _LINE_ENDS.sub("\n", text).translate(_VISIBLE)
    broken = _BRACKETED.sub("［", _OPENING.sub("＜", visible))
    return _TURN.sub("\\1：", broken)


def clean(text: str) -> str:
    """`text` for display: of control characters only newline and tab, nothing that reorders text.

    Escape sequences lose their escape character and show as what they are. The result can
    be encoded in UTF-8.
    """
    return text if text.isprintable() else _LINE_ENDS.sub("\n", text).translate(_SHOWN)


class _Kept(dict[int, str]):
    """Character → what is kept of it, made at first use."""

    def __init__(self, joiners: str) -> None:
        super().__init__({ord(char): char for char in "\n\t" + joiners})
        self.joiners = joiners

    def __missing__(self, code: int) -> str:
        char = chr(code)
        category = unicodedata.category(char)
        hidden = category in ("Cc", "Cf") or (not self.joiners and (char in UNSEEN or is_variation(char)))
        self[code] = kept = "\ufffd" if category == "Cs" else "" if hidden else char
        return kept


_VISIBLE = _Kept("")
_SHOWN = _Kept(_JOINERS)
