"""What a trace is published as: trajectories, feedback, and dead letters for what cannot be one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import field

from pytest_tfgrpo.core.events import EventRefusal
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.assembly.done_traces import DoneRun, DoneTrace
from pytest_tfgrpo.production.assembly.open_traces import OpenTrace
from pytest_tfgrpo.production.assembly.outcome_events import feedback_event
from pytest_tfgrpo.production.assembly.trajectories import (
    trajectory_digest,
    trajectory_event,
    trajectory_id,
)
from pytest_tfgrpo.production.bus.dead_letters import DeadLetter, dead_event
from pytest_tfgrpo.production.bus.streams import SPANS_SUBJECT
from pytest_tfgrpo.production.door.payloads import bus_event
from pytest_tfgrpo.production.span_events import SPANS
from pytest_tfgrpo.storage.event_store import BusEvent
from pytest_tfgrpo.telemetry.traces.dialects.genai_logs import NO_SPAN
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, RefusedTrace, TraceOutcome

ASSEMBLER = "assembler"
MOST_REVISIONS = 100
"""Of one trajectory."""
_SHOWN = 20
"""Spans that a dead letter names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRun:
    """The trajectory of a run, to be published."""

    span: str
    """Id of the agent's span."""
    done: DoneRun
    session: str
    user: str
    ended_s: float
    """Seconds since 1970."""
    event: BusEvent


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceEvents:
    """What a trace is published as."""

    runs: list[PublishedRun] = field(default_factory=list)
    others: list[BusEvent] = field(default_factory=list)


def events_of(trace: str, found: OpenTrace, done: DoneTrace | None) -> TraceEvents:
    """Return what a trace is published as, beside what is done of it already.

    A run that says more than its trajectory does becomes the next revision of that.
    """
    result = found.result()
    made = TraceEvents()
    known = {} if done is None else done.runs
    for run in result.runs:
        if not run.key[1] and done is not None and done.full:
            made.others.append(dead(trace, RefusedTrace.NO_RUN.value, "a run without an agent", [], found.at))
        else:
            made.others.extend(_run(run, made.runs, known.get(run.key[1]), found))
    spans = {one.span for one in made.runs} | known.keys()
    for about, outcome in result.strays:
        made.others.extend(stray_events(trace, about, outcome, spans, found.at))
    reasons: dict[RefusedTrace, list[str]] = {}
    for one in result.refused:
        reasons.setdefault(one.reason, []).append(one.key[1] if one.key else "")
    for reason, ids in reasons.items():
        made.others.append(dead(trace, reason.value, f"{len(ids)} spans", ids, found.at))
    return made


def _run(
    run: AgentRun, runs: list[PublishedRun], known: DoneRun | None, found: OpenTrace
) -> Iterator[BusEvent]:
    trace, span = run.key
    revision = 1 if known is None else known.revision + 1
    event = trajectory_event(run, revision)
    if isinstance(event, EventRefusal):
        if known is None:
            message = f"{event.pointer} {event.message}"
            yield dead(trace, event.fault.value, message, [span], found.at)
        return
    digest = trajectory_digest(event.data)
    if known is None or (known.digest != digest and revision <= MOST_REVISIONS):
        published = PublishedRun(
            span=span,
            done=DoneRun(revision, digest),
            session=run.session or trace,
            user=run.user,
            ended_s=run.agent.end_ns / 1e9,
            event=bus_event(event, event.time),
        )
        runs.append(published)
    for outcome in run.outcomes:
        if outcome.place in found.fresh:
            yield _feedback(trace, span, outcome, run.session, found.at)


def stray_events(
    trace: str, about: str, outcome: TraceOutcome, runs: Collection[str], at: str
) -> Iterator[BusEvent]:
    """Yield the feedback of an evaluation that comes apart from the run that it is about.

    It is about the run of the span that it names, or the only one of its trace; the trajectory of a run that
    is not known here may still be known elsewhere.
    """
    span = about if about in runs or len(runs) != 1 else next(iter(runs))
    yield _feedback(trace, "" if span == NO_SPAN else span, outcome, "", at)


def _feedback(trace: str, span: str, outcome: TraceOutcome, session: str, at: str) -> BusEvent:
    event = feedback_event(outcome, trajectory_id(trace, span), session)
    if isinstance(event, EventRefusal):
        return dead(trace, event.message.partition(":")[0], event.message, [span], at)
    return bus_event(event, event.time)


def dead(trace: str, code: str, message: str, spans: list[str], at: str) -> BusEvent:
    """Return the dead letter of spans of a trace; it has their ids and none of their texts."""
    shown = sorted(spans)[:_SHOWN]
    data = json.dumps({"trace_id": trace, "span_ids": shown}, separators=(",", ":"))
    letter = DeadLetter(
        code=code,
        message=message,
        stream=SPANS,
        consumer=ASSEMBLER,
        subject=SPANS_SUBJECT,
        time=at,
        data=data.encode(),
    )
    return dead_event(letter, at)
