"""Rows of jobs in the table ``training``: one that is damaged is named, with the key that does not fit."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.training.jobs.request import PRIORITIES

TABLE = "training"
JOB = "job."
"""Before a job's id, in the key of its row."""
_NEEDED: Mapping[str, type | tuple[type, ...]] = {"event": str, "order": int, "request": dict}
_KNOWN: Mapping[str, type | tuple[type, ...]] = {
    "status": dict,
    "started": str,
    "cut": dict,
    "spent": (int, float),
    "ran_s": (int, float),
    "stopping": bool,
}
_REQUEST: Mapping[str, type | tuple[type, ...]] = {
    "training_job_id": str,
    "timestamp": str,
    "training_config": dict,
}


def job_row(job_id: str, value: bytes) -> dict[str, Json]:
    """Return what the row of a job says; raises BusError, which names row and key."""
    try:
        row = load_json(value)
    except ValueError as error:
        raise _damaged(job_id, str(error)) from None
    if not isinstance(row, dict):
        raise _damaged(job_id, f"it is {value[:200]!r}")
    for key in _misfits(row):
        raise _damaged(job_id, f"key {key!r} is {str(row.get(key))[:200]!r}")
    for key in _misfits_of_request(job_id, request := row["request"]):
        raise _damaged(job_id, f"key 'request.{key}' is {str(request.get(key))[:200]!r}")
    return row


def _misfits(row: Mapping[str, Json]) -> list[str]:
    needed = [key for key, kind in _NEEDED.items() if not isinstance(row.get(key), kind)]
    return needed + [key for key, kind in _KNOWN.items() if key in row and not isinstance(row[key], kind)]


def _misfits_of_request(job_id: str, request: Mapping[str, Json]) -> list[str]:
    found = [key for key, kind in _REQUEST.items() if not isinstance(request.get(key), kind)]
    if request.get("training_job_id") != job_id:
        found.append("training_job_id")
    if request.get("priority", "normal") not in PRIORITIES:
        found.append("priority")
    config = request.get("training_config")
    if not (isinstance(config, dict) and {"algorithm", "dataset"} <= config.keys()):
        found.append("training_config")
    return found


def _damaged(job_id: str, what: str) -> BusError:
    return BusError(
        f"the row {JOB + job_id!r} of the table {TABLE} holds no job: {what}; "
        "put the bus back from a copy of its data"
    )
