"""What is said of a job: payloads of ``agent.rl.training.status.v1``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.events import TRAINING_STATUS, derived_id
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.training.jobs.request import TFGRPO, TrainingRequest
from pytest_tfgrpo.storage.event_store import BusEvent

JobErrorCode: TypeAlias = Literal["OOM", "CONVERGENCE", "DATA", "INFRA", "TIMEOUT", "UNKNOWN"]
TrainingStatus: TypeAlias = Mapping[str, Json]
"""A payload, which the schema accepts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOutcome:
    """How a job ended."""

    trigger: Literal["finish", "fail", "cancel"]
    parts: Mapping[str, Json]
    """Of the status: artifacts, error, results, resources, metadata."""

    def added(self, artifacts: Mapping[str, Json], metadata: Mapping[str, Json]) -> JobOutcome:
        """Return it with these artifacts, and with more metadata."""
        whole = {**self.parts.get("metadata", {}), **metadata}
        parts = {**self.parts, "artifacts": artifacts, "metadata": whole}
        return JobOutcome(trigger=self.trigger, parts=parts)


def failed(
    code: JobErrorCode, message: str, traceback: str = "", parts: Mapping[str, Json] | None = None
) -> JobOutcome:
    """Return the outcome of a job that failed."""
    error = {"code": code, "message": message, **({"traceback": traceback} if traceback else {})}
    return JobOutcome(trigger="fail", parts={**(parts or {}), "error": error})


def status_of(request: TrainingRequest, state: str, time: str, parts: Mapping[str, Json]) -> TrainingStatus:
    """Return the status of a job; `parts` are what is known of it, by the payload's keys."""
    own = request.algorithm == TFGRPO
    metadata: dict[str, Json] = {"training_platform": "tfgrpo" if own else "external"}
    previous = request.payload.get("metadata", {}).get("previous_training_job")
    if previous:
        metadata["previous_training_job"] = previous
    scores = parts.get("evaluation_results", {}).get("benchmark_scores", {})
    if ignored := request.ignored(scores if state == "completed" else None):
        metadata["ignored"] = ignored
    whole = {
        "training_job_id": request.id,
        "timestamp": time,
        "status": state,
        **parts,
        "metadata": {**metadata, **parts.get("metadata", {})},
    }
    return {name: value for name, value in whole.items() if value not in ({}, None)}


def status_data(status: TrainingStatus) -> bytes:
    """Return a status as the data of its event."""
    return json.dumps(status, separators=(",", ":"), allow_nan=False).encode("ascii")


def status_event(status: TrainingStatus) -> BusEvent:
    """Return the event of a status that no transition owes."""
    data = status_data(status)
    return BusEvent(
        id=derived_id("training-status", data.decode()),
        subject=TRAINING_STATUS,
        time=str(status["timestamp"]),
        data=data,
    )
