"""The Python API: one question, one answer."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from .app import App, Dates, load_pipeline
from .errors import UsageError
from .llm.messages import Model
from .records import Answer, Question
from .settings import Settings
from .tiers import Tiers
from .webs import opened, recorded


async def ask(
    question: str,
    *,
    pipeline: str | None = None,
    offline: bool = False,
    search: str | None = None,
    world: Path | None = None,
    record: Path | None = None,
    as_of: str | None = None,
    web_date: str | None = None,
    models: dict[str, Model] | None = None,
) -> Answer:
    """The answer to one question, with citations that carry both spans: in the answer and in the source.

    `search` names engines and local indexes, each asked where those before it fail
    ("duckduckgo,wikipedia", "local:NAME"); `offline` asks the bundled sample web, `world` a
    recorded one. All that the web answers is kept in the new file `record`. `models`, for
    "cheap" and "capable", are else those of the settings. Runs are kept as those of the
    command line are.
    Raises: UsageError for what is no question, pipeline or web; else what the run raises.
    """
    settings = Settings.read({"search": search, "pipeline": pipeline})
    loaded, tiers = load_pipeline(settings.pipeline), Tiers(settings)
    app = App(settings, models or tiers.models_of(loaded), price=tiers.prices.price, fee=tiers.prices.search_fee)
    try:
        async with opened(settings, app.store, offline=offline, world=world) as chosen:
            dates = Dates.resolve(as_of, web_date, today=chosen.date)
            with recorded(chosen, record, dates.web_date) as web:
                return (await app.ask(asked(question), loaded, web, dates)).answer
    finally:
        await tiers.aclose()
        app.close()


def asked(text: str) -> Question:
    """Raises: UsageError for what is no question."""
    try:
        return Question(text=text)
    except ValidationError as error:
        raise UsageError(f"that is no question: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
