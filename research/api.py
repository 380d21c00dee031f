"""The Python API: one question, one answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from .app import App, Dates, load_pipeline
from .ceilings import budget_of
from .errors import UsageError
from .records import Answer, Question
from .settings import Settings
from .tiers import Tiers
from .webs import opened, recorded

if TYPE_CHECKING:
    from .llm.messages import Model


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
    max_usd: float | str | None = None,
    max_calls: int | None = None,
    deadline: float | None = None,
    verify: bool = False,
) -> Answer:
    """The answer to one question, with citations that carry both spans: in the answer and in the source.

    `search` names engines and local indexes, each asked where those before it fail
    ("duckduckgo,wikipedia", "local:NAME"); `offline` asks the bundled sample web, `world` a
    recorded one. All that the web answers is kept in the new file `record`. `models`, for
    "cheap" and "capable", are else those of the settings. `max_usd` (dollars, or "none"),
    `max_calls` and `deadline` (seconds) are caps; paid models have a default ceiling. With
    `verify` the cheap model checks each sentence against its quotes. Runs are kept as those of
    the command line are.
    Raises: UsageError for what is no question, pipeline or web; else what the run raises.
    """
    caps = {"max_usd": max_usd, "max_calls": max_calls, "deadline": deadline}
    flags = {name: None if value is None else str(value) for name, value in caps.items()}
    settings = Settings.read({"search": search, "pipeline": pipeline, **flags})
    loaded, tiers = load_pipeline(settings.pipeline), Tiers(settings)
    if verify:
        from .stages.verify import with_verification

        loaded = with_verification(loaded)
    loaded = loaded if models else tiers.fitted(loaded)
    bound = models or tiers.models_of(loaded)
    budget = budget_of(settings, () if models else bound.values(), tiers.prices.free)
    app = App(settings, bound, price=tiers.prices.price, fee=tiers.prices.search_fee)
    try:
        async with opened(settings, app.store, offline=offline, world=world) as chosen:
            dates = Dates.resolve(as_of, web_date, today=chosen.date)
            with recorded(chosen, record, dates.web_date) as web:
                return (await app.ask(asked(question), loaded, web, dates, budget=budget)).answer
    finally:
        await tiers.aclose()
        app.close()
        budget.close()


def asked(text: str) -> Question:
    """Raises: UsageError for what is no question."""
    try:
        return Question(text=text)
    except ValidationError as error:
        raise UsageError(f"that is no question: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
