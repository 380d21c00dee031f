"""The command line: parse, call, print. The only place that prints."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The `research` command. What it exits with is in the README."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them costs a tenth of a warm answer
    from .commands import app
    from .ending import exit_code

    sys.exit(exit_code(app))
