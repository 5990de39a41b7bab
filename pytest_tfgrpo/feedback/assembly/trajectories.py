"""The payload of a trajectory from one run of an agent, as its spans tell it.

A model's call and a tool that it asked for are one turn; a call that no tool follows is an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from pytest_tfgrpo.core.events import (
    TRAJECTORY,
    EventFault,
    EventRefusal,
    RlEvent,
    check_event,
    derived_id,
    wrap,
)
from pytest_tfgrpo.core.fitting import LONGEST, UnfitError, fit, fit_text
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.feedback.assembly.run_notes import metadata_of, outcome_of, profile_of, task_of
from pytest_tfgrpo.traces.turns import AgentRun, TraceStep

LONGEST_NAME = 256
"""Characters of an id or name."""
LONGEST_SEEN = 4096
"""Bytes of what a turn shows of the result before it, which that has whole."""
SHORTER = (16_384, 4096, 1024, 256)
"""Bytes that texts are cut to, one after the other, until a trajectory is small enough."""
NO_NAME = "agent"
"""Of an agent that has no name."""
_ROOM = 8
"""Levels of a payload above the arguments of a tool."""
_BORN = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS = 253_402_300_799_999_000_000
"""The end of the year 9999."""


def trajectory_id(trace: str, agent_span: str) -> str:
    """Return the id of a run's trajectory; a trace without an agent has the empty span id."""
    return derived_id("trajectory", trace, agent_span)


def trajectory_event_id(trajectory: str) -> str:
    """Return the id of the event that publishes a trajectory."""
    return derived_id("trajectory", trajectory)


def trajectory_event(run: AgentRun) -> RlEvent | EventRefusal:
    """Return the event of a run's trajectory, with texts cut until it is allowed, or why there is none."""
    payload = trajectory_of(run)
    event_id, at = trajectory_event_id(payload["trajectory_id"]), payload["end_timestamp"]
    found = check_event(wrap(TRAJECTORY, payload, event_id=event_id, at=at))
    for longest in SHORTER:
        if not isinstance(found, EventRefusal) or found.fault is not EventFault.TOO_LARGE:
            break
        found = check_event(wrap(TRAJECTORY, _cut(payload, longest), event_id=event_id, at=at))
    return found


def trajectory_of(run: AgentRun) -> dict[str, Json]:
    """Return the payload of a run, unchecked."""
    trace, span = run.key
    payload: dict[str, Json] = {
        "trajectory_id": trajectory_id(trace, span),
        "session_id": fit_text(run.session)[:LONGEST_NAME] or trace,
        "agent_id": fit_text(run.agent.name)[:LONGEST_NAME] or NO_NAME,
        "start_timestamp": time_of(run.agent.start_ns),
        "end_timestamp": time_of(run.agent.end_ns),
        "turns": _turns(run),
        "task_context": task_of(run),
        "outcome": outcome_of(run),
        "metadata": metadata_of(run),
    }
    if profile := profile_of(run):
        payload["subordinate_profile"] = profile
    return payload


def time_of(at_ns: int) -> str:
    """Return nanoseconds since 1970 as ISO 8601 in UTC, to the millisecond; of the years 1970 to 9999."""
    millis = min(max(at_ns, 0), _LAST_NS) // 1_000_000
    found = (_BORN + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds")
    return found.replace("+00:00", "Z")


def _turns(run: AgentRun) -> list[Json]:
    turns: list[Json] = []
    seen: tuple[str, str] | None = ("user_message", run.prompt)
    ended_ns = 0
    for model, tool in _actions(run):
        first = tool or model
        assert first is not None
        if (model or first).start_ns < ended_ns:  # the agent had not seen that result yet
            seen = None
        turn: dict[str, Json] = {"turn_id": len(turns) + 1, "timestamp": time_of((model or first).start_ns)}
        if seen is not None:
            kind, content = seen
            longest = LONGEST if kind == "user_message" else LONGEST_SEEN
            turn["observation"] = {"type": kind, "content": fit_text(content, longest=longest)}
        if model is not None and model.thoughts:
            turn["thought_process"] = list(model.thoughts)
        turns.append(turn | (_answer(first) if tool is None else _call(model, tool)))
        seen = None if tool is None else ("tool_result", tool.error or tool.answered)
        ended_ns = 0 if tool is None else max(ended_ns, tool.end_ns)
    return turns


def _actions(run: AgentRun) -> Iterator[tuple[TraceStep | None, TraceStep | None]]:
    """Yield model's call and tool of each turn; of several tools, the first has the call that asked for them.

    A run that has no call of a model answers as its agent does.
    """
    model: TraceStep | None = None
    answered = False
    for step in run.steps:
        if step.kind == "turn":
            if model is not None:
                yield model, None
            model = step
        else:
            yield model, step
            model = None
        answered = answered or step.kind == "turn"
    if model is not None:
        yield model, None
    elif not answered and (run.agent.answered or run.agent.error is not None or not run.steps):
        yield run.agent, None


def _call(model: TraceStep | None, tool: TraceStep) -> dict[str, Json]:
    said = "" if model is None else model.answered
    return {
        "action": {
            "type": "tool_call",
            "tool_name": fit_text(tool.name)[:LONGEST_NAME],
            "tool_args": _arguments(tool.asked),
            "raw_response": said or None,
        },
        "result": _result(tool),
    }


def _answer(step: TraceStep) -> dict[str, Json]:
    action = {"type": "response", "tool_name": None, "raw_response": step.answered}
    return {"action": action, "result": _result(step)}


def _result(step: TraceStep) -> dict[str, Json]:
    return {
        "success": step.error is None,
        "output": step.answered if step.error is None else None,
        "error": step.error,
        "execution_time_ms": max(step.end_ns - step.start_ns, 0) / 1e6,
    }


def _arguments(text: str) -> Json:
    """Return the arguments of a tool: as JSON where they are JSON that may be kept, or as they are."""
    try:
        found = json.loads(text) if text[:1] in ("{", "[") else text
        nested: Json = found
        for _ in range(_ROOM):
            nested = [nested]
        fit(nested)
    except (UnfitError, ValueError, RecursionError):
        return text
    return found


def _cut(value: Json, longest: int) -> Json:
    """Return a copy of a payload whose texts are at most so many bytes long, or as long as an id."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_NAME and value.isascii() else fit_text(value, longest=longest)
    if isinstance(value, list):
        return [_cut(one, longest) for one in value]
    if isinstance(value, dict):
        return {name: _cut(one, longest) for name, one in value.items()}
    return value
