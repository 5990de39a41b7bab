"""The runs of agents among spans: each a tree below its outermost agent.

Spans come late, twice and in any order, so that runs are made once all are there. What cannot be used is
refused, never repaired: a run that lacks one of its spans would look shorter than it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from pytest_tfgrpo.traces.genai import error_of
from pytest_tfgrpo.traces.runs import (
    LOOPED,
    NOWHERE,
    ROOT,
    SpanNode,
    SpanPlace,
    is_turn,
    run_of,
    run_of_trace,
    steps_of,
    with_calls,
    with_outcomes,
)
from pytest_tfgrpo.traces.runs import (
    UNREADABLE as UNREADABLE,
)
from pytest_tfgrpo.traces.turns import (
    AgentRun,
    Dialect,
    RefusedSpan,
    RefusedTrace,
    SpanKey,
    SpanReading,
    TraceCall,
    TraceOutcome,
    TraceSpan,
    TraceStep,
)

_FARTHEST = 100
"""Spans around an agent's that are asked for session, user and notes."""
MARK = "tfgrpo."
"""Start of the names of events that are ours."""


class SpanForest:
    """Takes spans in any order, and gives the runs among them once all are there."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._nodes: dict[SpanKey, SpanNode] = {}
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
        marks = tuple(event for event in span.events if event.name.startswith(MARK)) if span.events else ()
        self._nodes[span.key] = SpanNode(
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
                self._nodes[refusal.key] = SpanNode(refusal.key, refusal.parent, refusal.place, whole=False)

    def runs(self, *, whole_trace: bool = False) -> list[AgentRun]:
        """Return the runs that are whole, in the order of their starts; the rest joins what is refused.

        With `whole_trace`, a trace without agents whose spans have a turn is a run too; a run that is alone
        in its trace has the outcomes of the spans around it; and runs have a step for each call that messages
        tell of and that has no span.
        """
        places: dict[SpanKey, SpanPlace] = {}
        members: dict[SpanKey, list[SpanNode]] = {}
        outside: dict[str, list[SpanNode]] = {}
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
                around = tuple(islice(self._around(top), _FARTHEST))
                found.append(run_of(self._nodes[top], nodes, places[top], around=around))
        with_agents = {trace for trace, _ in members}
        alone = _alone(found, members) if whole_trace else {}
        for trace, nodes in outside.items():
            if trace in alone:
                at = alone[trace]
                found[at] = with_outcomes(found[at], self._leave_out(nodes, strays=False))
            elif not whole_trace or trace in with_agents or not any(map(is_turn, nodes)):
                self._leave_out(nodes)
            elif trace in self._torn or not all(node.whole for node in nodes):
                self.refused.append(RefusedSpan(RefusedTrace.INCOMPLETE, nodes[0].place, (trace, "")))
            else:
                found.append(run_of_trace(trace, nodes))
        if whole_trace:
            found = [with_calls(run) for run in found]
        return sorted(found, key=lambda run: (run.agent.start_ns, run.key))

    def steps(self) -> list[TraceStep]:
        """Return the turns and tool calls of all spans in the order of their starts, whatever is around them.

        A turn within a turn is the same call of a model, seen by two instrumentations: it joins what is
        refused, as do spans that are their own ancestors.
        """
        places: dict[SpanKey, SpanPlace] = {}
        traces: dict[str, list[SpanNode]] = {}
        for key, node in self._nodes.items():
            if self._place(key, places).looped:
                self.refused.append(RefusedSpan(RefusedTrace.LOOP, node.place, key))
            elif is_turn(node) and any(map(is_turn, islice(self._around(key), _FARTHEST))):
                self.refused.append(RefusedSpan(RefusedTrace.DUPLICATE, node.place, key))
            elif node.whole:
                traces.setdefault(key[0], []).append(node)
        found = [step for nodes in traces.values() for step in steps_of(nodes)]
        return sorted(found, key=lambda step: step.start_ns)

    def _around(self, key: SpanKey) -> Iterator[SpanNode]:
        """Yield the spans around one that is in no loop, from the nearest on."""
        node = self._nodes[key]
        while node.parent and (outer := self._nodes.get((key[0], node.parent))) is not None:
            yield outer
            node = outer

    def _leave_out(self, nodes: Iterable[SpanNode], *, strays: bool = True) -> list[TraceOutcome]:
        """Refuse the steps of spans outside of agents; return their outcomes, or keep them as strays."""
        outcomes: list[TraceOutcome] = []
        for node in nodes:
            step = node.reading.step
            if step is not None and step.kind != "agent":
                self.refused.append(RefusedSpan(RefusedTrace.NO_RUN, node.place, node.key))
            elif node.reading.outcomes and strays:
                self.strays.setdefault((node.key[0], node.parent), []).extend(node.reading.outcomes)
            else:
                outcomes += node.reading.outcomes
        return outcomes

    def _place(self, key: SpanKey, places: dict[SpanKey, SpanPlace]) -> SpanPlace:
        """Return where a span is, without recursion: a chain of parents may be long, or a circle."""
        path: list[SpanNode] = []
        seen: set[SpanKey] = set()
        at: SpanKey = key
        place = places.get(at)
        while place is None:
            node = self._nodes.get(at)
            if at in seen:
                place = LOOPED
            elif node is None:
                place = NOWHERE
            else:
                seen.add(at)
                path.append(node)
                at = (at[0], node.parent)
                place = places.get(at) if node.parent else ROOT
        for node in reversed(path):
            if place.top is None and not place.looped:
                step = node.reading.step
                is_top = step is not None and step.kind == "agent"
                place = place._replace(
                    top=node.key if is_top else None,
                    around=place.around if is_top else node.marks or place.around,
                )
            places[node.key] = place
        return place


def _alone(runs: Iterable[AgentRun], tops: Iterable[SpanKey]) -> dict[str, int]:
    """Return the places of the runs whose agents are the only ones of their traces."""
    agents = Counter(trace for trace, _ in tops)
    return {run.key[0]: at for at, run in enumerate(runs) if agents[run.key[0]] == 1}
