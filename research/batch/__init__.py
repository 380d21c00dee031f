"""Many questions at once: which are run, how many at a time, and what comes of them.

running     rows → records: none lost, none paid twice
rows        which rows of a question file are left to be run; where each one's record goes
width       how many rows are at work at once
recipe      what shapes the answers, and what has changed since some were made
account     what all commands of one batch share: its dates, its budget
stagewise   all calls of a stage as one batch of their provider's; loaded only where that is wished for

Question files are read in `questions`, results files are kept in `results`: comparisons and reports use them too.
"""

from __future__ import annotations

from research.batch.account import Account
from research.batch.recipe import Recipe, explained, recipe_of
from research.batch.rows import Choice, LocalRows, OtherRecipeError, Selection
from research.batch.running import Batch, Tally
from research.batch.width import Gauge

__all__ = [
    "Account",
    "Batch",
    "Choice",
    "Gauge",
    "LocalRows",
    "OtherRecipeError",
    "Recipe",
    "Selection",
    "Tally",
    "explained",
    "recipe_of",
]
