"""Requests to train: read, checked, and what of one a job cannot do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pytest_tfgrpo.core.events import (
    TRAINING_REQUEST,
    EventFault,
    EventRefusal,
    check_event,
    derived_id,
    wrap,
)
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.fitting import ValueScrubber
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.storage.event_store import BusEvent

PRIORITIES = ("urgent", "high", "normal", "low")
"""Those that run first, first."""
DUPLICATE = "duplicate_data"
"""Why a request is refused whose id or watermark another job has."""
TFGRPO = "tfgrpo"
"""The algorithm that runs here; the others are an external trainer's."""
_USED = frozenset({"/training_config/hyperparameters/epochs"})
_PARTS = ("training_config/hyperparameters", "training_config/compute", "training_config/checkpointing")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingRequest:
    """A request that the schema accepts."""

    payload: Mapping[str, Json]
    """Do not modify it."""

    @property
    def id(self) -> str:
        """The job's id, a UUID in lower case."""
        return str(self.payload["training_job_id"])

    @property
    def algorithm(self) -> str:
        """How to train."""
        return str(self.payload["training_config"]["algorithm"])

    @property
    def rank(self) -> int:
        """The place of its priority: the smaller, the sooner."""
        return PRIORITIES.index(self.payload.get("priority", "normal"))

    @property
    def epochs(self) -> int | None:
        """How many epochs it asks for."""
        found: int | None = self.payload["training_config"].get("hyperparameters", {}).get("epochs")
        return found

    @property
    def watermark(self) -> str:
        """The sequences up to which its data is read, as JSON; empty where it names none."""
        named = self.payload.get("metadata", {}).get("watermark")
        return json.dumps(named, sort_keys=True) if named else ""

    def event(self) -> BusEvent:
        """Return the event that asks for the job."""
        data = json.dumps(self.payload, separators=(",", ":"), sort_keys=True)
        event_id = derived_id(TRAINING_REQUEST, data)
        return BusEvent(id=event_id, subject=TRAINING_REQUEST, time=utc_now(), data=data.encode())

    def ignored(self) -> list[str]:
        """Return pointers to what it asks and a tfgrpo job does not do."""
        found = [one for part in _PARTS for one in _leaves(f"/{part}", _at(self.payload, part))]
        found += _leaves("/evaluation", self.payload.get("evaluation"))
        return sorted(one for one in found if one not in _USED)


def read_request(raw: Json | bytes, scrubber: ValueScrubber | None = None) -> TrainingRequest | EventRefusal:
    """Return the request that a payload is, as JSON or its value, or why it is none.

    Pointers lead into the payload.
    """
    try:
        value = load_json(raw) if isinstance(raw, bytes) else raw
    except ValueError as error:
        return EventRefusal(fault=EventFault.SCHEMA, pointer="", message=f"is not JSON: {error}")
    found = check_event(wrap(TRAINING_REQUEST, value, event_id=derived_id("")), scrubber)
    if isinstance(found, EventRefusal):
        where = found.pointer.removeprefix("/data")
        return EventRefusal(fault=found.fault, pointer=where, message=found.message)
    return TrainingRequest(payload=found.data)


def _at(value: Json, path: str) -> Json:
    for name in path.split("/"):
        value = value.get(name, {})
    return value


def _leaves(place: str, value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _leaves(f"{place}/{name}", one)
    elif value is not None:
        yield place
