"""One run of an agent, made of the spans that belong to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.traces.calls import steps_of_calls
from pytest_tfgrpo.traces.messages import conversation
from pytest_tfgrpo.traces.turns import (
    AgentRun,
    SpanEvent,
    SpanKey,
    SpanReading,
    TraceOutcome,
    TraceStep,
)


@dataclass(slots=True)
class SpanNode:
    """What is kept of a span: not its texts, which repeat the whole conversation in each turn."""

    key: SpanKey
    parent: str
    place: str
    name: str = ""
    start_ns: int = 0
    end_ns: int = 0
    error: str | None = None
    reading: SpanReading = field(default_factory=SpanReading)
    marks: tuple[SpanEvent, ...] = ()
    whole: bool = True


class SpanPlace(NamedTuple):
    """Where a span is: its outermost agent, and the nearest marks around that."""

    top: SpanKey | None
    around: tuple[SpanEvent, ...]
    looped: bool = False
    closed: bool = False
    """The spans around it are here, up to a root."""


NOWHERE = SpanPlace(None, ())
ROOT = SpanPlace(None, (), closed=True)
LOOPED = SpanPlace(None, (), looped=True)
_NOBODY = TraceStep(kind="agent", name="", start_ns=0, end_ns=0, error=None)
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)
"""What a dialect raises for content that it cannot read."""


def is_turn(node: SpanNode) -> bool:
    """Return whether a span is one call of a model."""
    return node.reading.step is not None and node.reading.step.kind == "turn"


def run_of_trace(trace: str, nodes: Sequence[SpanNode]) -> AgentRun:
    """Return the run that a trace without agents is: that of its root.

    A trace without a root has the name and the error of its first call of a model or a tool.
    """
    roots = [node for node in nodes if not node.parent]
    steps = [node for node in nodes if node.reading.step is not None]
    top = min(roots or steps, key=lambda node: (node.start_ns, node.key))
    end_ns = top.end_ns if roots else max(node.end_ns for node in steps)
    agent = TraceStep(kind="agent", name=top.name, start_ns=top.start_ns, end_ns=end_ns, error=top.error)
    return replace(run_of(top, nodes, ROOT if roots else NOWHERE, agent=agent), key=(trace, ""))


def run_of(
    top: SpanNode,
    nodes: Iterable[SpanNode],
    place: SpanPlace,
    *,
    around: Sequence[SpanNode] = (),
    agent: TraceStep | None = None,
) -> AgentRun:
    """Return the run of an agent's span.

    `nodes` are the spans within it, itself among them, and `around` those that it is in, the nearest first;
    `agent` is its step where the span itself has none.
    """
    within = sorted(nodes, key=lambda node: (node.start_ns, node.end_ns, node.key))
    agent = top.reading.step if agent is None else agent
    assert agent is not None
    readings = [top.reading, *(node.reading for node in (*around, *within) if node is not top)]
    marks = [mark for node in within for mark in node.marks]
    steps = _steps(within)
    run = AgentRun(
        key=top.key,
        agent=_with_texts(agent, top.reading, steps),
        steps=steps,
        outcomes=(),
        marks=tuple(sorted(marks, key=lambda mark: mark.at_ns)) or place.around,
        place=top.place,
        closed=place.closed,
        session=_session(readings),
        user=next((one.user for one in readings if one.user), ""),
        notes=_notes(readings),
    )
    return with_outcomes(run, [outcome for node in within for outcome in node.reading.outcomes])


def steps_of(nodes: Iterable[SpanNode]) -> tuple[TraceStep, ...]:
    """Return the turns and tool calls of spans of one trace, also the calls that messages alone tell of."""
    within = sorted(nodes, key=lambda node: (node.start_ns, node.end_ns, node.key))
    steps = tuple(_with_arguments(_steps(within)))
    agents = (node.reading.step for node in within if node.reading.step is not None)
    agent = next((step for step in agents if step.kind == "agent"), _NOBODY)
    return (*steps, *steps_of_calls(agent, steps))


def with_outcomes(run: AgentRun, outcomes: Iterable[TraceOutcome]) -> AgentRun:
    """Return a run with more outcomes."""
    several = sorted((*run.outcomes, *outcomes), key=lambda outcome: outcome.at_ns)
    return replace(run, outcomes=tuple(several))


def _steps(within: Sequence[SpanNode]) -> tuple[TraceStep, ...]:
    """Return turns and tool calls, with what log records tell of the messages of a turn that has none."""
    told: dict[str, list[SpanReading]] = {}
    for node in within:
        if node.reading.inputs or node.reading.outputs:
            told.setdefault(node.parent, []).append(node.reading)
    steps = []
    for node in within:
        step = node.reading.step
        if step is None or step.kind == "agent":
            continue
        records = told.get(node.key[1])
        steps.append(_with_messages(step, records) if records and step.kind == "turn" else step)
    return tuple(steps)


def _with_arguments(steps: Sequence[TraceStep]) -> Iterator[TraceStep]:
    """Yield the steps; a call whose span has only a text has the arguments that the model's message gives."""
    told: dict[str, str] = {}
    for call in (call for step in steps for call in step.calls if call.id):
        known = told.setdefault(call.id, call.arguments)
        told[call.id] = known if known == call.arguments else ""  # one id for two calls names neither
    for step in steps:
        given = told.get(step.call, "") if step.kind == "tool" and step.call else ""
        yield replace(step, asked=given) if given and not step.asked.startswith("{") else step


def _with_messages(step: TraceStep, records: Sequence[SpanReading]) -> TraceStep:
    if step.asked or step.answered or step.calls:
        return step
    inputs = [message for one in records for message in one.inputs]
    try:
        said = conversation(inputs, [message for one in records for message in one.outputs])
    except UNREADABLE:
        return step
    return replace(
        step,
        asked=said.asked,
        answered="" if step.error is not None else said.answered,
        thoughts=said.thoughts,
        calls=said.calls,
        answers=said.answers,
    )


def _with_texts(agent: TraceStep, reading: SpanReading, steps: Sequence[TraceStep]) -> TraceStep:
    """Return the step of an agent, with what went into its span and came out where no message says it."""
    turns = [step for step in steps if step.kind == "turn"]
    if reading.asked and not agent.asked and not any(turn.asked for turn in turns):
        agent = replace(agent, asked=reading.asked)
    if reading.answered and not agent.answered and not (turns and turns[-1].answered):
        agent = replace(agent, answered=reading.answered)
    return agent


def _session(readings: Sequence[SpanReading]) -> str:
    """Return the first session that is not the id of a step's conversation, or else that."""
    said = [
        one.session
        for one in readings
        if one.session and (one.step is None or one.session != one.step.conversation)
    ]
    return next(iter((*said, *(one.session for one in readings if one.session))), "")


def _notes(readings: Sequence[SpanReading]) -> Mapping[str, Json]:
    notes: dict[str, Json] = {}
    for one in reversed(readings):
        notes |= one.shared_notes
    for one in reversed(readings):
        notes |= one.notes
    return notes


def with_calls(run: AgentRun) -> AgentRun:
    """Return a run with a step for each call that only messages tell of."""
    told = steps_of_calls(run.agent, run.steps)
    if not told:
        return run
    steps = sorted((*told, *run.steps), key=lambda step: step.start_ns)
    return replace(run, steps=tuple(steps))
