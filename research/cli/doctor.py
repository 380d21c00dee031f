"""`research doctor`: every setting with its origin, which keys are there, and what can be reached.

Never prints a key: of one it tells only which variable holds it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from ..settings import Settings
    from ..tiers import Tiers

DIALLING = 3.0  # seconds for a connection
ASKING = 60.0  # seconds for a model's or an engine's answer
SHORT = "Reply with the one word: ready"
QUERY = "weather"


def doctor(
    live: Annotated[
        bool, typer.Option("--live", help="Ask each tier's model and each engine once, which may cost a little.")
    ] = False,
    cheap: options.Cheap = None,
    capable: options.Capable = None,
    search: Annotated[str | None, typer.Option(help="What to search.", metavar="WEB")] = None,
) -> None:
    """Show every setting with its origin, which keys are set, and what can be reached."""
    from ..settings import Settings
    from ..tiers import Tiers
    from .ending import run

    settings = Settings.read({"cheap": cheap, "capable": capable, "search": search})
    run(examined(settings, Tiers(settings), live))


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, and the exit code that it asks for."""

    what: str
    told: str
    code: int = 0


async def examined(settings: Settings, tiers: Tiers, live: bool) -> int:
    """Print everything; the exit code is that of the first thing that is wrong."""
    show("Settings", settings_told(settings))
    show("Keys", keys_told(tiers))
    found = [*places(settings), *bound(tiers)]
    show("Places", [(one.what, one.told) for one in places(settings)])
    show("Models", [(one.what, one.told) for one in bound(tiers)])
    reached = await gathered(reaches(tiers))
    show("Reachable", [(one.what, one.told) for one in reached])
    found += reached
    if live:
        asked = await gathered(asks(tiers))
        show("Answers", [(one.what, one.told) for one in asked])
        found += asked
        await tiers.aclose()
    return next((one.code for one in found if one.code), 0)


def show(title: str, rows: list[tuple[str, str]]) -> None:
    from ..output import clean

    print(title)
    wide = max((len(name) for name, _ in rows), default=0)
    for name, told in rows:
        print(clean(f"  {name:<{wide}}  {told}").rstrip())


def settings_told(settings: Settings) -> list[tuple[str, str]]:
    from ..settings import KEYS, TABLES

    rows = [(key, f"{said(getattr(settings, key) or otherwise(key))}  ({settings.origin(key)})") for key in KEYS]
    for table in TABLES:
        for name, inner in getattr(settings, table).items():
            rows += [
                (f"{table}.{name}.{part}", f"{said(value)}  ({settings.origin(f'{table}.{name}.{part}')})")
                for part, value in inner.items()
            ]
    return rows


def otherwise(key: str) -> str:
    """What holds where a setting is not set; "" where that is nothing in particular."""
    from ..ceilings import DEFAULT
    from ..ledger import dollars
    from ..webs import KEYLESS

    paid = "a question where a model costs money"
    assert DEFAULT.usd is not None
    told = {"search": KEYLESS, "max_usd": f"{dollars(DEFAULT.usd)} {paid}", "deadline": f"{DEFAULT.seconds:g} s {paid}"}
    return told.get(key, "")


def said(value: Any) -> str:
    if value in ("", None, ()):
        return "–"
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def keys_told(tiers: Tiers) -> list[tuple[str, str]]:
    """The variables that hold a key, or could."""
    from ..llm.providers import PROVIDERS
    from ..settings import KEYED, engine_names

    settings, environment = tiers.settings, tiers.environment
    named = {name: row.key_variables for name, row in PROVIDERS.items() if not row.local}
    named |= {name: (engine_names(name)[1],) for name in KEYED}
    for table in (settings.providers, settings.engines):
        named |= {name: (inner["key_env"],) for name, inner in table.items() if "key_env" in inner}
    return [
        (variable, f"{'set' if environment.get(variable, '').strip() else 'not set'}  ({name})")
        for name, variables in named.items()
        for variable in variables
    ]


def places(settings: Settings) -> list[Finding]:
    """The files and folders that are read and written."""
    from ..homes import refusal
    from ..settings import PIPELINES, user_config

    why = refusal(settings.home)
    state = f"not writable ({why}): nothing can be kept; set RESEARCH_HOME to another folder" if why else "writable"
    config = user_config()
    return [
        Finding(str(settings.home), state, 8 if why else 0),
        Finding(str(config), "the user's settings" if config.is_file() else "not there; it would hold your settings"),
        Finding(str(PIPELINES), "the shipped pipelines"),
    ]


def bound(tiers: Tiers) -> list[Finding]:
    """What each tier means, and whether its key is there."""
    from ..errors import UsageError
    from ..llm.providers import BUILTIN, check_key
    from ..pipeline import TIERS

    found = []
    for tier in TIERS:
        choice = tiers.choice(tier)
        try:
            if choice.model != BUILTIN:
                check_key(choice.model, tiers.settings, tiers.environment)
        except UsageError as error:
            found.append(Finding(tier, str(error), error.exit_code))
        else:
            found.append(Finding(tier, f"{choice.model}  ({choice.origin})"))
    return found


def reaches(tiers: Tiers) -> Iterator[Awaitable[Finding]]:
    """A connection to each tier's provider, if its key is there, and to each engine; nothing is sent."""
    from ..llm.providers import BUILTIN, provider, split
    from ..pipeline import TIERS

    ready = [tier for tier, finding in zip(TIERS, bound(tiers), strict=True) if not finding.code]
    models = [tiers.named(tier) for tier in ready]
    for name in dict.fromkeys(split(model)[0] for model in models if model != BUILTIN):
        yield dialled(name, provider(name, tiers.settings, tiers.environment).base_url)
    for name, engine in engines(tiers).items():
        yield standing(name, engine.disabled) if engine.disabled else dialled(name, engine.base)


def asks(tiers: Tiers) -> Iterator[Awaitable[Finding]]:
    """A short request to each tier's model, and a query to each engine."""
    from ..pipeline import TIERS

    chosen = {tier: tiers.named(tier) for tier in TIERS}
    for model in dict.fromkeys(chosen.values()):
        yield told(f"{' and '.join(t for t in TIERS if chosen[t] == model)} {model}", model_asked(tiers, model))
    for name, engine in engines(tiers).items():
        yield standing(name, engine.disabled) if engine.disabled else told(name, engine_asked(engine))


def engines(tiers: Tiers) -> dict[str, Any]:
    """The engines that a question would be asked of, and those that have the key or the address they need."""
    from ..settings import ENGINES
    from ..web.engines import engine
    from ..webs import KEYLESS

    variables = tiers.settings.engine_variables(tiers.environment)
    made = {name: engine(name, variables) for name in ENGINES}
    wanted = [name.strip() for name in (tiers.settings.search or KEYLESS).split(",")]
    there = [name for name in ENGINES if name not in KEYLESS.split(",") and not made[name].disabled]
    return {name: made[name] for name in dict.fromkeys((*wanted, *there)) if name in made}


async def gathered(checks: Iterator[Awaitable[Finding]]) -> list[Finding]:
    return list(await asyncio.gather(*checks))


async def standing(name: str, why: str) -> Finding:
    return Finding(name, why)


async def dialled(name: str, url: str) -> Finding:
    """Whether a connection can be made; nothing is sent."""
    from urllib.parse import urlsplit

    from ..network import look_up

    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    began = time.monotonic()
    try:
        async with asyncio.timeout(DIALLING):
            [address, *_] = await look_up(parts.hostname or "", port)
            _, writer = await asyncio.open_connection(address, port)
    except (OSError, TimeoutError) as error:
        return Finding(name, f"{parts.hostname}:{port} can't be reached: {reason(error)}", 6)
    writer.close()
    return Finding(name, f"{parts.hostname}:{port} in {1000 * (time.monotonic() - began):.0f} ms")


def reason(error: OSError | TimeoutError) -> str:
    import os

    if isinstance(error, TimeoutError):
        return f"no answer in {DIALLING:g} s"
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


async def told(what: str, asked: Callable[[], Awaitable[str]]) -> Finding:
    """What came of asking: its words and its time, or the error."""
    from ..errors import ResearchError

    began = time.monotonic()
    try:
        async with asyncio.timeout(ASKING):
            words = await asked()
    except ResearchError as error:
        return Finding(what, str(error), error.exit_code)
    except TimeoutError:
        return Finding(what, f"no answer in {ASKING:g} s", 6)
    return Finding(what, f"{words} in {time.monotonic() - began:.1f} s")


def model_asked(tiers: Tiers, model: str) -> Callable[[], Awaitable[str]]:
    async def ask() -> str:
        from ..ledger import dollars
        from ..llm.messages import Message, Request
        from ..llm.providers import BUILTIN

        if model == BUILTIN:
            return "built in"
        [served] = tiers.models([model]).values()
        completion = await served.complete(Request("", (Message("user", SHORT),), max_tokens=50))
        usd = tiers.prices.price(model, completion.usage)
        cost = "at an unknown price" if usd is None else f"for {dollars(usd)}"
        return f"answers as {completion.model}, {completion.usage.output} tokens {cost}"

    return ask


def engine_asked(engine: Any) -> Callable[[], Awaitable[str]]:
    async def ask() -> str:
        from ..transport import Client
        from ..web.engines.asking import EngineSearch
        from ..web.fetch import USER_AGENT

        client = Client(headers={"User-Agent": USER_AGENT})
        try:
            hits = await EngineSearch(engine, client).search(QUERY, 3)
        finally:
            await client.aclose()
        return f"{len(hits)} results"

    return ask
