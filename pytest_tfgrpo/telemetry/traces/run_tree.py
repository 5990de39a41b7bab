"""The runs of traces in their normal form, and which of them called which."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from itertools import islice

from pytest_tfgrpo.telemetry.traces.normal_form import NormalForm, SpanNode, followers
from pytest_tfgrpo.telemetry.traces.runs import RunSpans, agent_of_trace, run_of
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, RefusedSpan, RefusedTrace, SpanKey, TraceStep

_FARTHEST = 100
"""Spans around an agent's in which session, user and notes are looked up."""


class RunTree:
    """The runs of spans: those that were called are made before their callers."""

    def __init__(
        self, nodes: Mapping[SpanKey, SpanNode], form: NormalForm, torn: Set[str], *, with_roots: bool
    ) -> None:
        """Sort the spans of all traces to the runs that they belong to.

        `torn` are traces that lack a span whose place is not known. `with_roots`: the turns outside of all
        agents are a run too.
        """
        self._nodes, self._form, self._torn = nodes, form, torn
        self._within: defaultdict[SpanKey, list[SpanNode]] = defaultdict(list)
        self.left: defaultdict[str, list[SpanNode]] = defaultdict(list)
        """Spans outside of all runs, by trace."""
        self.refused: list[RefusedSpan] = []
        for key in form.order:
            agent = form.agent[key]
            (self.left[key[0]] if agent is None else self._within[agent]).append(nodes[key])
        self._roots = list(self._take_roots()) if with_roots else []
        self._joined: dict[SpanKey, SpanKey] = {}
        """Agents that are no runs of their own, and the runs of roots that they go on with."""
        self._hand_over()
        self._callers = {key: self._caller(key) for key in form.holder if key not in self._joined}
        """Who called each agent; None: nobody."""

    def alone(self) -> dict[str, SpanKey]:
        """Return by trace the agent that is the only one there that no other called."""
        first = [key for key, caller in self._callers.items() if caller is None]
        several = Counter(trace for trace, _ in (*first, *self._roots))
        return {key[0]: key for key in first if several[key[0]] == 1 and self._is_whole(key)}

    def runs(self) -> dict[SpanKey, AgentRun]:
        """Return the runs that are whole by their keys."""
        made: dict[SpanKey, AgentRun] = {}
        inner: defaultdict[SpanKey, list[AgentRun]] = defaultdict(list)
        beneath: defaultdict[SpanKey, list[SpanNode]] = defaultdict(list)
        for key in (*reversed(self._callers), *self._roots):
            within, caller = self._within[key], self._callers.get(key)
            if caller is not None:
                beneath[caller] += (*within, *beneath[key])
            if not self._is_whole(key):
                place = self._nodes[key].place if key[1] else within[0].place
                self.refused.append(RefusedSpan(RefusedTrace.INCOMPLETE, place, key))
                continue
            top, agent = self._agent(key)
            around = tuple(islice(self._around(top.key), _FARTHEST))
            spans = RunSpans(
                key=key,
                top=top,
                within=within,
                around=around if caller is None else (),
                callers=() if caller is None else around,
                inner=inner[key],
                beneath=beneath[key],
                closed=top.key in self._form.closed,
                parent=caller,
            )
            made[key] = run_of(spans, self._form, agent=agent)
            if caller is not None:
                inner[caller].append(made[key])
        return made

    def _take_roots(self) -> Iterator[SpanKey]:
        """Take the spans outside of agents that are runs; beside agents only those that a root is around."""
        with_agents = {trace for trace, _ in self._within}
        for trace, nodes in self.left.items():
            rooted = [one for one in nodes if trace not in with_agents or one.key in self._form.closed]
            if any(self._form.kind(node.key) == "turn" for node in rooted):
                root: SpanKey = (trace, "")
                yield root
                self._within[root] = rooted
                taken = {node.key for node in rooted}
                self.left[trace] = [node for node in nodes if node.key not in taken]

    def _hand_over(self) -> None:
        """Join the agents below a root that go on with its run."""
        below: defaultdict[str, list[SpanNode]] = defaultdict(list)
        for key, holder in self._form.holder.items():
            if (
                holder is None
                and key in self._form.closed
                and self._form.kind(self._form.outer[key]) != "tool"
            ):
                below[key[0]].append(self._nodes[key])
        for root in self._roots:
            own = [node for node in self._within[root] if node.key in self._form.steps]
            for node in followers(below[root[0]], own):
                self._joined[node.key] = root
                self._within[root] += self._within.pop(node.key)

    def _caller(self, key: SpanKey) -> SpanKey | None:
        if (holder := self._form.holder[key]) is not None:
            return self._joined.get(holder, holder)
        root: SpanKey = (key[0], "")
        return root if root in self._within and key in self._form.closed else None

    def _is_whole(self, key: SpanKey) -> bool:
        return key[0] not in self._torn and all(node.whole for node in self._within[key])

    def _agent(self, key: SpanKey) -> tuple[SpanNode, TraceStep]:
        if not key[1]:
            joined = [one for one, root in self._joined.items() if root == key]
            return agent_of_trace(self._within[key], self._form, joined)
        node, step = self._nodes[key], self._form.steps[key]
        return node, step if step.name else replace(step, name=node.name)

    def _around(self, key: SpanKey) -> Iterator[SpanNode]:
        """Yield the spans around one, from the nearest on."""
        node = self._nodes[key]
        while node.parent and (outer := self._nodes.get((key[0], node.parent))) is not None:
            yield outer
            node = outer
