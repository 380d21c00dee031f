"""Keys, taken out of whatever a provider echoes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from research.errors import ProviderError
from research.llm.messages import Completion

BLANK = "[key]"
SHORTEST = 8  # characters; shorter "keys" are placeholders for local servers, and words of the language


def secrets_of(key: str, base_url: str) -> tuple[str, ...]:
    """What must not be shown: the key, and a name and password in the address."""
    place = urlsplit(base_url)
    found = [key, *(unquote(part) for part in (place.username, place.password) if part)]
    return tuple(secret for secret in found if len(secret) >= SHORTEST)


def blanked(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, BLANK)
    return text


def without(completion: Completion, secrets: Sequence[str]) -> Completion:
    """The completion with no secret in it."""
    if not any(secret in repr(completion) for secret in secrets):
        return completion
    return replace(
        completion,
        text=blanked(completion.text, secrets),
        model=blanked(completion.model, secrets),
        request_id=blanked(completion.request_id, secrets),
        replay=blanked(completion.replay, secrets),
        calls=tuple(replace(call, arguments=blanked(call.arguments, secrets)) for call in completion.calls),
    )


def cleaned(error: ProviderError, secrets: Sequence[str]) -> ProviderError:
    """The same error with no secret in its message."""
    error.args = tuple(blanked(each, secrets) if isinstance(each, str) else each for each in error.args)
    return error


class Pieces:
    """Passes on pieces of text, holding back what might be the beginning of a secret."""

    def __init__(self, heard: Callable[[str], None], secrets: Sequence[str]) -> None:
        self._heard = heard
        self._secrets = secrets
        self._held = ""

    def add(self, piece: str) -> None:
        text = blanked(self._held + piece, self._secrets)
        keep = max((_overlap(text, secret) for secret in self._secrets), default=0)
        self._held = text[len(text) - keep :]
        if len(text) > keep:
            self._heard(text[: len(text) - keep])

    def end(self) -> None:
        if self._held:
            self._heard(self._held)
        self._held = ""


def _overlap(text: str, secret: str) -> int:
    """How many of the last characters of `text` are the first of `secret`."""
    return next((size for size in range(min(len(text), len(secret) - 1), 0, -1) if secret.startswith(text[-size:])), 0)
