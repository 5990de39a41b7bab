"""The runs of agents among spans: each a tree below an agent, except for the agents that it called.

Spans come late, twice and in any order, so that runs are made once all are there. What cannot be used is
refused, never repaired: a run that lacks one of its spans would look shorter than it was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects.genai import error_of
from pytest_tfgrpo.telemetry.traces.normal_form import NormalForm, SpanNode, normal_form
from pytest_tfgrpo.telemetry.traces.run_tree import RunTree
from pytest_tfgrpo.telemetry.traces.runs import steps_of, with_outcomes
from pytest_tfgrpo.telemetry.traces.turns import (
    MARK,
    UNREADABLE,
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


class SpanForest:
    """Takes spans in any order, and returns the runs among them once all are there."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._nodes: dict[SpanKey, SpanNode] = {}
        self._calls: dict[tuple[str, str], TraceCall] = {}
        self._torn: set[str] = set()
        """Traces in which a span without a place was refused."""
        self._refused: list[RefusedSpan] = []
        """Of what was taken."""
        self.refused: list[RefusedSpan] = []
        """What is not used of what was taken, and of the last runs or steps."""
        self.strays: dict[SpanKey, list[TraceOutcome]] = {}
        """Outcomes of spans that are not here, by the keys of these."""

    def take(self, found: Iterable[TraceSpan | RefusedSpan]) -> int:
        """Take spans, and what was refused of them; return how many were read."""
        number = 0
        for number, one in enumerate(found, 1):  # noqa: B007 - the last number counts
            if isinstance(one, RefusedSpan):
                self._refuse(one)
            elif one.key in self._nodes:
                self._refused.append(RefusedSpan(RefusedTrace.DUPLICATE, one.place, one.key))
            else:
                self._add(one)
        self.refused = self._refused.copy()
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
            service=_service(span.resource),
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
        self._refused.append(refusal)
        if refusal.key is not None:
            trace, own = refusal.key
            if not own:
                self._torn.add(trace)
            elif refusal.key not in self._nodes:
                self._nodes[refusal.key] = SpanNode(refusal.key, refusal.parent, refusal.place, whole=False)

    def runs(self, *, whole_trace: bool = False) -> list[AgentRun]:
        """Return the runs that are whole, in the order of their starts; the rest joins what is refused.

        With `whole_trace`, the turns of a trace that lie outside of all agents are a run too, that of its
        root, which called the agents below it; and the only run of a trace that no other called has the
        outcomes of the spans around it.
        """
        form = self._normal_form()
        tree = RunTree(self._nodes, form, self._torn, with_roots=whole_trace)
        runs, alone = tree.runs(), tree.alone() if whole_trace else {}
        self.refused += tree.refused
        for trace, nodes in tree.left.items():
            outcomes = self._leave_out(nodes, form, strays=trace not in alone)
            if trace in alone:
                runs[alone[trace]] = with_outcomes(runs[alone[trace]], outcomes)
        return sorted(runs.values(), key=lambda run: (run.agent.start_ns, run.key))

    def steps(self) -> list[TraceStep]:
        """Return the turns and tool calls of all spans in the order of their starts, whatever is around them.

        Spans that are their own ancestors join what is refused.
        """
        form = self._normal_form()
        traces: defaultdict[str, list[SpanNode]] = defaultdict(list)
        for key in form.order:
            if self._nodes[key].whole:
                traces[key[0]].append(self._nodes[key])
        found = [step for nodes in traces.values() for step in steps_of(nodes, form)]
        return sorted(found, key=lambda step: step.start_ns)

    def _normal_form(self) -> NormalForm:
        form = normal_form(self._nodes)
        self.strays = {}
        self.refused = self._refused + [
            RefusedSpan(RefusedTrace.LOOP, self._nodes[key].place, key) for key in form.looped
        ]
        return form

    def _leave_out(self, nodes: Iterable[SpanNode], form: NormalForm, *, strays: bool) -> list[TraceOutcome]:
        """Refuse the steps of spans outside of agents; return their outcomes, or keep them as strays."""
        outcomes: list[TraceOutcome] = []
        for node in nodes:
            if node.key in form.steps:
                self.refused.append(RefusedSpan(RefusedTrace.NO_RUN, node.place, node.key))
            elif node.reading.outcomes and strays:
                self.strays.setdefault((node.key[0], node.parent), []).extend(node.reading.outcomes)
            else:
                outcomes += node.reading.outcomes
        return outcomes


def _service(resource: Mapping[str, Json]) -> str:
    """Return the name of a service, unless it is the one that an SDK gives to those without."""
    found = resource.get("service.name")
    return found if isinstance(found, str) and not found.startswith("unknown_service") else ""
