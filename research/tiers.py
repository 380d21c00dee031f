"""What cheap and capable mean: from settings, keys that are there, and servers that run, to models.

Nothing is sent, and nothing heavy imported, until a model is called: whoever is answered from the store pays
for the look into the environment only.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from .errors import UsageError
from .llm.prices import Prices
from .llm.providers import BUILTIN, PROVIDERS, check_key, endpoint, key_of, provider
from .pipeline import TIERS, Pipeline
from .settings import Settings
from .values import near

if TYPE_CHECKING:
    from .limits.rates import Rates
    from .llm.messages import Account, Completion, Model, Request

UNHURRIED = (1_800.0, 900.0, 120.0)  # seconds: a user's own machine may be slow, and lets requests wait in a line
PROBE = 0.2  # seconds, for a server on this machine to say what it serves
LARGEST_LISTING = 1_000_000  # bytes
_NO_CHAT = ("embed", "bge-", "minilm", "rerank")  # models that answer nothing


class Choice(NamedTuple):
    """What a tier means: "provider:model", and why."""

    model: str
    origin: str


@dataclass(eq=False, repr=False)
class Tiers:
    """The tiers under one user's settings. `notice` is told in one line what was chosen where the user said nothing."""

    settings: Settings
    notice: Callable[[str], None] = lambda _: None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _served: list[Served] = field(default_factory=list)
    _listed: dict[str, str] = field(default_factory=dict)  # what was found at an address

    def choice(self, tier: str) -> Choice:
        """Raises: UsageError for a setting that names no model."""
        given = getattr(self.settings, tier)
        if given:
            return Choice(self._completed(given, tier), self.settings.origin(tier))
        [other] = set(TIERS) - {tier}
        if beside := getattr(self.settings, other):
            model = self._completed(beside, other)
            name = model.partition(":")[0]
            default = getattr(self._row(name), tier) if model != BUILTIN else ""
            return Choice(f"{name}:{default}" if default else model, f"goes with {other}")
        name, why = self._found
        return Choice(self._completed(name, tier), why)

    def named(self, name: str) -> str:
        """The "provider:model" of a tier, or of a model that a pipeline pins. Raises: UsageError."""
        return self.choice(name).model if name in TIERS else self._completed(name, "")

    def thinking(self, model: str) -> int:
        """The tokens that "provider:model" may think although nobody asked it to."""
        return 0 if model == BUILTIN else endpoint(model, self.settings, self.environment).thinking

    def fitted(self, pipeline: Pipeline, tools: str | None = None) -> Pipeline:
        """`pipeline` with its loops calling tools as suits their models: as `tools` says, else as the file does, else
        natively, and by structured actions where the model is served by the user's own machine.

        Raises: UsageError for `tools` where no stage calls any; as `named` does.
        """
        stages = {}
        for stage in pipeline.stages.values():
            if "tools_as" in type(stage.params).model_fields:
                model = self.named(stage.model)
                local = model != BUILTIN and self._row(model.partition(":")[0]).local
                said = stage.params.model_dump()["tools_as"]
                way = tools or said or ("schema" if local else "native")
                stages[stage.name] = stage._replace(params=stage.params.model_copy(update={"tools_as": way}))
        if tools and not stages:
            raise UsageError(f"--tools: {pipeline.name} has no stage that calls tools; -p tool-use has one")
        return pipeline._replace(stages={**pipeline.stages, **stages})

    def models_of(self, pipeline: Pipeline) -> dict[str, Model]:
        """The models that its stages are bound to, and no others."""
        return self.models(dict.fromkeys(model for stage in pipeline.stages.values() for model in stage.models))

    def models(self, names: Iterable[str]) -> dict[str, Model]:
        """The models behind `names`: tiers, or "provider:model". One model has one object.

        Raises: UsageError for a name that means nothing, or a key that is missing.
        """
        chosen = {name: self.named(name) for name in names}
        made = {model: self._model(model) for model in dict.fromkeys(chosen.values())}
        unsaid = [name for name in chosen if name in TIERS and not self.settings.cheap and not self.settings.capable]
        if unsaid:
            self.notice(self._told({name: chosen[name] for name in unsaid}))
        return {name: made[model] for name, model in chosen.items()}

    async def aclose(self) -> None:
        for model in self._served:
            await model.aclose()

    def _told(self, chosen: Mapping[str, str]) -> str:
        name, why = self._found
        if name == BUILTIN:
            return (
                "No model is set up, so the built-in extractive one answers: it quotes and writes nothing. Set "
                f"{PROVIDERS['anthropic'].key_variables[0]} or another provider's key, or give --cheap and --capable."
            )
        what = ", ".join(f"{tier} {model}" for tier, model in chosen.items())
        return f"No model was chosen, and {why}: {what}. Choose with --cheap and --capable."

    def _completed(self, name: str, tier: str) -> str:
        """ "provider:model" as it is; a provider alone stands for its model of that tier."""
        if name in ("builtin", BUILTIN):
            return BUILTIN
        if name.startswith("builtin:"):
            raise UsageError(f"there is no built-in model {name!r}; there is {BUILTIN}")
        if ":" in name:
            return name
        if name not in PROVIDERS and name not in self.settings.providers:
            known = [*PROVIDERS, *self.settings.providers]
            example = f"anthropic:{PROVIDERS['anthropic'].cheap}"
            raise UsageError(
                f"{name!r} is no provider; a model is written PROVIDER:MODEL, like {example}. Providers are "
                f"{', '.join(known)}{near(name, known)}"
            )
        row = self._row(name)
        model = getattr(row, tier, "") or (self._installed(row.base_url) if row.local else "")
        if not model:
            what = "nothing answers at its address" if row.local else "it has no default"
            raise UsageError(f"{name} alone names no model, and {what}; write {name}:MODEL")
        return f"{name}:{model}"

    def _row(self, name: str) -> Any:
        return provider(name, self.settings, self.environment)

    @cached_property
    def _found(self) -> tuple[str, str]:
        """The first provider that can be asked, the users' own before the table's, and why it was taken."""
        for name in dict.fromkeys((*self.settings.providers, *PROVIDERS)):
            table = self.settings.providers.get(name, {})
            defaults = PROVIDERS[name].cheap if name in PROVIDERS else table.get("cheap") and table.get("capable")
            if not defaults:
                continue
            row = self._row(name)
            if variable := key_of(row, self.environment):
                return name, f"{variable} is set"
            if name not in PROVIDERS and (row.local or not row.key_variables):
                return name, f"{name} is set up"
        if self._installed(self._row("ollama").base_url):
            return "ollama", "Ollama runs"
        return BUILTIN, "no key is set, and Ollama does not run"

    def _installed(self, base_url: str) -> str:
        """The first model that a server on this machine has, "" where none answers at once."""
        if base_url not in self._listed:
            names = (name for name in listing(base_url) if not any(part in name.lower() for part in _NO_CHAT))
            self._listed[base_url] = next(names, "")
        return self._listed[base_url]

    def _model(self, name: str) -> Model:
        if name != BUILTIN:
            check_key(name, self.settings, self.environment)
        self._served.append(Served(name, self))
        return self._served[-1]

    def opened(self, name: str) -> Model:
        """The model itself, with all that it needs."""
        if name == BUILTIN:
            from .llm.extractive import ExtractiveModel

            return ExtractiveModel()
        from .llm.client import Patience, ProviderModel

        here = endpoint(name, self.settings, self.environment)
        return ProviderModel(here, self.rates, Patience(*UNHURRIED) if here.local else Patience())

    @cached_property
    def prices(self) -> Prices:
        return Prices(self.settings, self.environment)

    @cached_property
    def rates(self) -> Rates:
        """The rate slots, which all processes of this user share."""
        from .limits.rates import Rates

        return Rates(self.settings.home / "limits")


@dataclass(eq=False, repr=False)
class Served:
    """A model that is opened when it is first called."""

    name: str
    tiers: Tiers = field(repr=False)
    _opened: Any = field(default=None, repr=False)

    async def complete(
        self, request: Request, account: Account | None = None, on_text: Callable[[str | None], None] | None = None
    ) -> Completion:
        """As `llm.messages.Model` has it."""
        if self._opened is None:
            self._opened = self.tiers.opened(self.name)
        completion: Completion = await self._opened.complete(request, account, on_text)
        return completion

    async def aclose(self) -> None:
        if hasattr(self._opened, "aclose"):
            await self._opened.aclose()


def listing(base_url: str, patience: float = PROBE) -> list[str]:
    """The models that a server lists, within `patience` seconds; none where it does not answer so fast.

    By a bare socket, since an HTTP library takes longer to import than this takes.
    """
    parts = urlsplit(base_url)
    if parts.scheme != "http" or not parts.hostname:
        return []
    ask = f"GET {parts.path}/models HTTP/1.0\r\nHost: {parts.netloc}\r\nAccept: application/json\r\n\r\n"
    try:
        place: Any = (parts.hostname.encode("idna" if not parts.hostname.isascii() else "ascii"), parts.port or 80)
        with socket.create_connection(place, patience) as connection:  # bytes: a str would load an encoding of names
            connection.sendall(ask.encode())
            data = _all(connection, patience)
        rows = json.loads(data.partition(b"\r\n\r\n")[2])["data"]
        return [row["id"] for row in rows if isinstance(row["id"], str)]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []


def _all(connection: socket.socket, patience: float) -> bytes:
    import time

    data, until = b"", time.monotonic() + patience
    while len(data) < LARGEST_LISTING and (left := until - time.monotonic()) > 0:
        connection.settimeout(left)
        piece = connection.recv(65_536)
        if not piece:
            break
        data += piece
    return data
