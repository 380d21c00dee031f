"""`research batch --provider-batch`: what it adds to a batch, and how one at a provider is cancelled."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..batch import Account
from ..errors import UsageError
from .batch_view import View

if TYPE_CHECKING:
    from ..pipeline import Pipeline
    from ..settings import Settings
    from ..tiers import Tiers
    from .batch import Wish

EVERY = 600.0  # seconds between plain lines about the rows: batches have lines of their own


def prepared(wish: Wish, settings: Settings, pipeline: Pipeline, tiers: Tiers, view: View) -> Pipeline:
    """The pipeline as it is to be run, at whose prices.

    Raises: UsageError where that can't be, or where a batch under way would be paid for a second time.
    """
    if not wish.provider_batch:
        if not wish.dry_run or wish.choice.sample is not None:
            refuse_what_is_under_way(wish, settings)
        return pipeline
    from ..batch.stagewise import stagewise

    if settings.deadline not in ("", "none"):
        raise UsageError(
            f"--provider-batch: a batch may take 24 hours, so the deadline of {settings.deadline} s a row "
            f"({settings.origin('deadline')}) can't be kept. Leave it out, or say --deadline none"
        )
    tiers.prices.batch = True
    view.every = EVERY
    return stagewise(pipeline)


def most(wish: Wish) -> int | None:
    """How many rows are at work at once, if that is to be said."""
    if not wish.provider_batch:
        return wish.conditions.parallel
    from ..batch.stagewise import rows_at_once

    return rows_at_once(wish.conditions.parallel)


def refuse_what_is_under_way(wish: Wish, settings: Settings) -> None:
    """Raises: UsageError where a provider works on a batch for these results."""
    folder = Account.of(settings.home, wish.out).folder
    if not (folder / "provider.db").exists():
        return
    from ..batch.stagewise import under_way

    if sent := under_way(folder):
        ids = ", ".join(one.id or one.name for one in sent)
        raise UsageError(
            f"{wish.out}: a provider works on {ids} for it, which would be paid for a second time. Add "
            "--provider-batch to take it up, or give it up with --cancel-provider-batch"
        )


async def cancelled(wish: Wish) -> int:
    """Cancels the batches under way, and keeps what came of them."""
    from ..batch.stagewise import Stagewise, under_way
    from ..settings import Settings
    from ..tiers import Tiers

    view = View.on(sys.stderr)
    settings = Settings.read(wish.flags)
    folder = Account.of(settings.home, wish.out).folder
    if not (sent := under_way(folder)):
        view.line(f"{wish.out}: no provider works on a batch for it")
        return 0
    tiers = Tiers(settings, view.line)
    work = Stagewise.of(dict.fromkeys(one.model for one in sent), tiers, folder, view.line)
    count = await work.cancel()
    view.line(f"{count:,} cancelled. What was done before that is paid for, and kept for the next --provider-batch")
    return 0
