"""Spans, what a dialect reads from one, and the run of an agent that several amount to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass

if TYPE_CHECKING:
    from pytest_tfgrpo.core.wire.wire import Json

UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)
"""What a dialect raises for content that it cannot read."""
MARK = "tfgrpo."
"""Start of the names of events and attributes that are ours."""
SpanKey: TypeAlias = tuple[str, str]
"""Trace id of 32 hexadecimal digits, and span id of 16."""


class SpanEvent(NamedTuple):
    """Something that happened while a span was open."""

    name: str
    at_ns: int
    """Nanoseconds since 1970."""
    attributes: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceSpan:
    """A span that has ended."""

    key: SpanKey
    parent: str
    """Id of the span around it; empty for the root."""
    name: str
    start_ns: int
    """Nanoseconds since 1970."""
    end_ns: int
    attributes: Mapping[str, Json]
    events: tuple[SpanEvent, ...] = ()
    failed: bool = False
    """Its status is ERROR."""
    message: str = ""
    """Of the status."""
    place: str = ""
    """Where it stands, as ``file:line``."""
    resource: Mapping[str, Json] = field(default_factory=dict)
    """Attributes of what made it; shared by spans, do not modify it."""


class RefusedTrace(StrEnum):
    """Why a line, a span, a run or what a run says is not used."""

    BAD_MARK = "bad_mark"
    """A note of live RL in a span is not what live RL writes."""
    BAD_ID = "bad_id"
    """Trace or span id missing, or not hexadecimal digits of their length."""
    BAD_TEXT = "bad_text"
    """A text with a NUL or half a surrogate pair."""
    DUPLICATE = "duplicate"
    INCOMPLETE = "incomplete"
    """A run that lacks a span, which was refused."""
    LOOP = "loop"
    """Spans that are their own ancestors."""
    MALFORMED = "malformed"
    """A field of another type than OTLP has."""
    NO_RUN = "no_run"
    """A turn or tool call without an agent around it: orphaned, or of no agent."""
    NOT_JSON = "not_json"
    NOT_PROTOBUF = "not_protobuf"
    OUTCOME_NOT_A_NUMBER = "outcome_not_a_number"
    OUTCOME_OUT_OF_RANGE = "outcome_out_of_range"
    TOO_LARGE = "too_large"
    """A line or attribute beyond its limit."""


class RefusedSpan(NamedTuple):
    """Something that is not used, and where it stands."""

    reason: RefusedTrace
    place: str
    """Where it stands, as ``file:line``."""
    key: SpanKey | None = None
    """Of the span, as far as that is known."""
    parent: str = ""


class TraceCall(NamedTuple):
    """A call of a tool, as the messages to and from a model show it."""

    id: str
    """Empty where the messages have none."""
    name: str
    arguments: str
    """As JSON; a text that is none as it is."""
    result: str | None = None
    """None: not there yet."""
    failed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceStep:
    """What a dialect finds in one span."""

    kind: Literal["agent", "turn", "tool"]
    """A turn is one call of a model. Among the steps of a run, an agent is one that this run called."""
    name: str
    """Of agent, model or tool, as a person named it; empty where nobody did."""
    start_ns: int
    end_ns: int
    error: str | None
    """Message, or else type, of its error; None where it succeeded."""
    asked: str = ""
    """Last text of the user, or a tool's arguments: JSON with sorted names, or a plain text. Empty where
    content is not recorded."""
    answered: str = ""
    """Text of the model, or result of a tool; of one that failed, what its model received."""
    conversation: str = ""
    """Id of the conversation in the application."""
    model: str = ""
    temperature: float | None = None
    tokens: int | None = None
    """Read and written by a model; None where it is not said."""
    cost_usd: float | None = None
    thoughts: tuple[str, ...] = ()
    """What a model said to itself before it answered."""
    call: str = ""
    """Id of the call that a tool ran for."""
    calls: tuple[TraceCall, ...] = ()
    """Of a turn or an agent: the calls since the user's last message, those of its answer last."""
    answers: int = 0
    """How many of `calls` are of its answer."""
    response: str = ""
    """Provider's id of the answer of a turn."""
    ended: bool = True
    """False for a call without a known outcome."""
    span: SpanKey = field(default=("", ""), compare=False)
    """The span that stands for it; empty where there is none."""
    within: SpanKey | None = field(default=None, compare=False)
    """That of the tool call in which it was made; None: in none."""


class TraceOutcome(NamedTuple):
    """A score of a run; whether `value` is one is still open."""

    name: str
    value: Json
    """None where there is a label alone."""
    at_ns: int
    place: str
    label: str = ""
    explanation: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanReading:
    """What a dialect makes of a span."""

    step: TraceStep | None = None
    """None: of no interest except for its place in the tree."""
    asked: str = ""
    """What went into a span, for a run none of whose messages says it."""
    answered: str = ""
    """What came out of a span, likewise."""
    texts: bool = False
    """A model's call says these two, if only hidden, in the place of messages."""
    inputs: tuple[Json, ...] = ()
    """Of a log record: messages to the model whose call is the span above it."""
    outputs: tuple[Json, ...] = ()
    """Those of the model's answer."""
    outcomes: tuple[TraceOutcome, ...] = ()
    session: str = ""
    """Id of the conversation with the user; empty where the span has none."""
    user: str = ""
    """Whom the agent served, as the application names it."""
    notes: Mapping[str, Json] = field(default_factory=dict)
    """Attributes ``tfgrpo.*`` of the span, without that prefix."""
    shared_notes: Mapping[str, Json] = field(default_factory=dict)
    """Those of its resource, which hold where no span of a run says otherwise."""


Dialect: TypeAlias = Callable[[TraceSpan], SpanReading]
"""Raises ValueError, TypeError, KeyError or AttributeError for content that it cannot read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRun:
    """One run of an agent: its span, and what happened within but for the runs of agents that it called."""

    key: SpanKey
    """Of the agent's span; a trace without agents has no span id."""
    agent: TraceStep
    steps: tuple[TraceStep, ...]
    """Turns and calls of tools and agents, in the order of their starts."""
    outcomes: tuple[TraceOutcome, ...]
    """In the order of their times."""
    marks: tuple[SpanEvent, ...]
    """Events ``tfgrpo.*`` within the run, or else of the nearest span around it that has some."""
    place: str
    closed: bool = False
    """The spans around the agent's are all here, up to the root of the trace."""
    session: str = ""
    """As the agent's span, a span around it, or else one within says; the application's own before an id
    that a framework gave the conversation."""
    user: str = ""
    notes: Mapping[str, Json] = field(default_factory=dict)
    """As `session`; those of resources where no span has one of that name."""
    parent: SpanKey | None = None
    """Key of the run that called this one."""

    @property
    def error(self) -> str | None:
        """Why the run failed: the error of its agent, or of its last step if nothing answered after that."""
        last = self.steps[-1] if self.steps and not self.agent.answered else self.agent
        return self.agent.error if self.agent.error is not None else last.error

    @property
    def prompt(self) -> str:
        """The agent's task, as it says or as its first turn does."""
        return self.agent.asked or next((step.asked for step in self._turns()), "")

    @property
    def reply(self) -> str:
        """What the agent answered, as it says or as its last turn does; empty where it failed."""
        last = self.steps[-1].answered if self.steps and self.steps[-1].kind == "turn" else ""
        return "" if self.error is not None else self.agent.answered or last

    @property
    def model(self) -> str:
        """Model of the last turn that names one, or of the agent."""
        return next((step.model for step in (*reversed(self.steps), self.agent) if step.model), "")

    @property
    def temperature(self) -> float | None:
        """Temperature of the last turn that has one, or of the agent."""
        said = (step.temperature for step in (*reversed(self.steps), self.agent))
        return next((one for one in said if one is not None), None)

    @property
    def tokens(self) -> int | None:
        """Tokens that the turns read and wrote, or else what the agent says; None where nobody says it."""
        said = [step.tokens for step in self.steps if step.tokens is not None]
        return sum(said) if said else self.agent.tokens

    @property
    def cost_usd(self) -> float | None:
        """Cost of the turns, or else what the agent says; None where nobody says it."""
        said = [step.cost_usd for step in self.steps if step.cost_usd is not None]
        return sum(said) if said else self.agent.cost_usd

    def _turns(self) -> Iterator[TraceStep]:
        return (step for step in self.steps if step.kind == "turn")
