"""The payload of a trajectory from one run of an agent, as its spans show it.

A model's call and a tool that it called are one turn; a call that no tool follows is an answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
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
from pytest_tfgrpo.core.wire.fitting import LONGEST, UnfitError, fit, fit_text
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.assembly.run_notes import metadata_of, outcome_of, profile_of, task_of
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, TraceStep

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


def trajectory_event_id(trajectory: str, revision: int = 1) -> str:
    """Return the id of the event that publishes a revision of a trajectory."""
    return derived_id("trajectory", trajectory, *([] if revision == 1 else [str(revision)]))


def trajectory_digest(payload: Mapping[str, Json]) -> str:
    """Return what two revisions of a trajectory have in common if they say the same."""
    metadata = {name: value for name, value in payload["metadata"].items() if name != "revision"}
    text = json.dumps({**payload, "metadata": metadata}, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def trajectory_event(run: AgentRun, revision: int = 1) -> RlEvent | EventRefusal:
    """Return the event of a run's trajectory, with texts cut until it is allowed, or why there is none."""
    payload = trajectory_of(run)
    if revision > 1:
        payload["metadata"]["revision"] = revision
    event_id, at = trajectory_event_id(payload["trajectory_id"], revision), payload["end_timestamp"]
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
    if run.parent is not None:
        payload["metadata"]["parent_trajectory_id"] = trajectory_id(*run.parent)
    if profile := profile_of(run):
        payload["subordinate_profile"] = profile
    return payload


def time_of(at_ns: int) -> str:
    """Return nanoseconds since 1970 as ISO 8601 in UTC, to the millisecond; of the years 1970 to 9999."""
    millis = min(max(at_ns, 0), _LAST_NS) // 1_000_000
    found = (_BORN + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds")
    return found.replace("+00:00", "Z")


def _turns(run: AgentRun) -> list[Json]:
    """Return the turns of a run. A turn of the model saw what came of all calls since its turn before.

    Where no turn of a model is known, a call saw what came of those that had ended before it.
    """
    turns: list[Json] = []
    unseen: list[TraceStep] = []
    silent = all(step.kind != "turn" for step in run.steps)
    for model, call in _actions(run):
        first = model or call
        assert first is not None
        turn: dict[str, Json] = {"turn_id": len(turns) + 1, "timestamp": time_of(first.start_ns)}
        if not turns:
            turn["observation"] = {"type": "user_message", "content": fit_text(run.prompt, longest=LONGEST)}
        elif unseen and (model is not None or (silent and first.start_ns >= unseen[-1].end_ns)):
            turn["observation"] = _seen(unseen)
            unseen = []
        if model is not None and model.thoughts:
            turn["thought_process"] = list(model.thoughts)
        turns.append(turn | (_answer(first) if call is None else _call(model, call)))
        if call is not None:
            unseen = [call] if silent else [*unseen, call]
    return turns


def _seen(calls: Sequence[TraceStep]) -> dict[str, Json]:
    """Return the observation of what came of calls."""
    texts = [step.answered or step.error for step in calls]
    by_agents = all(step.kind == "agent" for step in calls)
    return {
        "type": "subordinate_response" if by_agents else "tool_result",
        "content": fit_text("\n".join(filter(None, texts)), longest=LONGEST_SEEN),
    }


def _actions(run: AgentRun) -> Iterator[tuple[TraceStep | None, TraceStep | None]]:
    """Yield model's call and called tool or agent of each turn; of several, the first has the model's call.

    A run that has no call of a model answers as its agent does.
    """
    model: TraceStep | None = None
    for step in run.steps:
        if step.kind == "turn":
            if model is not None:
                yield model, None
            model = step
        else:
            yield model, step
            model = None
    silent = all(step.kind != "turn" for step in run.steps)
    if model is not None:
        yield model, None
    elif silent and (run.agent.answered or run.agent.error is not None or not run.steps):
        yield run.agent, None


def _call(model: TraceStep | None, tool: TraceStep) -> dict[str, Json]:
    said = "" if model is None else model.answered
    action = {
        "type": "subordinate_call" if tool.kind == "agent" else "tool_call",
        "tool_name": fit_text(tool.name)[:LONGEST_NAME],
        "tool_args": _arguments(tool.asked),
        "raw_response": said or None,
    }
    return {"action": action} | ({"result": _result(tool)} if tool.ended else {})


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
