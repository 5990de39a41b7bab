"""Requests to train: read, checked, and what of one a job cannot do."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping

from pytest_tfgrpo.core.events import (
    TRAINING_REQUEST,
    TRAJECTORY,
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
from pytest_tfgrpo.production.bus.streams import STREAMS, by_subject
from pytest_tfgrpo.production.training.dataset.request import FILTER
from pytest_tfgrpo.storage.event_store import BusEvent

PRIORITIES = ("urgent", "high", "normal", "low")
"""Those that run first, first."""
DUPLICATE = "duplicate_data"
"""Why a request is refused whose id or watermark another job has."""
TFGRPO = "tfgrpo"
"""The algorithm that runs here; the others are an external trainer's."""
BUS = "nats_stream"
"""The source of every dataset: the streams of the bus, whichever it is."""
_STREAM = by_subject(STREAMS)[TRAJECTORY].name
_USED = frozenset({"/training_config/hyperparameters/epochs", "/evaluation/benchmark_tasks"})
_PARTS = (
    "training_config/hyperparameters",
    "training_config/compute",
    "training_config/checkpointing",
    "evaluation",
)


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

    def ignored(self, scored: Collection[str] | None = None) -> list[str]:
        """Return pointers to what it asks and its job does not do.

        `scored` are the benchmark tasks that got a score; None: that is not known yet. An external trainer
        reads all but the dataset itself.
        """
        found = list(_unread(self.payload["training_config"]["dataset"]))
        if self.algorithm != TFGRPO:
            return sorted(found)
        asked = self.payload.get("evaluation", {})
        found += [one for part in _PARTS for one in _leaves(f"/{part}", _at(self.payload, part))]
        if scored is not None:
            tasks = enumerate(asked.get("benchmark_tasks", ()))
            found += [f"/evaluation/benchmark_tasks/{n}" for n, task in tasks if task not in scored]
        done = _USED | ({"/evaluation/enabled"} if asked.get("enabled") else set())
        return sorted(one for one in found if one not in done)


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


def _unread(dataset: Mapping[str, Json]) -> Iterator[str]:
    """Yield pointers to what no dataset is cut by."""
    place = "/training_config/dataset"
    yield from (f"{place}/filter/{_key(name)}" for name in dataset.get("filter", {}) if name not in FILTER)
    if dataset["source"] != BUS:
        yield f"{place}/source"
    if dataset.get("stream_name", _STREAM) != _STREAM:
        yield f"{place}/stream_name"


def _leaves(place: str, value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _leaves(f"{place}/{_key(name)}", one)
    elif value is not None:
        yield place


def _key(name: str) -> str:
    """Return a key as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
