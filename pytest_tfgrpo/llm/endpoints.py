"""What the models file says: named endpoints, their limits, batches and prices; never a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.sampled import LogProbKind
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.prices import PriceTable
from pytest_tfgrpo.llm.replies.thoughts import ThoughtTags

DEFAULT = "default"
"""Name of the endpoint that a spec without ``@<endpoint>`` means."""
HOSTED = "api.openai.com"
BASE_URL = f"https://{HOSTED}/v1"
BASE_URL_ENV = "OPENAI_BASE_URL"
KEY_ENV = "OPENAI_API_KEY"
OURS = frozenset(
    (
        *("max_completion_tokens", "max_tokens", "messages", "model", "n", "response_format"),
        *("stream", "stream_options", "tools"),
    )
)
"""Members of a request that ``extra_body`` must not change: the input, and what it may cost."""

SystemRole = Literal["system", "developer", "user"]
Structured = Literal["json_schema", "json_object", "none"]
LogProbs = Literal["off"] | LogProbKind
MaxTokensField = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Batching:
    """How the calls of an endpoint are made in batches."""

    gather_s: float = 10.0
    """A batch is submitted once no call has come for so long."""
    poll_s: float = 30.0
    """Time between two looks at a batch."""
    completion_window: str = "24h"
    """Within which the server promises to answer: hours or days."""
    price_factor: float = 0.5
    """What calls cost in a batch, as a part of the model's price."""

    @property
    def window_s(self) -> float:
        """The window in seconds."""
        return float(self.completion_window[:-1]) * (86400 if self.completion_window[-1] == "d" else 3600)


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """A server of the chat-completions protocol, and the dialect that it accepts."""

    name: str = DEFAULT
    base_url: str | None = None
    """None, for the default endpoint alone: the variable OPENAI_BASE_URL."""
    api_key_env: str | None = None
    """Name of the environment variable with the key; None: no key is sent."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers that hold no secret."""
    headers_env: Mapping[str, str] = field(default_factory=dict)
    """Headers whose values are in environment variables, by header name."""
    timeout_s: float = 60.0
    """Time for one call with all its retries."""
    retries: int = 4
    concurrency: int | Literal["auto"] | None = None
    """Calls in flight at most; auto: as many as it shows that it takes; None: as the setting says."""
    hedge_after_s: float | None = None
    """Seconds after which a call is sent a second time while the endpoint has idle places; None: never."""
    batch: Batching | None = None
    """Calls are made in batches; None: each by itself."""
    system_role: SystemRole = "system"
    """Name under which system messages are sent; ``user`` puts them into the user's first message."""
    max_tokens_field: MaxTokensField | None = None
    """None: max_completion_tokens at api.openai.com, max_tokens elsewhere."""
    max_tokens: int | None = None
    """Completion tokens of a call that sets no number; None: the setting max_tokens."""
    seed: bool = True
    """Whether the server takes a seed."""
    temperature: bool = True
    """Whether the model takes a temperature."""
    structured: Structured = "json_schema"
    """How the server receives the schema of an answer; as text if it cannot enforce one."""
    reasoning_effort: str | None = None
    thoughts: ThoughtTags = True
    """How thoughts that the server leaves in the text of a reply are separated from the answer."""
    logprobs: LogProbs = "off"
    """What the server's log-probabilities are, which no answer says; off: none are requested."""
    extra_body: Mapping[str, Json] = field(default_factory=dict)
    """Further members of each request."""
    free: bool = False
    """Calls cost nothing."""
    insecure: bool = False
    """Let a key go over plain http to another machine."""
    response_max_bytes: int = 4_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolShare:
    """An endpoint of a pool."""

    endpoint: str
    weight: int = 1
    """Its share of the calls, as a part of the sum of all weights."""
    model: str | None = None
    """How the endpoint calls the model; None: as the spec does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelsConfig:
    """Endpoints and pools by name, and prices."""

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    pools: Mapping[str, tuple[PoolShare, ...]] = field(default_factory=dict)
    """Endpoints that serve the same models; no name is that of an endpoint."""
    alike: frozenset[str] = frozenset()
    """Pools of which any member may answer for another: who they are identifies no agent."""
    prices: PriceTable = field(default_factory=PriceTable)
    source: str = ""
    """The file, for messages; empty when there is none."""
    dry: bool = False
    """Nobody is called, so keys may be missing."""
