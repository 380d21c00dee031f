"""What checks an answer, imported in a thread of its own while a model is being waited for."""

from __future__ import annotations

import asyncio
import sys

CHECKS = "research.evidence.answers"  # and with it all that it is made of


def import_checks() -> None:
    """Starts importing; whoever needs the modules meanwhile waits for them as for any import."""
    if CHECKS not in sys.modules:
        from importlib import import_module

        asyncio.get_running_loop().run_in_executor(None, import_module, CHECKS)
