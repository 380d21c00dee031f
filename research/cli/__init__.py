"""The command line: parse, call, print. The only place that prints."""

from __future__ import annotations

import sys


def main() -> None:
    """The `research` command. What it exits with is in the README."""
    from .commands import app
    from .ending import exit_code

    sys.exit(exit_code(app))
