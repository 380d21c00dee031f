"""Prompts: read from files, filled, told apart by digest.

A prompt file is Markdown. What stands above a line `---` is the system prompt, the rest
the user's message; without such a line all of it is the message. Placeholders are
`{{ name }}` and nothing more: no expressions, no loops. Lists are laid out, and untrusted
text is fenced, by the program. A value that is filled in is never looked at again, so
`{{7*7}}` in a page stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from .store import digest

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_RULE = re.compile(r"^---[ \t]*$", re.MULTILINE)


class Prompt(NamedTuple):
    """A prompt file's text. `name` is what the pipeline file calls it."""

    name: str
    text: str

    @property
    def digest(self) -> str:
        return digest(self.text)

    @property
    def placeholders(self) -> frozenset[str]:
        return frozenset(_PLACEHOLDER.findall(self.text))

    @property
    def strangers(self) -> list[str]:
        """What looks like a template's expression and is no placeholder."""
        return [found for found in _TEMPLATE.findall(self.text) if not _PLACEHOLDER.fullmatch(found)]

    def fill(self, values: Mapping[str, str]) -> tuple[str, str]:
        """The system prompt (may be empty) and the user's message.

        Raises: KeyError for a placeholder without a value; loading a pipeline rules it out.
        """
        parts = _RULE.split(self.text, maxsplit=1)
        filled = [_PLACEHOLDER.sub(lambda found: values[found[1]], part).strip() for part in parts]
        return ("", filled[0]) if len(filled) == 1 else (filled[0], filled[1])
