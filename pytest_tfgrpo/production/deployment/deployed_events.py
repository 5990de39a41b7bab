"""The events of a transition: what was deployed, for who serves or watches, and its record in the audit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import NamedTuple

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.streams import AUDIT_SUBJECT
from pytest_tfgrpo.production.deployment.serving import Ramp, Serving
from pytest_tfgrpo.production.deployment.states import DEPLOYMENTS, DeployState, DeployTrigger
from pytest_tfgrpo.storage.event_store import BusEvent

PLATFORM = "tfgrpo"
_LIVE = 100.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DeployDecision:
    """Who decided on a transition, and on what evidence; events and audit keep it."""

    at: str
    """ISO 8601 in UTC."""
    by: str = ""
    """The person; empty for the loop itself."""
    reason: str = ""
    evidence: Mapping[str, Json] = field(default_factory=dict)


class Transition(NamedTuple):
    """One version goes from a state to another."""

    version: str
    was: DeployState
    trigger: DeployTrigger

    @property
    def state(self) -> DeployState | None:
        """Where it leads; None: nowhere."""
        return DEPLOYMENTS.after(self.was, self.trigger)


def later(time: str, minutes: float) -> str:
    """Return a time that is so many minutes later."""
    return utc_time((datetime.fromisoformat(time) + timedelta(minutes=minutes)).isoformat()) or time


def ramp_schedule(ramp: Ramp) -> list[dict[str, Json]]:
    """Return when each step began, or begins at the earliest, and when the version is live."""
    times = [*ramp.began, later(ramp.since, ramp.waits_min[ramp.step])]
    for wait in ramp.waits_min[ramp.step + 1 :]:
        times.append(later(times[-1], wait))
    shares = [*(ramp.share_of(step) for step in range(len(ramp.shares))), 1.0]
    return [
        {"timestamp": time, "percentage": round(100.0 * share, 6)}
        for time, share in zip(times, shares, strict=True)
    ]


def transition_events(
    serving: Serving,
    transition: Transition,
    ramp: Ramp,
    decision: DeployDecision,
    revision: int,
    endpoint: str = "",
) -> list[BusEvent]:
    """Return what a transition owes; `serving` is what it led to, and `ramp` the deployment it belongs to.

    The ids follow from the revision of the row that changes, so that a repeat is not stored twice.
    """
    data = _payload(serving, transition, ramp, decision)
    if endpoint:
        data["deployment_config"]["endpoint"] = endpoint
    subject = DEPLOYMENTS.rows[transition.was, transition.trigger][1]
    said: dict[str, Json] = {
        "action": f"deployment_{transition.trigger}",
        "what": transition.version,
        "actor": decision.by,
        "reason": decision.reason,
        "was": transition.was,
        "evidence": decision.evidence,
    }
    if transition.trigger in ("start", "override"):
        said["validation"] = data.get("validation_results")
    return [
        BusEvent(
            id=derived_id("deployment", str(revision), transition.version, transition.trigger, to),
            subject=to,
            time=decision.at,
            data=json.dumps(content).encode(),
        )
        for to, content in ((subject, data), (AUDIT_SUBJECT, said))
    ]


def _before(serving: Serving, transition: Transition) -> str | None:
    """Return the version that one replaces, or that replaces it once it was rolled back."""
    if transition.trigger == "finish":
        return serving.previous
    return serving.live if transition.version != serving.live and transition.state != "retired" else None


def _payload(
    serving: Serving, transition: Transition, ramp: Ramp, decision: DeployDecision
) -> dict[str, Json]:
    version, state = transition.version, transition.state
    known = serving.payloads.get(version, {})
    config: dict[str, Json] = {
        "serving_platform": PLATFORM,
        "model_name": version,
        "rollout_strategy": ramp.strategy,
        "traffic_percentage": 0.0,
    }
    if state in ("canary", "held"):
        config["traffic_percentage"] = round(100.0 * ramp.share, 6)
        config["ramp_schedule"] = ramp_schedule(ramp)
    elif state == "live":
        config["traffic_percentage"] = _LIVE
    metadata = {
        "deployed_by": decision.by or PLATFORM,
        "approval_status": "manual_approved" if ramp.by else "automated",
        "previous_model": _before(serving, transition),
        "state": state,
        "reason": decision.reason,
        "evidence": decision.evidence,
    }
    return {
        "deployment_id": ramp.deployment,
        "timestamp": decision.at,
        "deployment_config": config,
        **known,
        "metadata": {**known.get("metadata", {}), **metadata},
    }
