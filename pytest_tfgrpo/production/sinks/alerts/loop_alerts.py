"""The alerts: what happened in the loop that somebody should know of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import NamedTuple

from pytest_tfgrpo.core.events import (
    MODEL_DEPLOYED,
    TRAINING_REQUEST,
    TRAINING_STATUS,
    EventRefusal,
    derived_id,
)
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.streams import DEAD
from pytest_tfgrpo.production.deployment.tallies import ERRORS
from pytest_tfgrpo.production.report.model_figures import ModelFigures
from pytest_tfgrpo.production.view.rows import row_of
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import BusEvent

STALLED_S = 86400.0
"""Without a trajectory, after one."""
_LONGEST = 500
_DEPLOYED = {"held": ("canary_held", "is held"), "rolled_back": ("rolled_back", "was rolled back")}


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopAlert:
    """An alert, as the command gets it."""

    id: str
    """A UUID that follows from what happened."""
    alert: str
    """What kind of alert it is."""
    time: str
    """ISO 8601 in UTC."""
    what: str
    """The version or training job; empty where it is of the whole loop."""
    summary: str
    details: Mapping[str, Json] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return it as JSON in ASCII."""
        names = ("id", "alert", "time", "what", "summary", "details")
        return json.dumps({name: getattr(self, name) for name in names}).encode("ascii")


class LoopCondition(NamedTuple):
    """Something that is so or not, at any time."""

    name: str
    alert: LoopAlert | None
    """None: it is not so."""
    lasts: bool = True
    """Whether it is the same alert as long as it goes on."""


def alert_of(event: BusEvent) -> LoopAlert | None:
    """Return the alert that an event is; None for most."""
    if event.subject not in (MODEL_DEPLOYED, TRAINING_REQUEST, TRAINING_STATUS):
        return None
    if isinstance(row_of(event, event.arrived), EventRefusal):
        return None
    data = load_json(event.data)
    if event.subject == MODEL_DEPLOYED:
        return _deployed(event, data)
    job = data["training_job_id"]
    if event.subject == TRAINING_REQUEST:
        if data["trigger_reason"] != "performance_degradation":
            return None
        summary = "the mean reward of the version in use fell, and training was asked for"
        return _alert(event, "model_degraded", job, summary, {})
    if data["status"] != "failed":
        return None
    error = data["error"]
    summary = f"training job {job} failed: {error['code']}, {error.get('message') or 'nothing more is known'}"
    return _alert(event, "training_failed", job, summary, {"code": error["code"]})


def _deployed(event: BusEvent, data: Json) -> LoopAlert | None:
    metadata = data.get("metadata", {})
    found = _DEPLOYED.get(metadata.get("state", ""))
    if found is None:
        return None
    name, became = found
    version = data["model_info"]["model_id"]
    by = f" by {metadata['deployed_by']}" if metadata.get("deployed_by") else ""
    summary = f"{version} {became}{by}: {metadata.get('reason') or 'no reason was given'}"
    kept = {"deployment_id": data["deployment_id"], "evidence": metadata.get("evidence", {})}
    return _alert(event, name, version, summary, kept)


def _alert(event: BusEvent, name: str, what: str, summary: str, details: Mapping[str, Json]) -> LoopAlert:
    return LoopAlert(
        id=derived_id("alert", name, event.id),
        alert=name,
        time=utc_time(event.time) or _time(event.arrived),
        what=line(what, _LONGEST),
        summary=line(summary, _LONGEST),
        details=details,
    )


def conditions(
    view: LoopView, figures: Sequence[ModelFigures], dead: tuple[int, int], now: float
) -> list[LoopCondition]:
    """Return what holds now; `dead` letters are those after a sequence up to one, and `now` is Unix time."""
    return [_errors(figures, now), _stalled(view, now), _dead(view, dead, now)]


def _errors(figures: Sequence[ModelFigures], now: float) -> LoopCondition:
    bad = {one.version: one.error_rate for one in figures if (one.error_rate or 0.0) > ERRORS}
    if not bad:
        return LoopCondition("errors", None)
    said = ", ".join(f"{rate:.1%} of the newest runs of {version}" for version, rate in bad.items())
    return LoopCondition("errors", _now("errors", f"{said} failed", {"error_rate": bad}, now))


def _stalled(view: LoopView, now: float) -> LoopCondition:
    name = "trajectories_stalled"
    newest = view.rows("SELECT max(at) FROM trajectories")[0][0]
    if not isinstance(newest, float) or now - newest <= STALLED_S:
        return LoopCondition(name, None)
    summary = f"no trajectory has come since {_time(newest)}"
    return LoopCondition(name, _now(name, summary, {"since": _time(newest)}, now))


def _dead(view: LoopView, window: tuple[int, int], now: float) -> LoopCondition:
    name = "dead_letters"
    query = """SELECT code, count(*) FROM dead WHERE seq > ? AND seq <= ? GROUP BY code
        ORDER BY count(*) DESC LIMIT 20"""
    codes = {line(str(code), 100): int(times) for code, times in view.rows(query, window)}
    if not codes:
        return LoopCondition(name, None, lasts=False)
    summary = f"{plural(sum(codes.values()), 'dead letter')}: {', '.join(codes)}"
    return LoopCondition(name, _now(name, summary, {"stream": DEAD, "codes": codes}, now), lasts=False)


def _now(name: str, summary: str, details: Mapping[str, Json], now: float) -> LoopAlert:
    return LoopAlert(
        id=derived_id("alert", name, str(now)),
        alert=name,
        time=_time(now),
        what="",
        summary=line(summary, _LONGEST),
        details=details,
    )


def _time(seconds: float) -> str:
    return utc_time(datetime.fromtimestamp(seconds, UTC).isoformat()) or ""
