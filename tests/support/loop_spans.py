"""Spans of small agents as events of RL_SPANS, and what an assembler made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_tfgrpo.production.bus.dead_letters import DeadLetter, dead_letter_of
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import DEAD, SPANS_SUBJECT
from pytest_tfgrpo.production.span_events import encode_opt_out, encode_spans, event_id
from pytest_tfgrpo.storage.event_store import BusEvent
from pytest_tfgrpo.telemetry.traces.turns import SpanEvent, TraceSpan

BORN_NS = 1_800_000_000_000_000_000
ROOT, AGENT, TURN, TOOL, ANSWER = 1, 2, 3, 4, 5
"""Numbers of the spans of `agent_trace`."""


def trace_id(number: int) -> str:
    """Return the id of the trace with a number."""
    return f"{number:032x}"


def span_id(number: int) -> str:
    """Return the id of the span with a number."""
    return f"{number:016x}"


def a_span(
    trace: int,
    number: int,
    operation: str = "",
    *,
    parent: int = 0,
    at: int | None = None,
    lasts: int = 1,
    events: tuple[SpanEvent, ...] = (),
    attributes: Mapping[str, Any] | None = None,
    failed: bool = False,
) -> TraceSpan:
    """Return a span; it starts `at`, or as many seconds after the first as its number says."""
    start = BORN_NS + (number if at is None else at) * 10**9
    given = {"gen_ai.operation.name": operation} if operation else {}
    if operation == "chat":
        given["gen_ai.request.model"] = "m"
    return TraceSpan(
        key=(trace_id(trace), span_id(number)),
        parent=span_id(parent) if parent else "",
        name=operation or "request",
        start_ns=start,
        end_ns=start + lasts * 10**9,
        attributes={**given, **(attributes or {})},
        events=events,
        failed=failed,
    )


def message(role: str, text: str) -> str:
    """Return a message as the attributes of GenAI spans have it."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def agent_trace(trace: int, **notes: Any) -> list[TraceSpan]:
    """Return the spans of an agent that asks a tool once, as they end: the root last."""
    asked = {"gen_ai.input.messages": message("user", f"question {trace}")}
    return [
        a_span(trace, TURN, "chat", parent=AGENT, attributes=asked),
        a_span(
            trace,
            TOOL,
            "execute_tool",
            parent=AGENT,
            attributes={"gen_ai.tool.name": "look", "gen_ai.tool.call.arguments": f'{{"n":{trace}}}'},
        ),
        a_span(
            trace,
            ANSWER,
            "chat",
            parent=AGENT,
            attributes={**asked, "gen_ai.output.messages": message("assistant", f"answer {trace}")},
        ),
        a_span(
            trace,
            AGENT,
            "invoke_agent",
            parent=ROOT,
            lasts=10,
            attributes={
                "gen_ai.agent.name": "toy",
                "session.id": f"session {trace}",
                **{f"tfgrpo.{name}": value for name, value in notes.items()},
            },
        ),
        a_span(trace, ROOT, lasts=20),
    ]


def evaluation(score: Any, *, name: str = "helpfulness", at: int = 30, label: str = "") -> SpanEvent:
    """Return the event of an evaluation."""
    found = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": score}
    found |= {"gen_ai.evaluation.score.label": label} if label else {}
    return SpanEvent("gen_ai.evaluation.result", BORN_NS + at * 10**9, found)


def spans_event(*spans: TraceSpan) -> BusEvent:
    """Return the event with spans of one trace."""
    return _event(encode_spans(spans[0].key[0], spans))


def opt_out_event(trace: int) -> BusEvent:
    """Return the event that a trace opted out."""
    return _event(encode_opt_out(trace_id(trace)))


def _event(data: bytes) -> BusEvent:
    return BusEvent(id=event_id(data), subject=SPANS_SUBJECT, time="2027-01-15T08:00:00.000Z", data=data)


def publish(bus: Bus, *spans: TraceSpan) -> None:
    """Publish spans, each an event of its own."""
    bus.publish([spans_event(span) for span in spans])


def payloads(bus: Bus, stream: str = "RL_TRAJECTORIES") -> list[dict[str, Any]]:
    """Return the payloads in a stream."""
    return [json.loads(event.data) for event in bus.replay(stream)]


def published(bus: Bus, streams: Iterable[str] = ("RL_TRAJECTORIES", "RL_FEEDBACK", DEAD)) -> list[Any]:
    """Return ids and data of all that is in some streams."""
    return [(event.id, event.time, event.data) for stream in streams for event in bus.replay(stream)]


def letters(bus: Bus) -> list[DeadLetter]:
    """Return the dead letters."""
    return [dead_letter_of(event) for event in bus.replay(DEAD)]
