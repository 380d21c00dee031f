"""`research mcp`: a server of tools for the models of others."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .groups import Backends, ungrouped


@ungrouped
def mcp(
    *,
    pipeline: Annotated[
        str | None, typer.Option("-p", "--pipeline", help="What answers unless a call names a shipped one.")
    ] = None,
    backends: Backends,
    max_usd: Annotated[
        str | None,
        typer.Option(help='The most that the session may spend; "none" lifts the default.', metavar="DOLLARS"),
    ] = None,
    max_calls: Annotated[str | None, typer.Option(help="The most model calls of a question.", metavar="N")] = None,
    deadline: Annotated[str | None, typer.Option(help="The time that a question may take.", metavar="SECONDS")] = None,
    fetch_any: Annotated[
        bool, typer.Option("--fetch-any", help="Let clients read any public address, not only those that results name.")
    ] = False,
) -> None:
    """Offer ask, search and fetch to MCP clients, over stdio."""
    from .ending import run

    flags = {"pipeline": pipeline, "max_usd": max_usd, "max_calls": max_calls, "deadline": deadline}
    run(served(flags, backends, fetch_any))


async def served(flags: dict[str, str | None], backends: Backends, fetch_any: bool) -> int:
    """Serves until the client leaves."""
    from ..app import App, load_pipeline
    from ..pipeline import TIERS
    from ..serving.protocol import serve
    from ..serving.session import Serving
    from ..settings import Settings
    from ..tiers import Tiers
    from ..webs import opened
    from .ending import for_many

    settings = Settings.read(flags | backends.settings)
    tiers = Tiers(settings, notice)
    own = tiers.fitted(load_pipeline(settings.pipeline))
    names = dict.fromkeys([*TIERS, *(name for stage in own.stages.values() for name in stage.models)])
    app = App(settings, tiers.models(names), notice, tiers.prices.price, tiers.prices.search_fee)
    try:
        async with opened(settings, app.store, notice, offline=backends.offline, world=backends.world) as web:
            for_many()
            await serve(Serving(settings, tiers, app, web, fetch_any))
    finally:
        await tiers.aclose()
        app.close()
    return 0


def notice(text: str) -> None:
    from ..output import clean

    print(clean(text), file=sys.stderr)
