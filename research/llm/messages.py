"""What is said to a model and what comes back, in our own words; the wires translate.

A `Request` is everything that shapes a reply; a `Completion` is the reply. Neither holds
a clock, a key or an address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Finish = Literal["stop", "length", "tool_calls", "refusal", "pause"]


@dataclass(frozen=True)
class ToolCall:
    """A model's wish to use a tool. `arguments` is the JSON text as the model sent it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Message:
    """One turn. A `tool` message answers the call `call_id`, with an error if `failed`.

    An assistant's turn hands back the `replay` of the completion that it was.
    """

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    failed: bool = False
    replay: str = ""


@dataclass(frozen=True)
class Tool:
    """A tool on offer; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """`max_tokens` is the allowance for the reply, `reasoning_tokens` a further one for thinking.

    `schema`, if given, is the JSON schema that the reply must fit. `purpose` and `given`
    name the stage kind and what filled its prompt: they are never sent, and only the
    built-in model reads them.
    """

    system: str
    messages: tuple[Message, ...]
    max_tokens: int
    reasoning_tokens: int = 0
    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    purpose: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """Tokens of one call. `input` counts fresh tokens only; `output` includes `reasoning`."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Completion:
    """A reply. `replay` is what the provider wants back verbatim when the conversation goes on
    (signed or encrypted thinking), opaque to all but the wire that made it."""

    text: str
    finish: Finish
    usage: Usage
    model: str  # as the provider names it
    calls: tuple[ToolCall, ...] = ()
    request_id: str = ""
    replay: str = ""


@dataclass(frozen=True)
class Attempt:
    """One try of a completion, as it ended.

    usage    None where the provider told no usable figures
    billed   False where it surely took nothing: refused, or never reached
    failed   the kind of error, "" if it gave the completion
    seconds  of work; `waited` came before them, for a rate slot or for the next try
    first    seconds of them until the first piece of text
    batched  it was part of a provider's batch, at the price of those
    """

    usage: Usage | None
    billed: bool = True
    failed: str = ""
    seconds: float = 0.0
    waited: float = 0.0
    first: float = 0.0
    batched: bool = False


class Account(Protocol):
    """Who pays for a completion, try by try."""

    async def reserve(self, most: Usage, name: str = "") -> Callable[[Attempt], None]:
        """Leave to send one try that takes at most that much; what it gives is called with how the try ended.

        A try with a name may outlive its process: it is reserved and settled once, whoever asks by that name.
        Raises: BudgetError if a cap would be passed.
        """
        ...


class Unpaid:
    """An account of nobody: everything is allowed, and nothing written down."""

    async def reserve(self, most: Usage, name: str = "") -> Callable[[Attempt], None]:
        return lambda attempt: None


class Model(Protocol):
    """Something that completes requests. `name` is `provider:model`, and part of every key."""

    @property
    def name(self) -> str: ...

    async def complete(
        self, request: Request, account: Account | None = None, on_text: Callable[[str | None], None] | None = None
    ) -> Completion:
        """One completion, every try of it on the account.

        `on_text` gets the pieces of the text as they come, and None where the call begins
        anew: what was heard before is void. Without streaming it gets the text in one piece.
        Raises: ProviderError or one of its kinds; BudgetError from the account.
        """
        ...
