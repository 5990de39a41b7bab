"""What logs and warehouse say of an event beside its ids: a closed list, without texts of users.

Whoever else publishes may write anything, so a value that is not of its type is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime

from pytest_tfgrpo.core.events import MODEL_DEPLOYED, REWARD, TRAINING_REQUEST, TRAJECTORY
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.wire import Json

Facts = dict[str, Json]
LONGEST = 200
"""Characters of a name."""
_LARGEST = 2**31
_COMPONENT = re.compile(r"[a-z][a-z0-9_]{0,63}")


def facts_of(subject: str, data: Mapping[str, Json]) -> Facts:
    """Return the facts of an event by name; None for numbers that are not known."""
    return _FACTS.get(subject, _training)(data)


def text(value: Json) -> str:
    """Return a name on one line; empty for what is none."""
    return line(value, LONGEST).encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def inside(data: Json, *path: str) -> Json:
    """Return what stands at a path of keys; None where nothing does."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _number(value: Json) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
    return float(value) if known and math.isfinite(value) else None


def _whole(value: Json, otherwise: int = 0) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST
    return int(value) if fits else otherwise


def _trajectory(data: Mapping[str, Json]) -> Facts:
    metadata, turns = data.get("metadata"), data.get("turns")
    return {
        "trajectory_id": text(data.get("trajectory_id")),
        "revision": _whole(inside(metadata, "revision"), 1),
        "agent": text(data.get("agent_id")),
        "domain": text(inside(data, "task_context", "domain")),
        "model": text(inside(metadata, "model")),
        "policy_version": text(inside(metadata, "policy_version")),
        "task_status": text(inside(data, "outcome", "task_status")),
        "blocked": inside(data, "outcome", "safety_blocked") is True,
        "turns": len(turns) if isinstance(turns, list) else 0,
        "duration_s": _seconds(data.get("start_timestamp"), data.get("end_timestamp")),
        "tokens": _number(inside(metadata, "total_tokens")),
        "cost_usd": _number(inside(metadata, "total_cost_usd")),
    }


def _seconds(start: Json, end: Json) -> float | None:
    try:
        return round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 3)
    except (TypeError, ValueError, OverflowError):
        return None


def _reward(data: Mapping[str, Json]) -> Facts:
    parts = data.get("reward_components")
    scores = (
        {name: _number(inside(part, "score")) for name, part in parts.items()}
        if isinstance(parts, dict)
        else {}
    )
    return {
        "trajectory_id": text(data.get("trajectory_id")),
        "reward_id": text(data.get("reward_id")),
        "revision": _whole(inside(data, "metadata", "revision"), 1),
        "evaluator": text(inside(data, "metadata", "evaluator")),
        "total_reward": _number(data.get("total_reward")),
        "components": {
            name: score
            for name, score in scores.items()
            if score is not None and _COMPONENT.fullmatch(name) is not None
        },
    }


def _request(data: Mapping[str, Json]) -> Facts:
    found = _training({**data, "status": "requested"})
    algorithm = text(inside(data, "training_config", "algorithm"))
    return {**found, "trigger_reason": text(data.get("trigger_reason")), "algorithm": algorithm}


def _training(data: Mapping[str, Json]) -> Facts:
    results = data.get("evaluation_results")
    return {
        "training_job_id": text(data.get("training_job_id")),
        "status": text(data.get("status")),
        "trigger_reason": "",
        "algorithm": "",
        "percent_complete": _number(inside(data, "progress", "percent_complete")),
        "reward_mean": _number(inside(data, "metrics", "current", "reward_mean")),
        "holdout_reward": _number(inside(results, "holdout_reward")),
        "improvement_over_baseline": _number(inside(results, "improvement_over_baseline")),
        "cost_usd": _number(inside(data, "resource_usage", "cost_usd")),
        "error_code": text(inside(data, "error", "code")),
    }


def _deployment(data: Mapping[str, Json]) -> Facts:
    config, metadata = data.get("deployment_config"), data.get("metadata")
    return {
        "deployment_id": text(data.get("deployment_id")),
        "model_id": text(inside(data, "model_info", "model_id")),
        "state": text(inside(metadata, "state")),
        "rollout_strategy": text(inside(config, "rollout_strategy")),
        "traffic_percentage": _number(inside(config, "traffic_percentage")),
        "previous_model": text(inside(metadata, "previous_model")),
        "deployed_by": text(inside(metadata, "deployed_by")),
        "approval_status": text(inside(metadata, "approval_status")),
    }


_FACTS: Mapping[str, Callable[[Mapping[str, Json]], Facts]] = {
    TRAJECTORY: _trajectory,
    REWARD: _reward,
    TRAINING_REQUEST: _request,
    MODEL_DEPLOYED: _deployment,
}
"""By subject; another one is a training status."""
