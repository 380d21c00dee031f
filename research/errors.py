"""Everything that `research` raises on purpose.

    ResearchError
    ├── UsageError            the command, a setting or a file is wrong              exit 2
    │   └── PipelineError     a pipeline file; carries every mistake found in it
    ├── BudgetError           a cap on dollars, calls or time was reached             exit 5
    ├── ProviderError         a model's provider could not or would not answer        exit 6
    │   ├── AuthError         key missing or refused; never retried                   exit 2
    │   ├── UnknownModelError the provider has no such model; never retried           exit 2
    │   ├── OutOfMoneyError   credit, quota or plan used up; never retried
    │   ├── RateLimitError    too many requests or tokens for now
    │   ├── OverloadedError   the provider is busy or broken (5xx, 529)
    │   ├── TimedOutError     no reply, or none in time
    │   ├── UnreachableError  no connection, or it broke
    │   ├── BadRequestError   the request itself was refused; never retried
    │   │   ├── ContextTooLongError   more tokens than the model takes
    │   │   └── RequestTooLargeError  more bytes than the provider takes (413)
    │   ├── RefusedError      the model or its filter declined; never retried
    │   ├── TruncatedError    a reply cut off by its connection or its allowance
    │   └── MalformedError    a reply that fits no form we asked for
    ├── WebError              a search engine or a page could not be had              exit 6
    │   └── NotRecordedError  only recorded replies may be used, and this one is not there
    └── StoreError            the store can't be read or written                      exit 8

Each message says what happened, where, and what to do next. `passing` tells whether
the same work may succeed when tried again: such a failure is never stored. `of_item`
tells whether, in a fan-out, only the item that met it is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class ResearchError(Exception):
    """The root. `exit_code` is what the command line returns when this ends a run."""

    exit_code = 1
    passing = False
    of_item = False


class UsageError(ResearchError):
    """The command, a setting or a file is wrong."""

    exit_code = 2


class Mistake(NamedTuple):
    """One thing wrong in a file: where (file, table, key), what, and how to mend it."""

    file: str
    table: str
    key: str
    what: str
    remedy: str

    def __str__(self) -> str:
        place = f"[{self.table}]" if self.table else "top level"
        where = f"{place} {self.key}" if self.key else place
        return f"{self.file}: {where}: {self.what}. {self.remedy}"


class PipelineError(UsageError):
    """A pipeline file with mistakes; `mistakes` holds all of them."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class BudgetError(ResearchError):
    """A cap on dollars, calls or time was reached."""

    exit_code = 5
    of_item = True


class ProviderError(ResearchError):
    """A call to a provider that failed. With `passing`, the same request may be sent again.

    status       the HTTP status, if there was one
    retry_after  seconds that the provider asked to wait, if it did
    usage        the tokens that the call took all the same (a `messages.Usage`), if that is known
    """

    exit_code = 6
    passing = True
    of_item = True

    def __init__(
        self,
        message: str = "",
        *,
        status: int | None = None,
        retry_after: float | None = None,
        usage: object | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.usage = usage


class AuthError(ProviderError):
    exit_code = 2
    passing = False
    of_item = False


class UnknownModelError(ProviderError):
    exit_code = 2
    passing = False
    of_item = False


class OutOfMoneyError(ProviderError):
    passing = False
    of_item = False


class RateLimitError(ProviderError):
    pass


class OverloadedError(ProviderError):
    pass


class TimedOutError(ProviderError):
    pass


class UnreachableError(ProviderError):
    pass


class BadRequestError(ProviderError):
    passing = False
    of_item = False


class ContextTooLongError(BadRequestError):
    of_item = True


class RequestTooLargeError(BadRequestError):
    of_item = True


class RefusedError(ProviderError):
    passing = False


class TruncatedError(ProviderError):
    pass


class MalformedError(ProviderError):
    pass


class WebError(ResearchError):
    """A search engine or a page could not be had. `asked` names engines once for each reply that may cost a fee."""

    exit_code = 6
    passing = True
    of_item = True
    asked: Sequence[str] = ()


class NotRecordedError(WebError):
    pass


class StoreError(ResearchError):
    """The store can't be read or written."""

    exit_code = 8


WORDS = {
    "AuthError": "key missing or refused",
    "BadRequestError": "request refused",
    "BudgetError": "budget reached",
    "ContextTooLongError": "too long for the model",
    "MalformedError": "reply in no form that was asked for",
    "NotRecordedError": "not recorded",
    "OutOfMoneyError": "credit used up",
    "OverloadedError": "provider overloaded",
    "ProviderError": "provider failed",
    "RateLimitError": "rate limit",
    "RefusedError": "declined by the model",
    "RequestTooLargeError": "too large for the provider",
    "StoreError": "store failed",
    "TimedOutError": "no reply in time",
    "TruncatedError": "reply cut off",
    "UnknownModelError": "unknown model",
    "UnreachableError": "provider not reached",
    "UsageError": "wrong setting",
    "WebError": "search or page failed",
}


def words(kind: str) -> str:
    """What people call an error whose class, as records have it, is `kind`."""
    return WORDS.get(kind, kind)


def first_cause(group: BaseExceptionGroup[ResearchError]) -> ResearchError:
    """The first error in a group of failures, however deep it stands."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, ResearchError)
    return error
