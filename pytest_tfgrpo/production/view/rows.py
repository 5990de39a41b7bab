"""Rows of the view: what is kept of an event, without its texts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.events import (
    FEEDBACK,
    MODEL_DEPLOYED,
    REWARD,
    TOLERANCE,
    TRAJECTORY,
    EventFault,
    EventRefusal,
    check_event,
    derived_id,
    expected_total,
    wrap,
)
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.rewards.evidence import EFFICIENCY, EVALUATOR
from pytest_tfgrpo.production.rewards.history import NormalizedScore
from pytest_tfgrpo.production.view.recorded_texts import has_texts
from pytest_tfgrpo.production.view.wording import prompt_of, wording_of
from pytest_tfgrpo.storage.event_store import BusEvent

_PLACEHOLDER = re.compile(rb"\[redacted:([a-z_]{1,40}):([0-9a-f]{6})\]")
_LONGEST_NOTE = 500
"""Characters of a reason, or of a label, that are kept."""
_MOST_TURNS = 10_000
_LARGEST = 2**53
"""Whole number that is kept."""

Columns: TypeAlias = dict[str, Json]


class ViewRow(NamedTuple):
    """A row for one table."""

    table: str
    columns: Columns


def row_of(event: BusEvent, at: float) -> ViewRow | EventRefusal:
    """Return what is kept of an event of a stream that the view reads, or why it is no event.

    `at` is the latest arrival in its stream so far.
    """
    try:
        row = _READERS.get(event.subject, _checked_only)(event, at)
        if isinstance(row, ViewRow):
            _check_columns(row.columns)
        return row
    except RecursionError:
        return EventRefusal(fault=EventFault.SCHEMA, pointer="", message="is nested too deeply")
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        return EventRefusal(fault=EventFault.SCHEMA, pointer="", message=f"is no event: {error!a}"[:200])


def _check_columns(columns: Columns) -> None:
    """Raise TypeError or ValueError for what no column holds: whoever else publishes may write anything."""
    for name, value in columns.items():
        if isinstance(value, str):
            if not value.isascii():
                value.encode()
        elif isinstance(value, int):
            if not -_LARGEST <= value <= _LARGEST:
                raise ValueError(f"{name} is out of range")
        elif value is not None and not isinstance(value, float):
            raise TypeError(f"{name} is a {type(value).__name__}")


def _trajectory(event: BusEvent, at: float) -> ViewRow | EventRefusal:
    given = json.loads(event.data)
    turns = given["turns"]
    if not isinstance(turns, list) or len(turns) > _MOST_TURNS:
        message = f"is no list of at most {_MOST_TURNS} turns"
        return EventRefusal(fault=EventFault.SCHEMA, pointer="/data/turns", message=message)
    data = _checked(event, TRAJECTORY, {**given, "turns": []})
    if isinstance(data, EventRefusal):
        return data
    context, metadata = data["task_context"], data.get("metadata", {})
    trace, prompt = metadata.get("trace_id"), prompt_of(given)
    slim = {
        "trajectory_id": data["trajectory_id"],
        "session_id": data["session_id"],
        "end_timestamp": _said_at(data["end_timestamp"], at),
        "task_context": {name: context[name] for name in ("domain", "task_key") if name in context},
        "outcome": data.get("outcome", {}),
        "metadata": {name: metadata[name] for name in ("policy_version",) if name in metadata},
    }
    columns = {
        "id": data["trajectory_id"],
        "seq": event.sequence,
        "at": at,
        "time": _said_at(_time(event), at),
        "session": data["session_id"],
        "user_ref": metadata.get("user_ref"),
        "domain": context["domain"],
        "task_key": context.get("task_key"),
        "policy_version": metadata.get("policy_version"),
        "started": utc_time(data["start_timestamp"]),
        "ended": utc_time(data["end_timestamp"]),
        "turns": len(turns),
        "trace_id": trace if isinstance(trace, str) else None,
        "slim": _encoded(slim),
        "redacted": redacted_kinds(event.data),
        "revision": revision if isinstance(revision := metadata.get("revision"), int) else 1,
        "silent": int(not has_texts(given)),
        "blocked": int(data.get("outcome", {}).get("safety_blocked", False)),
        "agent": data["agent_id"],
        "profile": data.get("subordinate_profile"),
        "model": metadata.get("model"),
        "wording": wording_of(prompt) if prompt else None,
    }
    return ViewRow("trajectories", columns)


def _feedback(event: BusEvent, at: float) -> ViewRow | EventRefusal:
    data = _checked(event, FEEDBACK, json.loads(event.data))
    if isinstance(data, EventRefusal):
        return data
    kept = ("feedback_id", "trajectory_id", "timestamp", "type", "rating", "component", "score", "source")
    slim = {name: data[name] for name in kept if name in data}
    slim["timestamp"] = _said_at(data["timestamp"], at)
    if data["type"] == "label":
        slim["text"] = data["text"][:_LONGEST_NOTE]
    columns = _claim(event, at, data["feedback_id"], data, slim)
    return ViewRow("feedback", {**columns, "type": data["type"]})


def _reward(event: BusEvent, at: float) -> ViewRow | EventRefusal:
    data: Json = json.loads(event.data)
    if is_own(data):
        return ViewRow("rewards", _own_reward(event, at, data))
    data = _checked(event, REWARD, data)
    if isinstance(data, EventRefusal):
        return data
    parts = {
        name: {**part, "reasoning": part.get("reasoning", "")[:_LONGEST_NOTE]}
        for name, part in data["reward_components"].items()
    }
    slim = {name: data[name] for name in ("reward_id", "trajectory_id")}
    slim["timestamp"] = _said_at(data["timestamp"], at)
    slim |= {"reward_components": parts, "metadata": {"evaluator": data.get("metadata", {}).get("evaluator")}}
    columns = _claim(event, at, data["reward_id"], data, slim)
    more = {"own": 0, "revision": 0, "ordinal": 0, "total": data["total_reward"], "normalized": None}
    return ViewRow("rewards", {**columns, **more})


def is_own(data: Mapping[str, Json]) -> bool:
    """Return whether a reward was computed by this project's evaluator."""
    metadata = data.get("metadata", {})
    revision = metadata.get("revision")
    return (
        metadata.get("evaluator") == EVALUATOR
        and isinstance(metadata.get("ordinal"), int)
        and data["reward_id"] == derived_id("reward", data["trajectory_id"], str(revision))
    )


def _own_reward(event: BusEvent, at: float, data: Json) -> Columns:
    _check_own(data)
    slim = slim_reward(data)
    metadata = data["metadata"]
    return {
        **_claim(event, at, data["reward_id"], data, slim),
        "redacted": None,
        "own": 1,
        "revision": metadata["revision"],
        "ordinal": metadata["ordinal"],
        "total": data["total_reward"],
        "normalized": data["normalization"]["normalized_total"],
    }


def _check_own(data: Json) -> None:
    """Raise an error for what the next revision, or the history, could not use: others may write it too."""
    metadata, parts = data["metadata"], data["reward_components"]
    wholes = [metadata.get(name, 1) for name in ("revision", "ordinal", "turns")]
    if any(type(one) is not int or not 0 <= one <= _LARGEST for one in wholes):
        raise ValueError("its revision, ordinal or turns is no whole number")
    for part in parts.values():
        if not (0.0 <= part["score"] <= 1.0 and 0.0 < part["weight"] <= _LARGEST):
            raise ValueError("a component has no score from 0 to 1, or no weight")
    if EFFICIENCY in parts:
        NormalizedScore(**data["normalization"]["components"][EFFICIENCY])
    if not isinstance(metadata.get("domain", ""), str) or not isinstance(metadata.get("joined", []), list):
        raise TypeError("its domain or what joined is not as it should be")
    if not abs(data["total_reward"] - expected_total(data)) <= TOLERANCE:  # a NaN is no total either
        raise ValueError("its total is not that of its components")


def slim_reward(data: Mapping[str, Json]) -> dict[str, Json]:
    """Return what the next revision of a reward computed here, and the history, need of it."""
    parts = {
        name: {key: part[key] for key in ("score", "weight", "source")}
        for name, part in data["reward_components"].items()
    }
    normal = {}
    if EFFICIENCY in parts:
        parts[EFFICIENCY]["reasoning"] = data["reward_components"][EFFICIENCY].get("reasoning", "")
        normal[EFFICIENCY] = data["normalization"]["components"][EFFICIENCY]
    return {
        "trajectory_id": data["trajectory_id"],
        "reward_components": parts,
        "normalization": {"components": normal},
        "metadata": data["metadata"],
    }


def _claim(event: BusEvent, at: float, key: str, data: Json, slim: Mapping[str, Json]) -> Columns:
    return {
        "id": key,
        "event_id": event.id,
        "seq": event.sequence,
        "at": at,
        "time": _said_at(_time(event), at),
        "trajectory_id": data["trajectory_id"],
        "session": data.get("session_id"),
        "slim": _encoded(slim),
        "redacted": redacted_kinds(event.data),
    }


def _checked_only(event: BusEvent, at: float) -> ViewRow | EventRefusal:
    """Return that there is a valid event of a stream of which nothing else is kept."""
    data = _checked(event, event.subject, json.loads(event.data))
    if isinstance(data, EventRefusal):
        return data
    columns = {"seq": event.sequence, "id": event.id, "at": at, "redacted": redacted_kinds(event.data)}
    return ViewRow("deployments" if event.subject == MODEL_DEPLOYED else "training", columns)


def _dead(event: BusEvent, at: float) -> ViewRow | EventRefusal:
    try:
        letter = dead_letter_of(event)
    except BusError as error:
        return EventRefusal(fault=EventFault.SCHEMA, pointer="", message=str(error)[:200])
    columns = {
        "seq": event.sequence,
        "id": event.id,
        "at": at,
        "code": str(letter.code),
        "stream": str(letter.stream),
        "subject": str(letter.subject),
        "redacted": redacted_kinds(letter.data),
        "event_id": str(letter.id),
    }
    return ViewRow("dead", columns)


def _audit(event: BusEvent, at: float) -> ViewRow | EventRefusal:
    data = json.loads(event.data)
    columns = {
        "seq": event.sequence,
        "id": event.id,
        "at": at,
        "action": str(data["action"]),
        "what": str(data["what"]),
        "ref": str(data.get("ref") or ""),
        "event_id": event.id,
    }
    return ViewRow("audit", columns)


def _checked(event: BusEvent, subject: str, data: Json) -> Json | EventRefusal:
    found = check_event(wrap(subject, data, event_id=event.id, at=_time(event)))
    return found if isinstance(found, EventRefusal) else found.data


def _time(event: BusEvent) -> str:
    """Return when an event happened, or arrived: publishers that are not ours may write anything."""
    return utc_time(event.time) or _clock_time(event.arrived)


def _said_at(time: str, at: float) -> str:
    """Return a time, or when it arrived where that is earlier: a clock that is ahead beats no later word."""
    return min(utc_time(time) or time, _clock_time(at))


def _clock_time(seconds: float) -> str:
    return utc_time(datetime.fromtimestamp(seconds, UTC).isoformat()) or ""


def redacted_kinds(data: bytes) -> str | None:
    """Return how many values of each kind were taken out of some data, as JSON; None for none.

    A value counts once however often it stands there: a trajectory repeats questions and answers.
    """
    found = Counter(kind.decode() for kind, _ in set(_PLACEHOLDER.findall(data)))
    return _encoded(dict(sorted(found.items()))) if found else None


_encoded = json.JSONEncoder(separators=(",", ":")).encode


_READERS: Mapping[str, Callable[[BusEvent, float], ViewRow | EventRefusal]] = MappingProxyType(
    {
        TRAJECTORY: _trajectory,
        FEEDBACK: _feedback,
        REWARD: _reward,
        "agent.rl.dead.v1": _dead,
        "agent.rl.audit.v1": _audit,
    }
)
