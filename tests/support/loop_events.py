"""Events of the feedback loop for tests: trajectories, feedback, rewards of others."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable

from pytest_tfgrpo.core.events import FEEDBACK, REWARD, SCHEMAS, TRAJECTORY, derived_id
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.storage.event_store import BusEvent

EARLY = "2025-12-08T12:00:00.000Z"
LATER = "2025-12-08T13:00:00.000Z"


def trajectory(
    name: str,
    *,
    turns: int = 2,
    domain: str = "coding",
    session: str = "chat-17",
    user: str | None = None,
    text: str = "hello",
    metadata: dict[str, Json] | None = None,
    task: dict[str, Json] | None = None,
    agent: str = "support-bot",
    **outcome: Json,
) -> BusEvent:
    """Return a trajectory, whose id follows from its name."""
    data = load_schema(SCHEMAS[TRAJECTORY])["examples"][0]
    turn = {"turn_id": 1, "action": {"type": "response", "raw_response": text}}
    payload: dict[str, Json] = {
        **data,
        "trajectory_id": derived_id(name),
        "session_id": session,
        "agent_id": agent,
        "turns": [turn] * turns,
        "task_context": task or {"domain": domain, "task_key": f"task-{name[:1]}"},
        "outcome": outcome,
        "metadata": {"policy_version": "v1", "user_ref": user, **(metadata or {})},
    }
    return _event("trajectory", TRAJECTORY, payload["trajectory_id"], payload, EARLY)


def feedback(name: str, kind: str, of: str, *, at: str = LATER, **more: Json) -> BusEvent:
    """Return what somebody says of the trajectory `of`."""
    payload: dict[str, Json] = {
        "feedback_id": derived_id("fb", name), "trajectory_id": derived_id(of), "timestamp": at, "type": kind,
        **more,
    }  # fmt: skip
    return _event("feedback", FEEDBACK, payload["feedback_id"], payload, at)


def judged(name: str, of: str, *, weight: float = 0.5, **scores: float) -> BusEvent:
    """Return what another evaluator says of the trajectory `of`."""
    parts = {key: {"score": value, "weight": weight, "source": "judge"} for key, value in scores.items()}
    payload: dict[str, Json] = {
        "reward_id": derived_id("judged", name), "trajectory_id": derived_id(of), "session_id": "chat-17",
        "timestamp": LATER, "reward_components": parts,
        "total_reward": sum(scores.values()) / len(scores), "reward_type": "dense",
        "metadata": {"evaluator": "judge-1"},
    }  # fmt: skip
    return _event("reward-event", REWARD, payload["reward_id"], payload, LATER)


def rewarded(of: str, total: float, *, revision: int = 1) -> BusEvent:
    """Return a reward of the trajectory `of` as it is computed here, from one component."""
    key = derived_id(of)
    metadata = {"evaluator": "tfgrpo", "revision": revision, "ordinal": 1, "turns": 2, "domain": "coding"}
    payload: dict[str, Json] = {
        "reward_id": derived_id("reward", key, str(revision)),
        "trajectory_id": key,
        "session_id": f"chat-{of}",
        "timestamp": LATER,
        "reward_components": {"style": {"score": total, "weight": 0.5, "source": "judge"}},
        "total_reward": total,
        "reward_type": "dense",
        "normalization": {"normalized_total": 0.0, "components": {}},
        "metadata": metadata,
    }
    return _event("reward-event", REWARD, payload["reward_id"], payload, LATER)


def _event(kind: str, subject: str, key: str, payload: Json, at: str) -> BusEvent:
    return BusEvent(id=derived_id(kind, key), subject=subject, time=at, data=json.dumps(payload).encode())


def payloads(bus: Bus, stream: str = "RL_REWARDS") -> list[Json]:
    """Return the payloads of a stream in its order."""
    return [json.loads(event.data) for event in bus.replay(stream)]


def totals(bus: Bus) -> dict[str, tuple[int, float]]:
    """Return the newest revision and total by trajectory, of the rewards that were computed here."""
    return {
        one["trajectory_id"]: (one["metadata"]["revision"], round(one["total_reward"], 6))
        for one in payloads(bus)
        if one["metadata"]["evaluator"] == "tfgrpo"
    }


def publish(bus: Bus, *groups: Iterable[BusEvent]) -> None:
    """Publish each group in order: a server stores what goes to several streams in any order."""
    for group in groups:
        for _, part in itertools.groupby(group, key=lambda event: event.subject):
            bus.publish(list(part))
