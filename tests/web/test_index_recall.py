"""The index finds the right articles for real questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.recall import measure


@pytest.mark.heavy
async def test_gold_pages_are_among_the_first_five(data: Callable[[str], Path], tmp_path: Path) -> None:
    found = await measure(data("qa-freshqa-wiki"), tmp_path)
    assert (found.questions, found.documents) == (276, 363)
    assert found.at[5] >= 0.96
    assert found.at[10] >= found.at[5] >= found.at[1] >= 0.80
