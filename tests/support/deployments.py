"""Ramps, and the sessions that both arms of one have."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from pytest_tfgrpo.core.events import FEEDBACK, REWARD, TRAJECTORY, derived_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.serving import Ramp
from pytest_tfgrpo.storage.event_store import BusEvent


def minute(number: float) -> str:
    """Return the time so many minutes after noon."""
    seconds = round(number * 60)
    day, rest = divmod(12 * 3600 + seconds, 86400)
    return f"2026-01-{1 + day:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}.000Z"


NOON = minute(0)
SINCE = {n: minute(n) for n in (0, 59, 60, 90)}


def ramp_of(**changes: Any) -> Ramp:
    """Return the first step of a canary of v2 that began at noon."""
    fields: dict[str, Any] = {
        "deployment": derived_id("deployment"),
        "version": "v2",
        "strategy": "canary",
        "shares": (0.1, 0.25, 0.5, 1.0),
        "waits_min": (60.0, 60.0, 120.0, 30.0),
        "began": (NOON,),
        "since": NOON,
        "by": "ada",
    }
    fields |= changes
    return Ramp(**{"step_positions": (0,) * len(fields["began"]), **fields})


class DrawnSession(NamedTuple):
    """One run of a session, and its reward."""

    name: str
    version: str | None = "v1"
    at: float = 1.0
    """Minutes after noon at which it ends."""
    reward: float | None = 0.8
    known: float | None = None
    """Minutes after noon at which the reward is known; None: at once."""
    failed: bool = False
    blocked: bool = False
    seconds: float = 1.0
    user: str | None = ""
    """Empty: one of its own; None: nobody says who."""
    run: str = ""
    """Tells the runs of a session apart."""

    @property
    def trajectory(self) -> str:
        """The id of its trajectory."""
        return derived_id(self.name, self.run)


def publish_sessions(bus: Bus, sessions: Iterable[DrawnSession]) -> None:
    """Publish trajectories, then rewards."""
    drawn = list(sessions)
    bus.publish([run_event(one) for one in drawn])
    bus.publish([reward_event(one, one.reward) for one in drawn if one.reward is not None])


def run_event(one: DrawnSession, revision: int = 1) -> BusEvent:
    """Return the trajectory of a session's run."""
    ended = minute(one.at)
    payload = {
        "trajectory_id": one.trajectory,
        "session_id": one.name,
        "agent_id": "bot",
        "start_timestamp": minute(one.at - one.seconds / 60.0),
        "end_timestamp": ended,
        "turns": [],
        "task_context": {"domain": "general"},
        "outcome": {
            "task_status": "failed" if one.failed else "completed_successfully",
            "safety_blocked": one.blocked,
        },
        "metadata": {
            "revision": revision,
            **({"policy_version": one.version} if one.version else {}),
            **({} if one.user is None else {"user_ref": one.user or f"u-{one.name}"}),
        },
    }
    return _event(TRAJECTORY, f"{one.trajectory} {revision}", payload, ended)


def foreign_reward(one: DrawnSession, score: float, source: str, component: str = "safety") -> BusEvent:
    """Return another evaluator's reward of a session's run, of one component."""
    key = derived_id("foreign", one.name, component)
    payload = {
        "reward_id": key,
        "trajectory_id": one.trajectory,
        "session_id": one.name,
        "timestamp": minute(one.at),
        "reward_components": {component: {"score": score, "weight": 0.5, "source": source}},
        "total_reward": score,
        "reward_type": "sparse",
        "metadata": {"evaluator": "guard"},
    }
    return _event(REWARD, key, payload, minute(one.at))


def reward_event(one: DrawnSession, total: float, revision: int = 1, at: float | None = None) -> BusEvent:
    """Return a reward of a session's run as the evaluator writes it."""
    when = minute(one.at if at is None and one.known is None else at if at is not None else one.known or 0.0)
    key = derived_id("reward", one.trajectory, str(revision))
    payload = {
        "reward_id": key,
        "trajectory_id": one.trajectory,
        "session_id": one.name,
        "timestamp": when,
        "reward_components": {"style": {"score": total, "weight": 0.5, "source": "judge"}},
        "total_reward": total,
        "reward_type": "dense",
        "normalization": {"normalized_total": 0.0, "components": {}},
        "metadata": {
            "evaluator": "tfgrpo",
            "revision": revision,
            "ordinal": 1,
            "turns": 1,
            "domain": "general",
        },
    }
    return _event(REWARD, key, payload, when)


def verdict_event(one: DrawnSession, kind: str, at: float, **more: Any) -> BusEvent:
    """Return feedback on a session's run."""
    key = derived_id("feedback", one.name, kind, str(at))
    payload = {
        "feedback_id": key,
        "trajectory_id": one.trajectory,
        "timestamp": minute(at),
        "type": kind,
        "source": "reviewer",
        **more,
    }
    return _event(FEEDBACK, key, payload, minute(at))


def _event(subject: str, key: str, payload: dict[str, Any], time: str) -> BusEvent:
    return BusEvent(
        id=derived_id(subject, key), subject=subject, time=time, data=json.dumps(payload).encode()
    )
