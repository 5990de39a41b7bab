"""The normal form of a trace: what its spans amount to, whatever wrote them and however often.

* A span of a model's call that has neither model, usage, messages nor error is no turn, nor is one around
  several turns that says nothing of its own call.
* A turn within a turn, and a tool within a tool of the same name or call, is the same call seen twice.
* A turn beside another, within its time, is the same call too if it has the id of its answer, or the same
  model and no messages; so is one that only ends a stream.
* An agent that hands its run over to others within it, one after the other, is one run with them.

All readers of traces start from it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

from pytest_tfgrpo.telemetry.traces.messages import conversation
from pytest_tfgrpo.telemetry.traces.turns import UNREADABLE, SpanEvent, SpanKey, SpanReading, TraceStep

_HANDOFF = re.compile(r"(?i)^(?:transfer|hand_?off)")
"""Names of the tools by which an agent lets another go on."""
_Number = TypeVar("_Number", int, float)
_NO_TOOLS = frozenset({"(merged tools)"})
"""Names of spans that a framework writes around several calls."""


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
    service: str = ""
    """Of its resource."""


@dataclass(slots=True)
class NormalForm:
    """Where the spans of traces are, and the steps that they amount to."""

    order: list[SpanKey]
    """Spans that are in no circle, those around others before these."""
    looped: list[SpanKey]
    closed: set[SpanKey]
    """Spans around which all are here, up to a root."""
    steps: dict[SpanKey, TraceStep]
    """By the span that stands for them."""
    outer: dict[SpanKey, SpanKey | None]
    """The nearest span around each one that has a step."""
    agent: dict[SpanKey, SpanKey | None]
    """The agent in whose run each span is; of an agent's own span, that itself."""
    holder: dict[SpanKey, SpanKey | None]
    """The agent in whose run each agent was started, by the agent; those around others come first."""

    def kind(self, key: SpanKey | None) -> str:
        """Return the kind of a span's step; empty where it has none."""
        step = None if key is None else self.steps.get(key)
        return "" if step is None else step.kind


def normal_form(nodes: Mapping[SpanKey, SpanNode]) -> NormalForm:
    """Return the normal form of spans, which may be of several traces and in any order."""
    order, looped = _parents_first(nodes)
    closed: set[SpanKey] = set()
    for key in order:
        if not nodes[key].parent or (key[0], nodes[key].parent) in closed:
            closed.add(key)
    steps = _first_steps(nodes, order)
    _leave_out_wrappers(nodes, order, steps)
    hosts = _join_calls(nodes, order, steps)
    _fill_texts(nodes, steps)
    outer = _outer(nodes, order, steps, hosts)
    agent, holder = _join_agents(nodes, order, steps, outer)
    return NormalForm(
        order=order, looped=looped, closed=closed, steps=steps, outer=outer, agent=agent, holder=holder
    )


def _parents_first(nodes: Mapping[SpanKey, SpanNode]) -> tuple[list[SpanKey], list[SpanKey]]:
    """Return the spans in the order of their depths, and those that are in or below a circle."""
    order: list[SpanKey] = []
    placed: dict[SpanKey, bool] = {}
    for key in nodes:
        path: list[SpanKey] = []
        at, sound = key, True
        on_path: set[SpanKey] = set()
        while at in nodes and at not in placed:
            if at in on_path:
                sound = False
                break
            path.append(at)
            on_path.add(at)
            at = (at[0], nodes[at].parent)
        sound = sound and placed.get(at, True)
        for one in reversed(path):
            placed[one] = sound
            if sound:
                order.append(one)
    return order, [key for key, sound in placed.items() if not sound]


def _first_steps(nodes: Mapping[SpanKey, SpanNode], order: Iterable[SpanKey]) -> dict[SpanKey, TraceStep]:
    """Return the steps of spans, with the messages of log records below them."""
    told: defaultdict[SpanKey, list[SpanNode]] = defaultdict(list)
    for key in order:
        node = nodes[key]
        if node.reading.inputs or node.reading.outputs:
            told[(key[0], node.parent)].append(node)
    steps = {}
    for key in order:
        step = nodes[key].reading.step
        if step is None or (step.kind == "tool" and step.name in _NO_TOOLS):
            continue
        if step.kind == "turn":
            if records := told.get(key):
                step = _with_messages(step, sorted(records, key=_when))
            if not _says(step) and step.error is None and not step.model:
                continue
        steps[key] = step
    known = {key[0] for key, step in steps.items() if step.kind == "turn" and _says(step)}
    for key in [key for key in steps if key[0] in known and _only_prepares(nodes[key], steps[key])]:
        del steps[key]
    return steps


def _only_prepares(node: SpanNode, step: TraceStep) -> bool:
    """Return whether a span says what it was given, and this is no call of a model, beside some that are."""
    return step.kind == "turn" and step.error is None and node.reading.texts and not _says(step)


def _fill_texts(nodes: Mapping[SpanKey, SpanNode], steps: dict[SpanKey, TraceStep]) -> None:
    """Give the turns of which no message is known what went into their spans and came out of them."""
    for key, step in steps.items():
        reading = nodes[key].reading
        if step.kind == "turn" and not _has_messages(step) and (reading.asked or reading.answered):
            answered = "" if step.error is not None else reading.answered
            steps[key] = replace(step, asked=reading.asked, answered=answered)


def _when(node: SpanNode) -> tuple[int, int, SpanKey]:
    return node.start_ns, node.end_ns, node.key


def _has_messages(step: TraceStep) -> bool:
    return bool(step.asked or step.answered or step.calls or step.thoughts)


def _says(step: TraceStep) -> bool:
    """Return whether a turn has usage or messages."""
    return step.tokens is not None or step.cost_usd is not None or _has_messages(step)


def _with_messages(step: TraceStep, records: Sequence[SpanNode]) -> TraceStep:
    if _has_messages(step):
        return step
    inputs = [message for one in records for message in one.reading.inputs]
    try:
        said = conversation(inputs, [message for one in records for message in one.reading.outputs])
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


def _outer(
    nodes: Mapping[SpanKey, SpanNode],
    order: Iterable[SpanKey],
    steps: Mapping[SpanKey, TraceStep],
    hosts: Mapping[SpanKey, SpanKey],
) -> dict[SpanKey, SpanKey | None]:
    """Return the nearest span around each one that has a step, or the one that it was joined to."""
    outer: dict[SpanKey, SpanKey | None] = {}
    for key in order:
        parent: SpanKey = (key[0], nodes[key].parent)
        parent = hosts.get(parent, parent)
        outer[key] = parent if parent in steps else outer.get(parent)
    return outer


def _leave_out_wrappers(
    nodes: Mapping[SpanKey, SpanNode], order: Sequence[SpanKey], steps: dict[SpanKey, TraceStep]
) -> None:
    """Take away the turns that say nothing themselves and hold several."""
    outer = _outer(nodes, order, steps, {})
    inner: defaultdict[SpanKey, list[SpanKey]] = defaultdict(list)
    for key in reversed(order):
        step, around = steps.get(key), outer[key]
        if step is None or step.kind != "turn":
            continue
        found = inner[key]
        wraps = len(found) > 1 and not _says(step)
        if wraps:
            del steps[key]
        if around is not None and steps[around].kind == "turn":
            inner[around] += found if wraps else [key]


def _join_calls(
    nodes: Mapping[SpanKey, SpanNode], order: Sequence[SpanKey], steps: dict[SpanKey, TraceStep]
) -> dict[SpanKey, SpanKey]:
    """Join what is the same call of a model or a tool; return for each joined span the one that stands."""
    outer = _outer(nodes, order, steps, {})
    hosts: dict[SpanKey, SpanKey] = {}
    joined: defaultdict[SpanKey, list[SpanKey]] = defaultdict(list)
    for key in order:
        around = outer[key]
        if key in steps and around is not None and _is_same(steps[around], steps[key]):
            hosts[key] = hosts.get(around, around)
            joined[hosts[key]].append(key)
    for key, host in _siblings(nodes, order, steps, hosts):
        if host not in hosts and key not in joined:
            hosts[key] = host
            joined[host].append(key)
    for host, keys in joined.items():
        keys.sort(key=lambda key: _when(nodes[key]))
        steps[host] = _joined(steps[host], [steps.pop(key) for key in keys])
    return hosts


def _is_same(around: TraceStep, step: TraceStep) -> bool:
    if around.kind != step.kind or step.kind == "agent":
        return False
    same_call = bool(step.call) and step.call == around.call
    return step.kind == "turn" or same_call or step.name == around.name


def _siblings(
    nodes: Mapping[SpanKey, SpanNode],
    order: Iterable[SpanKey],
    steps: Mapping[SpanKey, TraceStep],
    hosts: Mapping[SpanKey, SpanKey],
) -> Iterator[tuple[SpanKey, SpanKey]]:
    """Yield the turns beside others that are the same call, each with that one."""
    beside: defaultdict[SpanKey, list[SpanKey]] = defaultdict(list)
    for key in order:
        if key in steps and steps[key].kind == "turn" and key not in hosts:
            beside[(key[0], nodes[key].parent)].append(key)
    for keys in beside.values():
        keys.sort(key=lambda key: (nodes[key].start_ns, -nodes[key].end_ns, key))
        last: SpanKey | None = None
        for key in keys:
            if last is not None and (
                _is_seen_again(steps[last], steps[key]) or _ends_stream(steps[last], steps[key])
            ):
                yield key, last
            else:
                last = key


def _is_seen_again(around: TraceStep, step: TraceStep) -> bool:
    """Return whether a turn is the call of another: by the id of its answer, or without messages."""
    within = around.start_ns <= step.start_ns and step.end_ns <= around.end_ns
    if step.response and around.response:
        return within and step.response == around.response
    tokens_fit = step.tokens is None or around.tokens in (None, step.tokens)
    same_model = not (step.model and around.model) or step.model == around.model
    return within and same_model and tokens_fit and _has_messages(around) and not _has_messages(step)


def _ends_stream(before: TraceStep, step: TraceStep) -> bool:
    """Return whether a turn without duration is the answer of one that has none."""
    answers = step.answered or step.answers or step.tokens is not None
    silent = not before.answered and not before.answers and before.tokens is None and before.error is None
    same = before.asked == step.asked and before.model == step.model and before.end_ns <= step.start_ns
    return bool(answers) and silent and same and step.start_ns == step.end_ns


def _joined(step: TraceStep, inner: Sequence[TraceStep]) -> TraceStep:
    """Return a call with what only the spans within its own say."""
    told = [one for one in (step, *reversed(inner)) if _has_messages(one)] or [step]
    texts = next((one for one in told if one.answered or one.answers), told[0])
    error = step.error
    if error is None and not texts.answered and not texts.calls:
        error = inner[-1].error
    return replace(
        step,
        name=step.name or next((one.name for one in inner if one.name), ""),
        error=error,
        model=step.model or next((one.model for one in inner if one.model), ""),
        temperature=next((one.temperature for one in (step, *inner) if one.temperature is not None), None),
        tokens=_total(step.tokens, [one.tokens for one in inner]),
        cost_usd=_total(step.cost_usd, [one.cost_usd for one in inner]),
        call=step.call or next((one.call for one in inner if one.call), ""),
        asked=step.asked or texts.asked,
        answered="" if error is not None else step.answered or texts.answered,
        thoughts=texts.thoughts,
        calls=texts.calls,
        answers=texts.answers,
    )


def _join_agents(
    nodes: Mapping[SpanKey, SpanNode],
    order: Sequence[SpanKey],
    steps: dict[SpanKey, TraceStep],
    outer: Mapping[SpanKey, SpanKey | None],
) -> tuple[dict[SpanKey, SpanKey | None], dict[SpanKey, SpanKey | None]]:
    """Join agents that are one run; return in whose run each span is, and who started each agent."""
    agent: dict[SpanKey, SpanKey | None] = {}
    holder: dict[SpanKey, SpanKey | None] = {}
    own: defaultdict[SpanKey, list[SpanKey]] = defaultdict(list)
    inner: defaultdict[SpanKey, list[SpanKey]] = defaultdict(list)
    for key in order:
        around = agent.get((key[0], nodes[key].parent))
        step = steps.get(key)
        is_agent = step is not None and step.kind == "agent"
        agent[key] = key if is_agent else around
        if is_agent:
            holder[key] = around
        if step is not None and around is not None:
            (inner if is_agent and outer[key] == around else own)[around].append(key)
    hosts = _handed_over(nodes, steps, own, holder)
    for key in reversed(order):
        found = followers([nodes[one] for one in inner[key]], [nodes[one] for one in own[key]])
        if found:
            hosts.update((node.key, key) for node in found)
    joined: defaultdict[SpanKey, list[SpanKey]] = defaultdict(list)
    for key in hosts:
        joined[hosts[key]].append(key)
    for key in reversed(order):
        if key in joined:
            after = sorted(joined[key], key=lambda one: _when(nodes[one]))
            steps[key] = joined_agents(steps[key], [steps[one] for one in after])
    for key in order:  # those around others come first
        if key in hosts:
            hosts[key] = hosts.get(hosts[key], hosts[key])
            del steps[key], holder[key]
    for key, found_agent in agent.items():
        agent[key] = found_agent and hosts.get(found_agent, found_agent)
    for key, around in holder.items():
        holder[key] = around and hosts.get(around, around)
    return agent, holder


def _handed_over(
    nodes: Mapping[SpanKey, SpanNode],
    steps: Mapping[SpanKey, TraceStep],
    own: Mapping[SpanKey, Sequence[SpanKey]],
    agents: Iterable[SpanKey],
) -> dict[SpanKey, SpanKey]:
    """Return the agents that go on beside others whose last call handed the run over, each with that one."""
    beside: defaultdict[SpanKey, list[SpanKey]] = defaultdict(list)
    for key in agents:
        beside[(key[0], nodes[key].parent)].append(key)
    hosts: dict[SpanKey, SpanKey] = {}
    for keys in beside.values():
        keys.sort(key=lambda key: _when(nodes[key]))
        for before, after in pairwise(keys):
            last = max(own.get(before, ()), key=lambda key: _when(nodes[key]), default=None)
            apart = nodes[before].end_ns <= nodes[after].start_ns
            if last is not None and apart and _HANDOFF.search(steps[last].name):
                hosts[after] = hosts.get(before, before)
    return hosts


def followers(agents: Iterable[SpanNode], own: Iterable[SpanNode]) -> list[SpanNode]:
    """Return the agents that go on with a run, whose `own` steps end before they start, in their order.

    None do if some are at work at the same time.
    """
    last_ns = max((node.start_ns for node in own), default=-1)
    found = sorted((node for node in agents if node.start_ns >= last_ns), key=_when)
    apart = all(later.start_ns >= node.end_ns for node, later in pairwise(found))
    return found if apart else []


def joined_agents(step: TraceStep, inner: Sequence[TraceStep]) -> TraceStep:
    """Return the step of an agent with what only those within it say."""
    first, last = inner[0], inner[-1]
    answered = step.answered or last.answered
    error = step.error if step.error is not None or answered else last.error
    texts = step if step.calls else last
    return replace(
        step,
        name=step.name or next((one.name for one in inner if one.name), ""),
        error=error,
        asked=step.asked or first.asked,
        answered="" if error is not None else answered,
        conversation=step.conversation or first.conversation,
        model=step.model or last.model,
        tokens=_total(step.tokens, [one.tokens for one in inner]),
        cost_usd=_total(step.cost_usd, [one.cost_usd for one in inner]),
        calls=texts.calls,
        answers=texts.answers,
    )


def _total(own: _Number | None, inner: Iterable[_Number | None]) -> _Number | None:
    """Return what a span says, or else the sum of what those within it say."""
    if own is not None:
        return own
    said = [one for one in inner if one is not None]
    return sum(said[1:], said[0]) if said else None
