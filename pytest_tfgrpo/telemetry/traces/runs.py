"""One run of an agent, made of the spans that belong to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.calls import with_calls
from pytest_tfgrpo.telemetry.traces.normal_form import NormalForm, SpanNode, joined_agents
from pytest_tfgrpo.telemetry.traces.turns import (
    AgentRun,
    SpanEvent,
    SpanKey,
    SpanReading,
    TraceOutcome,
    TraceStep,
)

_NOBODY = TraceStep(kind="agent", name="", start_ns=0, end_ns=0, error=None)
_OF_THE_CALLER = ("policy_version", "lessons")
"""Notes of the run that called a run which hold for that too."""


@dataclass(slots=True)
class RunSpans:
    """The spans that one run is made of."""

    key: SpanKey
    """Of the run."""
    top: SpanNode
    within: list[SpanNode]
    """Itself and those in it, except for those of the agents that it called."""
    around: Sequence[SpanNode] = ()
    """Those that it is in, the nearest first, without those of its callers."""
    callers: Sequence[SpanNode] = ()
    """Those of its callers that it is in, the nearest first."""
    inner: list[AgentRun] = field(default_factory=list)
    """Runs of the agents that it called."""
    beneath: list[SpanNode] = field(default_factory=list)
    """Spans of these."""
    closed: bool = False
    parent: SpanKey | None = None


def run_of(spans: RunSpans, form: NormalForm, *, agent: TraceStep) -> AgentRun:
    """Return the run that spans are, of an agent whose step is `agent`."""
    within = sorted(spans.within, key=lambda node: (node.start_ns, node.end_ns, node.key))
    own = [spans.top.reading, *(node.reading for node in (*spans.around, *within) if node is not spans.top)]
    all_readings = [*own, *(node.reading for node in (*spans.callers, *spans.beneath))]
    marks = sorted((mark for node in (*within, *spans.beneath) for mark in node.marks), key=_at)
    steps = with_calls(agent, _with_agents(_steps(within, form), spans.inner, form))
    run = AgentRun(
        key=spans.key,
        agent=_with_texts(agent, spans.top.reading, steps),
        steps=steps,
        outcomes=(),
        marks=tuple(marks) or next((n.marks for n in (*spans.around, *spans.callers) if n.marks), ()),
        place=spans.top.place,
        closed=spans.closed,
        session=_session(all_readings),
        user=next((one.user for one in all_readings if one.user), ""),
        notes=dict(_notes_of_callers(spans.callers)) | _notes(own),
        parent=spans.parent,
    )
    return with_outcomes(run, [outcome for node in within for outcome in node.reading.outcomes])


def agent_of_trace(
    nodes: Sequence[SpanNode], form: NormalForm, agents: Iterable[SpanKey]
) -> tuple[SpanNode, TraceStep]:
    """Return the span that stands for a run outside of agents, and its step.

    That is the root. Spans without a root have the name and the error of their first call of a model or a
    tool. A framework's root has a name that a person gave; of others the `agents` that go on with the run,
    and the service, say more than the name of a request.
    """
    roots = [node for node in nodes if not node.parent]
    steps = [node for node in nodes if node.key in form.steps]
    top = min(roots or steps, key=lambda node: (node.start_ns, node.key))
    end_ns = top.end_ns if roots else max(node.end_ns for node in steps)
    is_framework = bool(roots and (top.reading.asked or top.reading.answered))
    step = replace(_NOBODY, start_ns=top.start_ns, end_ns=end_ns, error=top.error)
    found = sorted((form.steps[key] for key in agents), key=lambda step: step.start_ns)
    step = joined_agents(replace(step, name=top.name if is_framework else ""), found) if found else step
    return top, replace(step, name=step.name or (not is_framework and top.service) or top.name)


def steps_of(nodes: Iterable[SpanNode], form: NormalForm) -> tuple[TraceStep, ...]:
    """Return the turns and tool calls of spans of one trace, also the calls that only messages name."""
    within = sorted(nodes, key=lambda node: (node.start_ns, node.end_ns, node.key))
    agents = (form.steps[node.key] for node in within if node.key in form.steps)
    agent = next((step for step in agents if step.kind == "agent"), _NOBODY)
    return with_calls(agent, [step for _, step in _steps(within, form)])


def with_outcomes(run: AgentRun, outcomes: Iterable[TraceOutcome]) -> AgentRun:
    """Return a run with more outcomes."""
    several = sorted((*run.outcomes, *outcomes), key=lambda outcome: outcome.at_ns)
    return replace(run, outcomes=tuple(several))


def _at(mark: SpanEvent) -> int:
    return mark.at_ns


def _steps(within: Sequence[SpanNode], form: NormalForm) -> list[tuple[SpanKey, TraceStep]]:
    """Return turns and tool calls with their spans.

    A turn that holds the tools which it asked for, and a text without a call, is two: its model was asked
    again once the tools had answered.
    """
    holds = {form.outer[node.key] for node in within if form.kind(node.key) == "tool"}
    found = []
    for node in within:
        step = form.steps.get(node.key)
        if step is None or step.kind == "agent":
            continue
        step = replace(step, span=node.key, within=_tool_around(node.key, form))
        if step.kind == "turn" and node.key in holds and step.answered and not step.answers:
            found.append((node.key, replace(step, answered="", thoughts=())))
            step = replace(step, start_ns=step.end_ns, tokens=None, cost_usd=None, calls=())
        found.append((node.key, step))
    return sorted(found, key=lambda one: one[1].start_ns)


def _tool_around(key: SpanKey, form: NormalForm) -> SpanKey | None:
    """Return the nearest call of a tool around a span."""
    around = form.outer[key]
    while around is not None and form.kind(around) != "tool":
        around = form.outer[around]
    return around


def _with_agents(
    steps: Sequence[tuple[SpanKey, TraceStep]], inner: Iterable[AgentRun], form: NormalForm
) -> list[TraceStep]:
    """Return steps with those of the agents that were called: the tool that did it, or else one more."""
    calls = {key: at for at, (key, step) in enumerate(steps) if step.kind == "tool"}
    found = [step for _, step in steps]
    for run in inner:
        around = form.outer.get(run.key)
        while around is not None and around not in calls and form.kind(around) != "agent":
            around = form.outer[around]
        if around in calls:
            found[calls[around]] = replace(found[calls[around]], kind="agent")
        else:
            step = replace(_NOBODY, name=run.agent.name, start_ns=run.agent.start_ns, end_ns=run.agent.end_ns)
            found.append(replace(step, asked=run.prompt, answered=run.reply, error=run.error))
    return sorted(found, key=lambda step: step.start_ns)


def _with_texts(agent: TraceStep, reading: SpanReading, steps: Sequence[TraceStep]) -> TraceStep:
    """Return the step of an agent, with what went into its span and came out where no message says it.

    What went in says it better than the first message does if that only adds words around it; the result of
    the last tool says it better than what came out if that only adds more.
    """
    first = next((step.asked for step in steps if step.kind == "turn" and step.asked), "")
    if reading.asked and not agent.asked and (not first or reading.asked in first):
        agent = replace(agent, asked=reading.asked)
    last = steps[-1] if steps else agent
    if reading.answered and not agent.answered and agent.error is None:
        by_tool = last.kind != "turn" and last.answered and last.answered in reading.answered
        said = last.answered if by_tool or last.kind == "turn" else ""
        agent = replace(agent, answered=said or reading.answered)
    return agent


def _session(readings: Sequence[SpanReading]) -> str:
    """Return the first session that is not the id of a step's conversation, or else that."""
    said = [
        one.session
        for one in readings
        if one.session and (one.step is None or one.session != one.step.conversation)
    ]
    return next(iter((*said, *(one.session for one in readings if one.session))), "")


def _notes(readings: Sequence[SpanReading]) -> dict[str, Json]:
    notes: dict[str, Json] = {}
    for one in reversed(readings):
        notes |= one.shared_notes
    for one in reversed(readings):
        notes |= one.notes
    return notes


def _notes_of_callers(callers: Sequence[SpanNode]) -> Iterator[tuple[str, Json]]:
    for node in reversed(callers):
        yield from ((name, node.reading.notes[name]) for name in _OF_THE_CALLER if name in node.reading.notes)
