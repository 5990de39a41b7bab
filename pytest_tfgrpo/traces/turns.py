"""Spans, and the runs of agents that they amount to: each a tree below its outermost agent.

Spans come late, twice and in any order, so that runs are made once all are there. What cannot be used is
refused, never repaired: a run that lacks one of its spans would look shorter than it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from pytest_tfgrpo.core.wire import Json

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


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceStep:
    """What a dialect finds in one span."""

    kind: Literal["agent", "turn", "tool"]
    """A turn is one call of a model."""
    name: str
    """Of agent, model or tool; empty where the span has none."""
    start_ns: int
    end_ns: int
    error: str | None
    """Message, or else type, of its error; None where it succeeded."""
    asked: str = ""
    """Last text of the user, or a tool's arguments as JSON; empty where content is not recorded."""
    answered: str = ""
    """Text of the model, or result of a tool that succeeded."""
    conversation: str = ""
    """Id that the application gave the conversation."""
    model: str = ""
    temperature: float | None = None
    tokens: int | None = None
    """Read and written by a model; None where it is not said."""
    cost_usd: float | None = None
    thoughts: tuple[str, ...] = ()
    """What a model said to itself before it answered."""


class TraceOutcome(NamedTuple):
    """A score of a run; whether `value` is one is still open."""

    name: str
    value: Json
    at_ns: int
    place: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanReading:
    """What a dialect makes of a span."""

    step: TraceStep | None = None
    """None: of no interest but for its place in the tree."""
    outcomes: tuple[TraceOutcome, ...] = ()
    session: str = ""
    """Id of the conversation with the user; empty where the span has none."""
    user: str = ""
    """Whom the agent served, as the application names it."""
    notes: Mapping[str, Json] = field(default_factory=dict)
    """Attributes ``tfgrpo.*`` of the span and its resource, without that prefix."""


Dialect: TypeAlias = Callable[[TraceSpan], SpanReading]
"""Raises ValueError, TypeError, KeyError or AttributeError for content that it cannot read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRun:
    """One run of an agent: an outermost agent's span, and what happened within."""

    key: SpanKey
    agent: TraceStep
    steps: tuple[TraceStep, ...]
    """Turns and tool calls, in the order of their starts."""
    outcomes: tuple[TraceOutcome, ...]
    """In the order of their times."""
    marks: tuple[SpanEvent, ...]
    """Events ``tfgrpo.*`` within the run, or else of the nearest span around it that has some."""
    place: str

    @property
    def prompt(self) -> str:
        """What the agent was asked, as it says or as its first turn does."""
        return self.agent.asked or next((step.asked for step in self._turns()), "")

    @property
    def reply(self) -> str:
        """What the agent answered, as it says or as its last turn does; empty where it failed."""
        said = [self.agent.answered, *(step.answered for step in self._turns())]
        return "" if self.agent.error is not None else said[0] or said[-1]

    def _turns(self) -> Iterator[TraceStep]:
        return (step for step in self.steps if step.kind == "turn")


@dataclass(slots=True)
class _Node:
    """What is kept of a span: not its texts, which repeat the whole conversation in each turn."""

    key: SpanKey
    parent: str
    place: str
    reading: SpanReading = field(default_factory=SpanReading)
    marks: tuple[SpanEvent, ...] = ()
    whole: bool = True


class _Place(NamedTuple):
    """Where a span is: its outermost agent, and the nearest marks around that."""

    top: SpanKey | None
    around: tuple[SpanEvent, ...]
    looped: bool = False


_NOWHERE = _Place(None, ())
_LOOPED = _Place(None, (), looped=True)
MARK = "tfgrpo."
"""Start of the names of events that are ours."""
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


class SpanForest:
    """Takes spans in any order, and gives the runs among them once all are there."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._nodes: dict[SpanKey, _Node] = {}
        self._torn: set[str] = set()
        """Traces in which a span without a place was refused."""
        self.refused: list[RefusedSpan] = []
        self.strays: dict[SpanKey, list[TraceOutcome]] = {}
        """Outcomes of spans that are not here, by the keys of these."""

    def take(self, found: Iterable[TraceSpan | RefusedSpan]) -> int:
        """Take spans, and what was refused of them; return how many were read."""
        number = 0
        for number, one in enumerate(found, 1):  # noqa: B007 - the last number counts
            if isinstance(one, RefusedSpan):
                self._refuse(one)
            elif one.key in self._nodes:
                self.refused.append(RefusedSpan(RefusedTrace.DUPLICATE, one.place, one.key))
            else:
                self._add(one)
        return number

    def _add(self, span: TraceSpan) -> None:
        try:
            reading = self._dialect(span)
        except UNREADABLE:
            self._refuse(RefusedSpan(RefusedTrace.MALFORMED, span.place, span.key, span.parent))
            return
        marks = tuple(event for event in span.events if event.name.startswith(MARK))
        self._nodes[span.key] = _Node(span.key, span.parent, span.place, reading, marks)

    def _refuse(self, refusal: RefusedSpan) -> None:
        self.refused.append(refusal)
        if refusal.key is not None:
            trace, own = refusal.key
            if not own:
                self._torn.add(trace)
            elif refusal.key not in self._nodes:
                self._nodes[refusal.key] = _Node(refusal.key, refusal.parent, refusal.place, whole=False)

    def runs(self) -> list[AgentRun]:
        """Return the runs that are whole, in the order of their starts; the rest joins what is refused."""
        places: dict[SpanKey, _Place] = {}
        members: dict[SpanKey, list[_Node]] = {}
        for key, node in self._nodes.items():
            place = self._place(key, places)
            step = node.reading.step
            if place.top is not None:
                members.setdefault(place.top, []).append(node)
            elif node.reading.outcomes and step is None and not place.looped:
                self.strays.setdefault((key[0], node.parent), []).extend(node.reading.outcomes)
            elif place.looped or (step is not None and step.kind != "agent"):
                reason = RefusedTrace.LOOP if place.looped else RefusedTrace.NO_RUN
                self.refused.append(RefusedSpan(reason, node.place, key))
        found = []
        for top, nodes in members.items():
            if top[0] in self._torn or not all(node.whole for node in nodes):
                self.refused.append(RefusedSpan(RefusedTrace.INCOMPLETE, self._nodes[top].place, top))
            else:
                found.append(_run(self._nodes[top], nodes, places[top].around))
        return sorted(found, key=lambda run: (run.agent.start_ns, run.key))

    def _place(self, key: SpanKey, places: dict[SpanKey, _Place]) -> _Place:
        """Return where a span is, without recursion: a chain of parents may be long, or a circle."""
        path: list[_Node] = []
        seen: set[SpanKey] = set()
        at: SpanKey = key
        place = places.get(at)
        while place is None:
            node = self._nodes.get(at)
            if at in seen:
                place = _LOOPED
            elif node is None:
                place = _NOWHERE
            else:
                seen.add(at)
                path.append(node)
                at = (at[0], node.parent)
                place = places.get(at) if node.parent else _NOWHERE
        for node in reversed(path):
            if place.top is None and not place.looped:
                step = node.reading.step
                is_top = step is not None and step.kind == "agent"
                place = _Place(
                    node.key if is_top else None, place.around if is_top else node.marks or place.around
                )
            places[node.key] = place
        return place


def _run(top: _Node, nodes: Iterable[_Node], around: tuple[SpanEvent, ...]) -> AgentRun:
    steps = []
    outcomes: list[TraceOutcome] = []
    marks: list[SpanEvent] = []
    for node in nodes:
        step = node.reading.step
        if step is not None and step.kind != "agent":
            steps.append((step.start_ns, step.end_ns, node.key, step))
        outcomes += node.reading.outcomes
        marks += node.marks
    agent = top.reading.step
    assert agent is not None
    return AgentRun(
        key=top.key,
        agent=agent,
        steps=tuple(step for *_, step in sorted(steps, key=lambda one: one[:3])),
        outcomes=tuple(sorted(outcomes, key=lambda outcome: outcome.at_ns)),
        marks=tuple(sorted(marks, key=lambda mark: mark.at_ns)) or around,
        place=top.place,
    )
