"""The door of the feedback loop: what comes in is opted out, redacted, checked, and then durable.

Nothing is kept of what opted out but that it did. What is refused is kept redacted, as a dead letter. A call
returns once all of it is durable; whoever repeats it after an error, or after a crash, stores nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from pytest_tfgrpo.core.events import EventFault, EventRefusal, derived_id
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.dead_letters import DeadLetter, dead_event
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import AUDIT_SUBJECT, SPANS_SUBJECT, STREAMS, by_subject
from pytest_tfgrpo.production.door.dropped_runs import DroppedRuns
from pytest_tfgrpo.production.door.opt_outs import DropReason, OptOuts, owe_sweep
from pytest_tfgrpo.production.door.payloads import PayloadDoor
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.door.seen_traces import SeenTraces
from pytest_tfgrpo.production.door.spans import KeptTrace, SpanDoor
from pytest_tfgrpo.production.span_events import encode_opt_out, event_id
from pytest_tfgrpo.storage.event_store import STATE, BusEvent
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, TraceSpan

_STREAMS = by_subject(STREAMS)


@dataclass(frozen=True, kw_only=True, slots=True)
class IntakeResult:
    """What became of what one call brought."""

    accepted: int
    """Durable, now or since an earlier call that brought the same."""
    opted_out: int
    refused: Mapping[int, EventRefusal] = field(default_factory=dict)
    """By the place in the call, from 0; pointers lead into the payload."""


class Intake:
    """Takes spans and payloads from outside; may be shared by threads."""

    def __init__(self, bus: Bus, scrubber: LoopScrubber, opt_outs: OptOuts) -> None:
        self._bus = bus
        self._scrubber = scrubber
        self._opt_outs = opt_outs
        self._spans = SpanDoor(scrubber, opt_outs)
        self._runs = DroppedRuns(bus, scrubber)
        self._payloads = PayloadDoor(scrubber, opt_outs, self._runs)
        self._seen = SeenTraces()

    def spans(self, found: Iterable[TraceSpan | RefusedSpan]) -> IntakeResult:
        """Take spans, and what was refused of them; raises BusError, and then all may be brought again."""
        spans = list(found)
        return self._settled(lambda: self._publish_spans(spans))

    def payloads(self, subject: str, payloads: Sequence[Json | bytes]) -> IntakeResult:
        """Take payloads of a subject, as JSON or its value.

        Raises BusError, and then all may be brought again.
        """
        self._runs.refresh()
        return self._settled(lambda: self._publish_payloads(subject, payloads))

    def _settled(self, publish: Callable[[], tuple[IntakeResult, list[BusEvent]]]) -> IntakeResult:
        """Return what became of events; those of whom was forgotten while they were stored go again.

        `publish` returns the result, and the events that say something.
        """
        self._opt_outs.refresh()
        version = self._opt_outs.version
        result, stored = publish()
        self._opt_outs.refresh()
        while self._opt_outs.version != version:
            version = self._opt_outs.version
            result, events = publish()
            kept = {event.id for event in events}
            for subject in {event.subject for event in stored}:
                if gone := [one.id for one in stored if one.subject == subject and one.id not in kept]:
                    self._bus.delete(_STREAMS[subject].name, gone)
            stored += events
            self._opt_outs.refresh()
        if result.opted_out:
            owe_sweep(self._bus.table(STATE))
        return result

    def _publish_spans(self, found: list[TraceSpan | RefusedSpan]) -> tuple[IntakeResult, list[BusEvent]]:
        at = utc_now()
        kept = self._spans.take(found, self._seen)
        events: list[BusEvent] = []
        notes: list[BusEvent] = []
        for trace in kept.traces:
            if trace.reason:
                notes += self._opted_out_trace(trace, at)
            else:
                events += [_spans_event(data, at) for data in trace.data]
        events += [dead_event(_dead_span(refusal), at) for refusal in kept.refused.values()]
        if never := [one for trace in kept.traces for one in trace.trajectories]:
            notes.append(self._runs.event(never, at))
        if events or notes:
            self._bus.publish(notes + events)
        for trace in kept.traces:
            if trace.reason or self._opt_outs.active:
                seen = self._seen.add(trace.id, trace.sessions, trace.users, dropped=bool(trace.reason))
                self._opt_outs.saw(seen.sessions, seen.users, trace.at)
        result = IntakeResult(
            accepted=kept.accepted,
            opted_out=kept.opted_out,
            refused={index: _refusal(refusal) for index, refusal in kept.refused.items()},
        )
        return result, events

    def _publish_payloads(
        self, subject: str, payloads: Sequence[Json | bytes]
    ) -> tuple[IntakeResult, list[BusEvent]]:
        at = utc_now()
        events: list[BusEvent] = []
        notes: list[BusEvent] = []
        refused: dict[int, EventRefusal] = {}
        opted_out = 0
        for index, payload in enumerate(payloads):
            found = self._payloads.take(subject, payload)
            self._opt_outs.saw(*found.about)
            if found.reason:
                opted_out += 1
                notes.append(_audit(found.what, found.ref, found.reason, at))
            elif found.event is not None:
                events.append(found.event)
            elif found.refusal is not None:
                refused[index] = found.refusal
                events.append(dead_event(found.letter, at))
        if events or notes:
            self._bus.publish(notes + events)
        accepted = len(payloads) - opted_out - len(refused)
        return IntakeResult(accepted=accepted, opted_out=opted_out, refused=refused), events

    def _opted_out_trace(self, trace: KeptTrace, at: str) -> list[BusEvent]:
        if trace.id in self._seen:
            return []
        audit = _audit("trace", self._scrubber.ref("trace", trace.id), trace.reason, at)
        return [audit, _spans_event(encode_opt_out(trace.id), at)]


def _spans_event(data: bytes, at: str) -> BusEvent:
    return BusEvent(id=event_id(data), subject=SPANS_SUBJECT, time=at, data=data)


def _audit(what: str, ref: str, reason: DropReason, at: str) -> BusEvent:
    """Return that something was not taken, under an id of its own, so that it counts once."""
    value = {"action": "opt_out", "what": what, "ref": ref, "reason": reason}
    data = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    return BusEvent(id=derived_id("opt_out", what, ref), subject=AUDIT_SUBJECT, time=at, data=data)


_FAULTS: Mapping[RefusedTrace, EventFault] = MappingProxyType({RefusedTrace.TOO_LARGE: EventFault.TOO_LARGE})


def _refusal(refused: RefusedSpan) -> EventRefusal:
    fault = _FAULTS.get(refused.reason, EventFault.SCHEMA)
    return EventRefusal(fault=fault, pointer="", message=f"{refused.place}: {refused.reason.value}")


def _dead_span(refused: RefusedSpan) -> DeadLetter:
    trace, span = refused.key or ("", "")
    where = f"span {span or '?'} of trace {trace or '?'} at {refused.place}"
    return DeadLetter(code=refused.reason.value, message=where, subject=SPANS_SUBJECT)
