"""The seam of language models: one request in, one completion out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.prices import Price

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Finish: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "refusal"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """A picture in a message."""

    media_type: str
    """``image/png`` and the like."""
    data: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """A function that the model may call."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """JSON Schema of its arguments, an object."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A call that the model requests."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: perhaps JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    """An endpoint may send ``system`` under another name (developer, user)."""
    content: str
    images: tuple[Image, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant's message."""
    tool_call_id: str = ""
    """Of a tool's message: the call that it answers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request to a model."""

    messages: tuple[Message, ...]
    temperature: float
    """In [0, 2]."""
    seed: int | None = None
    """In [0, 2**63); sent where the endpoint takes one."""
    max_tokens: int | None = None
    """Completion tokens at most, hidden reasoning included; None: the completer's own limit."""
    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, Json] | None = None
    """JSON Schema of the answer; enforced if the server can, else only requested."""
    timeout_s: float | None = None
    """Time for the call with all its retries; None: the endpoint's own limit."""
    logprobs: bool = False
    """Whether log-probabilities of the answer's tokens are wanted; the endpoint decides. Part of no stamp."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What a model answered."""

    text: str
    """What it answered, without its thoughts."""
    thoughts: str = ""
    """What it thought before, where the server says it; never sent back, never scored."""
    why_empty: str = ""
    """What is known of why there is neither text nor a call."""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    usage: Usage | None = None
    """None when the server sent no plausible figures."""
    cost_usd: float | None = None
    """Of all attempts; None when the usage of one or the model's price is unknown; never a guess."""
    latency_ms: float = 0.0
    """Of the whole call, retries included."""
    model: str = ""
    """Name of the model as the server spells it."""
    retries: int = 0
    sampled: Sampled | None = None
    """Log-probabilities of its tokens, hidden ones included; None when they were not requested."""


class Spending(Protocol):
    """Where a completer reserves before it spends, and reports what it spent."""

    async def reserve(self, bound: Mapping[str, float | None]) -> None:
        """Set aside the most that a call can use (``usd``, ``tokens``; None: unknown), waiting for room.

        Raises BudgetError when there will be none.
        """
        ...

    def settle(self, bound: Mapping[str, float | None], *, usd: float | None, tokens: int | None) -> None:
        """End the reservation of `bound` and count what was used.

        None means unknown: the whole reservation then counts as spent.
        """
        ...


class Completer(Protocol):
    """A language model."""

    name: str
    """Its spec: ``openai:<model>``, with ``@<endpoint>`` unless that is the default one."""
    identity: Mapping[str, Json]
    """What makes two completers the same: model, address, options; never a key."""
    paid: bool
    """True when calls may cost money."""
    price: Price | None
    """What its tokens cost; None when that is unknown."""
    concurrency: int | None
    """Calls in flight at most, with those of other models of its endpoint; None: no limit."""

    async def complete(self, request: Request) -> Completion:
        """Make one call; retries are inside.

        Raises ModelError when there is no usable answer, and BudgetError when the call was not made.
        """
        ...

    def bound(self, request: Request) -> Mapping[str, float | None]:
        """Return the most that `request` can use: ``usd`` and ``tokens``; None where unknown."""
        ...
