"""Events of the feedback loop: subjects, the envelope, and what is refused, with a code and a JSON pointer.

Payloads are those of the feedback loop's source under decisions 29, 31 and 38; their schemas are packaged
under ``core/schemas/agent-rl``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID, uuid5

from pytest_tfgrpo.core.python.clock import utc_now, utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.wire.fitting import FitPath, UnfitError, ValueScrubber, fit
from pytest_tfgrpo.core.wire.schema import pointer, violations
from pytest_tfgrpo.core.wire.wire import Json

TRAJECTORY = "agent.rl.trajectory.v1"
REWARD = "agent.rl.reward.v1"
FEEDBACK = "agent.rl.feedback.v1"
TRAINING_REQUEST = "agent.rl.training.request.v1"
TRAINING_STATUS = "agent.rl.training.status.v1"
MODEL_DEPLOYED = "agent.rl.model.deployed.v1"
SCHEMAS = MappingProxyType(
    {
        TRAJECTORY: "agent-rl/trajectory",
        REWARD: "agent-rl/reward",
        FEEDBACK: "agent-rl/feedback",
        TRAINING_REQUEST: "agent-rl/training-request",
        TRAINING_STATUS: "agent-rl/training-status",
        MODEL_DEPLOYED: "agent-rl/model-deployed",
    }
)
"""The packaged schema of each subject's payload."""
ENVELOPE = "agent-rl/event"
LARGEST_EVENT = 1_000_000
"""Bytes of an event as JSON, once long texts are cut; a NATS server takes no more than 1 MiB by default."""
LARGEST_INPUT = 64_000_000
"""Bytes of JSON that are read at all."""
TOLERANCE = 1e-6
"""Difference of a total from its recomputation that is put down to rounding (decision 29)."""
NAMESPACE = UUID("7f1b6a52-0b51-5b0e-9f3f-3d1f6f0c5a6e")
"""Of the ids that follow from content."""
_IDS = ("trajectory_id", "reward_id", "feedback_id", "training_job_id", "deployment_id")
_TIMES = ("timestamp", "start_timestamp", "end_timestamp")


class EventFault(StrEnum):
    """Why an event is refused."""

    SCHEMA = "schema"
    """It is not JSON, or breaks the schema of its envelope or payload."""
    NOT_FINITE = "not_finite"
    """A number is NaN, infinite, or too large for a float."""
    TOTAL_MISMATCH = "total_mismatch"
    """The total of a reward is not the weighted mean of its components."""
    UNKNOWN_SUBJECT = "unknown_subject"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, kw_only=True, slots=True)
class EventRefusal:
    """What is wrong with an event, and where."""

    fault: EventFault
    pointer: str
    """JSON pointer (RFC 6901) into the event; empty for the whole."""
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RlEvent:
    """An event whose envelope and payload are valid."""

    id: str
    """UUID in lower case; it dedupes."""
    subject: str
    time: str
    """ISO 8601 in UTC, to the millisecond."""
    data: Mapping[str, Json]
    """Payload; do not modify it."""

    def encode(self) -> bytes:
        """Return the event as JSON in ASCII."""
        return _encoded({"id": self.id, "subject": self.subject, "time": self.time, "data": self.data})


def derived_id(*parts: str) -> str:
    """Return a UUID (version 5) that depends on `parts` alone, so that repeats are harmless."""
    return str(uuid5(NAMESPACE, json.dumps(parts)))


def wrap(subject: str, data: Json, *, event_id: str | None = None, at: str | None = None) -> dict[str, Json]:
    """Return the unchecked envelope of a payload; without an id it follows from subject and content."""
    if event_id is None:
        event_id = derived_id(subject, json.dumps(data, sort_keys=True, default=str))
    return {"id": event_id, "subject": subject, "time": utc_now() if at is None else at, "data": data}


def check_event(raw: bytes | str | Json, scrubber: ValueScrubber | None = None) -> RlEvent | EventRefusal:
    """Return the event that `raw` (JSON, or its value) is, or why it is none.

    Its texts lose what `scrubber` finds, and the middle of what is over 64 KB.
    """
    try:
        if isinstance(raw, bytes | str):
            raw = _parsed(raw)
        value = _fitted(raw, scrubber)
        _check_schema(ENVELOPE, value, ())
        if value["subject"] not in SCHEMAS:
            hint = nearest(value["subject"], SCHEMAS)
            raise _Refused(EventFault.UNKNOWN_SUBJECT, ("subject",), f"{short(value['subject'])}{hint}")
        data = value["data"]
        _check_schema(SCHEMAS[value["subject"]], data, ("data",))
        _check_sums(value["subject"], data)
        event = _event(value)
        if (size := len(event.encode())) > LARGEST_EVENT:
            message = f"has {size} bytes; at most {LARGEST_EVENT} are allowed, once texts are cut"
            raise _Refused(EventFault.TOO_LARGE, (), message)
        return event
    except _Refused as refused:
        return EventRefusal(fault=refused.fault, pointer=pointer(refused.path), message=str(refused))


class _Refused(Exception):
    def __init__(self, fault: EventFault, path: FitPath, message: str) -> None:
        super().__init__(message)
        self.fault = fault
        self.path = path


def _parsed(raw: bytes | str) -> Json:
    if len(raw) > LARGEST_INPUT:
        raise _Refused(EventFault.TOO_LARGE, (), f"has {len(raw)} bytes; {LARGEST_INPUT} are read at most")
    try:
        return json.loads(raw)
    except RecursionError:
        raise _Refused(EventFault.SCHEMA, (), "is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise _Refused(EventFault.SCHEMA, (), f"is not UTF-8 at byte {error.start}") from None
    except ValueError as error:
        what = EventFault.NOT_FINITE if "integer string conversion" in str(error) else EventFault.SCHEMA
        raise _Refused(what, (), f"is not JSON: {error}") from None


def _fitted(value: Json, scrubber: ValueScrubber | None) -> Json:
    try:
        return fit(value, scrubber)
    except UnfitError as error:
        fault = EventFault.SCHEMA if error.finite else EventFault.NOT_FINITE
        raise _Refused(fault, error.path, str(error)) from None


def _check_schema(name: str, value: Json, path: FitPath) -> None:
    found = violations(name, value)
    if found:
        first = max(found, key=lambda violation: len(violation.path))
        raise _Refused(EventFault.SCHEMA, (*path, *first.path), first.message)


def _check_sums(subject: str, data: Mapping[str, Json]) -> None:
    """Check what a schema cannot: sums, counts, and days that a month does not have."""
    for name in _TIMES:
        if name in data and utc_time(data[name]) is None:
            raise _Refused(EventFault.SCHEMA, ("data", name), f"{short(data[name])} is not a time")
    if subject == TRAJECTORY and "tests" in (outcome := data.get("outcome", {})):
        tests = outcome["tests"]
        if tests["passed"] > tests["total"]:
            message = f"{tests['passed']} of {tests['total']} tests passed"
            raise _Refused(EventFault.SCHEMA, ("data", "outcome", "tests", "passed"), message)
    if subject == REWARD:
        total, whole = data["total_reward"], expected_total(data)
        if abs(total - whole) > TOLERANCE:
            message = f"is {short(total)}, but its components amount to {whole:.6g}"
            raise _Refused(EventFault.TOTAL_MISMATCH, ("data", "total_reward"), message)


def expected_total(reward: Mapping[str, Json]) -> float:
    """Return the total that a reward must have: the weighted mean of its components, 0 where blocked."""
    if reward.get("metadata", {}).get("hard_gate"):
        return 0.0
    parts = reward["reward_components"].values()
    weighted = math.fsum(part["weight"] * part["score"] for part in parts)
    return weighted / math.fsum(part["weight"] for part in parts)


def _event(value: dict[str, Json]) -> RlEvent:
    at = utc_time(value["time"])
    if at is None:
        raise _Refused(EventFault.SCHEMA, ("time",), f"{short(value['time'])} is not a time")
    data = value["data"]
    for name in _IDS:
        if name in data:
            data[name] = data[name].lower()
    return RlEvent(id=value["id"].lower(), subject=value["subject"], time=at, data=data)


def _encoded(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
