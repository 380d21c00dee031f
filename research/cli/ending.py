"""From what happened to an exit code: errors on one line, signals, closed pipes. No traceback but for a bug."""

from __future__ import annotations

import errno
import gc
import re
import signal
import sys
from collections.abc import Coroutine, Iterator
from typing import Any

import typer

from ..errors import ResearchError, StoreError, UsageError
from .streams import UnheardError, guard

EVERYTHING = "*"  # what `--fresh` without a stage stands for
RESUME = "Stopped. What was finished is kept: the same command takes it up again."


def exit_code(app: typer.Typer) -> int:
    """Run the command line, and tell how it ended."""
    guard()
    try:
        code = app(args=list(arguments(sys.argv[1:])), prog_name="research", standalone_mode=False)
        sys.stdout.flush()
    except typer.Exit as stop:
        code = stop.exit_code
    except ResearchError as error:
        code = told(error)
    except (KeyboardInterrupt, typer.Abort):
        code = told_to_stop(Stopped(130))
    except Stopped as stop:
        code = told_to_stop(stop)
    except UnheardError:
        code = 0
    except typer.BadParameter as error:
        code = told(UsageError(readable(error.format_message())))
    except Exception as error:  # noqa: BLE001 - typer's own errors have no common public base
        code = _typers_or_bug(error)
    return int(code or 0)


def arguments(given: list[str]) -> Iterator[str]:
    """The command line with a bare `--fresh` completed: its value may be left out, and a question is no stage.

    >>> list(arguments(["ask", "--fresh", "How tall is it?"]))
    ['ask', '--fresh', '*', 'How tall is it?']
    >>> list(arguments(["ask", "--fresh", "rerank", "How tall is it?"]))
    ['ask', '--fresh', 'rerank', 'How tall is it?']
    """
    for place, argument in enumerate(given):
        yield argument
        if argument == "--fresh" and not re.fullmatch(r"[A-Za-z_]\w*", (*given, "")[place + 1]):
            yield EVERYTHING


_READABLE = (  # what typer and pydantic say of a value, as we say it
    (r"^Invalid value for '(?:-\w' / ')?(.*?)': ", r"\1: "),
    (r"Value error, ", ""),
    (r"Input should be", "it must be"),
    (r", unable to parse.*", ""),
    (r"a valid integer", "a whole number"),
    (r"a valid number", "a number"),
    (r"greater than or equal to", "at least"),
    (r"less than or equal to", "at most"),
)


def readable(text: str) -> str:
    """
    >>> readable("Invalid value for '-n' / '--limit': Input should be greater than or equal to 1")
    '--limit: it must be at least 1'
    """
    for pattern, words in _READABLE:
        text = re.sub(pattern, words, text)
    return text


def told(error: ResearchError) -> int:
    """One error, on stderr."""
    from ..output import clean

    print(f"error: {clean(str(error))}", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        print(f"       {note}", file=sys.stderr)
    if isinstance(error, StoreError) and (home := _home()) in str(error):
        print(f"       Files are kept in {home}; set RESEARCH_HOME to keep them elsewhere", file=sys.stderr)
    return error.exit_code


def _home() -> str:
    from ..settings import Settings

    return str(Settings.read().home)


def _typers_or_bug(error: Exception) -> int:
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:  # of a path that the user has named
        return told(UsageError(f"{str(error.filename)[:60]}…: that name is too long for a file; choose a shorter one"))
    show, code = getattr(error, "format_message", None), getattr(error, "exit_code", None)
    if show is None or code is None:
        raise error
    if type(error).__name__ == "NoArgsIsHelpError":
        print(show(), file=sys.stderr)
        return 2
    usage = getattr(getattr(error, "ctx", None), "get_usage", lambda: "")()
    from ..output import clean

    hint = (
        "; put the question in quotes"
        if "extra argument" in show() and usage.startswith("Usage: research ask ")
        else ""
    )
    print(clean("\n".join(line for line in (usage, f"error: {show()}{hint}") if line)), file=sys.stderr)
    return 2


class Stopped(BaseException):
    """A signal ended the work; `exit_code` is 128 and the signal's number."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code


def told_to_stop(stop: Stopped) -> int:
    print(RESUME, file=sys.stderr)
    return stop.exit_code


def run(work: Coroutine[Any, Any, int]) -> None:
    """Runs `work` to its end, and exits with what it gives.

    Raises: Stopped, once all is cancelled and closed; at a second SIGINT at once.
    """
    import asyncio

    try:
        code = asyncio.run(_until_terminated(work))
    except KeyboardInterrupt:
        raise Stopped(130) from None
    raise typer.Exit(code)


async def _until_terminated(work: Coroutine[Any, Any, int]) -> int:
    import asyncio

    task = asyncio.ensure_future(work)
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await task
    except asyncio.CancelledError:
        if terminated:
            raise Stopped(143) from None
        raise


def for_many() -> None:
    """Before many questions: what is loaded stays, and what each row leaves, whole pages among it, is found soon."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 10)
