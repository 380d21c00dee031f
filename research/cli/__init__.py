"""The command line: parse, call, print. The only place that prints."""

from __future__ import annotations

import gc
import sys
from types import ModuleType


def main() -> None:
    """The `research` command. What it exits with is in the README."""
    gc.set_threshold(1_000_000, 10, 10)  # what starting and a question allocate is hardly garbage; see `for_many`
    sys.modules.setdefault("pydantic.plugin._loader", _no_plugins())
    from .commands import app
    from .ending import exit_code

    code = exit_code(app)
    gc.freeze()  # what is left goes with the process; to search it for cycles first costs a sixth of a warm answer
    sys.exit(code)


def _no_plugins() -> ModuleType:
    """In place of pydantic's search for plugins, whose imports alone cost a tenth of a warm answer."""
    module = ModuleType("pydantic.plugin._loader")
    module.get_plugins = tuple  # type: ignore[attr-defined]
    return module
