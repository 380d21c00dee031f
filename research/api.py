"""The Python API: one question, one answer."""

from __future__ import annotations

from pydantic import ValidationError

from .app import App, Dates, load_pipeline
from .errors import UsageError
from .llm.messages import Model
from .records import Answer, Question
from .settings import Settings
from .tiers import Tiers
from .web.index import LocalWeb
from .webs import NO_WEB, local, sample


async def ask(
    question: str,
    *,
    pipeline: str | None = None,
    offline: bool = False,
    search: str | None = None,
    as_of: str | None = None,
    web_date: str | None = None,
    models: dict[str, Model] | None = None,
) -> Answer:
    """The answer to one question, with citations that carry both spans: in the answer and in the source.

    `offline` asks the bundled sample web, `search="local:NAME"` a local index. `models`, for
    "cheap" and "capable", are else those of the settings. Runs are kept as those of the
    command line are.
    Raises: UsageError for what is no question, pipeline or web; else what the run raises.
    """
    settings = Settings.read({"search": search, "pipeline": pipeline})
    loaded, tiers = load_pipeline(settings.pipeline), Tiers(settings)
    app = App(settings, models or tiers.models_of(loaded), price=tiers.prices.price)
    try:
        with await open_web(app, offline, settings.search or None) as web:
            dates = Dates.resolve(as_of, web_date, today=web.date)
            return (await app.ask(asked(question), loaded, web, dates)).answer
    finally:
        await tiers.aclose()
        app.close()


async def open_web(app: App, offline: bool, search: str | None) -> LocalWeb:
    """The web that the user names.

    Raises: UsageError if there is none of that name, or none is named.
    """
    if offline:
        return await sample(app.settings, app.notice)
    if search is not None and search.startswith("local:"):
        return local(app.settings, search.removeprefix("local:"))
    raise UsageError(NO_WEB if search is None else f"there is no web {search!r}; {NO_WEB}")


def asked(text: str) -> Question:
    """Raises: UsageError for what is no question."""
    try:
        return Question(text=text)
    except ValidationError as error:
        raise UsageError(f"that is no question: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
