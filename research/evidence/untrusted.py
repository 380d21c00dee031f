"""Text of strangers, made safe for prompts. For terminals and files see `output`."""

from __future__ import annotations

import re
from hashlib import blake2b

from ..output import Shown, clean, in_lines
from .normal import UNSEEN, is_variation

__all__ = ["clean", "fence", "neutralised"]

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
_LABEL = re.compile(r"[^\w .-]+")


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
    visible = in_lines(text).translate(_VISIBLE)
    broken = _BRACKETED.sub("［", _OPENING.sub("＜", visible))
    return _TURN.sub("\\1：", broken)


class _Visible(Shown):
    """Prompts hold less than terminals: no joiners, no letter that can't be seen."""

    kept = "\n\t"

    def hides(self, char: str) -> bool:
        return super().hides(char) or char in UNSEEN or is_variation(char)


_VISIBLE = _Visible()
