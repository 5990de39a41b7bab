"""The runs of agents among spans: each a tree below its outermost agent.

Spans come late, twice and in any order, so that runs are made once all are there. What cannot be used is
refused, never repaired: a run that lacks one of its spans would look shorter than it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.traces.calls import steps_of_calls
from pytest_tfgrpo.traces.genai import error_of
from pytest_tfgrpo.traces.turns import (
    AgentRun,
    Dialect,
    RefusedSpan,
    RefusedTrace,
    SpanEvent,
    SpanKey,
    SpanReading,
    TraceCall,
    TraceOutcome,
    TraceSpan,
    TraceStep,
)


@dataclass(slots=True)
class _Node:
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
        self._calls: dict[tuple[str, str], TraceCall] = {}
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
        reading = self._without_repeats(span.key[0], reading)
        marks = tuple(event for event in span.events if event.name.startswith(MARK))
        self._nodes[span.key] = _Node(
            key=span.key,
            parent=span.parent,
            place=span.place,
            name=span.name,
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            error=error_of(span),
            reading=reading,
            marks=marks,
        )

    def _without_repeats(self, trace: str, reading: SpanReading) -> SpanReading:
        """Return a reading whose calls are those of other turns where they are the same: each turn repeats
        those before it."""
        step = reading.step
        if step is None or not step.calls:
            return reading
        kept = []
        for call in step.calls:
            known = self._calls.get((trace, call.id))
            if known is None or (known.result is None and call.result is not None):
                self._calls[(trace, call.id)] = known = call
            kept.append(known if known == call else call)
        return replace(reading, step=replace(step, calls=tuple(kept)))

    def _refuse(self, refusal: RefusedSpan) -> None:
        self.refused.append(refusal)
        if refusal.key is not None:
            trace, own = refusal.key
            if not own:
                self._torn.add(trace)
            elif refusal.key not in self._nodes:
                self._nodes[refusal.key] = _Node(refusal.key, refusal.parent, refusal.place, whole=False)

    def runs(self, *, whole_trace: bool = False) -> list[AgentRun]:
        """Return the runs that are whole, in the order of their starts; the rest joins what is refused.

        With `whole_trace`, a trace without agents whose spans have a turn is a run too, and runs have a step
        for each call that messages tell of and that has no span.
        """
        places: dict[SpanKey, _Place] = {}
        members: dict[SpanKey, list[_Node]] = {}
        outside: dict[str, list[_Node]] = {}
        for key, node in self._nodes.items():
            place = self._place(key, places)
            if place.top is not None:
                members.setdefault(place.top, []).append(node)
            elif place.looped:
                self.refused.append(RefusedSpan(RefusedTrace.LOOP, node.place, key))
            else:
                outside.setdefault(key[0], []).append(node)
        found = []
        for top, nodes in members.items():
            if top[0] in self._torn or not all(node.whole for node in nodes):
                self.refused.append(RefusedSpan(RefusedTrace.INCOMPLETE, self._nodes[top].place, top))
            else:
                around = list(self._around(top))
                closed = not (around[-1] if around else self._nodes[top]).parent
                found.append(_run(self._nodes[top], nodes, around, closed, places[top].around))
        with_agents = {trace for trace, _ in members}
        for trace, nodes in outside.items():
            if not whole_trace or trace in with_agents or not any(map(_is_turn, nodes)):
                self._leave_out(nodes)
            elif trace in self._torn or not all(node.whole for node in nodes):
                self.refused.append(RefusedSpan(RefusedTrace.INCOMPLETE, nodes[0].place, (trace, "")))
            else:
                found.append(_whole_trace(trace, nodes))
        if whole_trace:
            found = [_with_calls(run) for run in found]
        return sorted(found, key=lambda run: (run.agent.start_ns, run.key))

    def _around(self, key: SpanKey) -> Iterator[_Node]:
        """Yield the spans around one that is in no loop, from the nearest on."""
        node = self._nodes[key]
        while node.parent and (outer := self._nodes.get((key[0], node.parent))) is not None:
            yield outer
            node = outer

    def _leave_out(self, nodes: Iterable[_Node]) -> None:
        for node in nodes:
            step = node.reading.step
            if node.reading.outcomes and step is None:
                self.strays.setdefault((node.key[0], node.parent), []).extend(node.reading.outcomes)
            elif step is not None and step.kind != "agent":
                self.refused.append(RefusedSpan(RefusedTrace.NO_RUN, node.place, node.key))

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


def _is_turn(node: _Node) -> bool:
    return node.reading.step is not None and node.reading.step.kind == "turn"


def _whole_trace(trace: str, nodes: list[_Node]) -> AgentRun:
    """Return the run that a trace without agents is: that of its root, or else of its earliest span."""
    roots = [node for node in nodes if not node.parent]
    top = min(roots or nodes, key=lambda node: (node.start_ns, node.key))
    agent = TraceStep(kind="agent", name=top.name, start_ns=top.start_ns, end_ns=top.end_ns, error=top.error)
    return replace(_run(top, nodes, (), bool(roots), (), agent), key=(trace, ""))


def _run(
    top: _Node,
    nodes: Iterable[_Node],
    around: Sequence[_Node],
    closed: bool,
    marks_around: tuple[SpanEvent, ...],
    agent: TraceStep | None = None,
) -> AgentRun:
    within = sorted(nodes, key=lambda node: (node.start_ns, node.end_ns, node.key))
    agent = top.reading.step if agent is None else agent
    assert agent is not None
    readings = [
        top.reading, *(node.reading for node in (*around, *within) if node is not top)
    ]  # fmt: skip
    outcomes = [outcome for node in within for outcome in node.reading.outcomes]
    marks = [mark for node in within for mark in node.marks]
    found = (node.reading.step for node in within)
    steps = tuple(step for step in found if step is not None and step.kind != "agent")
    return AgentRun(
        key=top.key,
        agent=_with_texts(agent, top.reading, steps),
        steps=steps,
        outcomes=tuple(sorted(outcomes, key=lambda outcome: outcome.at_ns)),
        marks=tuple(sorted(marks, key=lambda mark: mark.at_ns)) or marks_around,
        place=top.place,
        closed=closed,
        session=_session(readings),
        user=next((one.user for one in readings if one.user), ""),
        notes=_notes(readings),
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


def _with_calls(run: AgentRun) -> AgentRun:
    """Return a run with a step for each call that only messages tell of."""
    told = steps_of_calls(run.agent, run.steps)
    if not told:
        return run
    steps = sorted((*told, *run.steps), key=lambda step: step.start_ns)
    return replace(run, steps=tuple(steps))
