"""What logs and warehouse say of each kind of event, and that it is of its type."""

from __future__ import annotations

import pytest

from pytest_tfgrpo.core.events import (
    MODEL_DEPLOYED,
    REWARD,
    TRAINING_REQUEST,
    TRAINING_STATUS,
    TRAJECTORY,
)
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.sinks.facts import facts_of

TRAINED: Json = {
    "training_job_id": "j-1",
    "status": "running",
    "trigger_reason": "",
    "algorithm": "",
    "percent_complete": 40.0,
    "reward_mean": 0.5,
    "holdout_reward": 0.6,
    "improvement_over_baseline": 0.1,
    "cost_usd": 1.5,
    "error_code": "DATA",
}


@pytest.mark.parametrize(
    ("subject", "data", "facts"),
    [
        (
            TRAJECTORY,
            {
                "trajectory_id": "t-1",
                "agent_id": "bot",
                "start_timestamp": "2026-01-01T12:00:00.000Z",
                "end_timestamp": "2026-01-01T12:01:00.123456Z",
                "turns": [{}, {}],
                "task_context": {"domain": "coding"},
                "outcome": {"task_status": "failed", "safety_blocked": True},
                "metadata": {
                    "revision": 3,
                    "model": "m",
                    "policy_version": "v1",
                    "total_tokens": 50,
                    "total_cost_usd": 0.25,
                },
            },
            {
                "trajectory_id": "t-1",
                "revision": 3,
                "agent": "bot",
                "domain": "coding",
                "model": "m",
                "policy_version": "v1",
                "task_status": "failed",
                "blocked": True,
                "turns": 2,
                "duration_s": 60.123,
                "tokens": 50.0,
                "cost_usd": 0.25,
            },
        ),
        (
            REWARD,
            {
                "trajectory_id": "t-1",
                "reward_id": "r-1",
                "total_reward": 0.75,
                "reward_components": {
                    "style": {"score": 0.5},
                    "tone_2": {"score": 1},
                    "correctness": {"score": 0.0},
                    "of Ann Smith": {"score": 0.5},
                    "unknown": {"score": None},
                },
                "metadata": {"revision": 2, "evaluator": "judge-1"},
            },
            {
                "trajectory_id": "t-1",
                "reward_id": "r-1",
                "revision": 2,
                "evaluator": "judge-1",
                "total_reward": 0.75,
                "components": {"style": 0.5, "tone_2": 1.0, "correctness": 0.0},
            },
        ),
        (
            TRAINING_STATUS,
            {
                "training_job_id": "j-1",
                "status": "running",
                "progress": {"percent_complete": 40},
                "metrics": {"current": {"reward_mean": 0.5}},
                "evaluation_results": {"holdout_reward": 0.6, "improvement_over_baseline": 0.1},
                "resource_usage": {"cost_usd": 1.5},
                "error": {"code": "DATA", "message": "a secret"},
            },
            TRAINED,
        ),
        (
            TRAINING_REQUEST,
            {
                "training_job_id": "j-1",
                "trigger_reason": "manual",
                "training_config": {"algorithm": "tfgrpo"},
            },
            {
                **dict.fromkeys(TRAINED),
                "training_job_id": "j-1",
                "status": "requested",
                "trigger_reason": "manual",
                "algorithm": "tfgrpo",
                "error_code": "",
            },
        ),
        (
            MODEL_DEPLOYED,
            {
                "deployment_id": "d-1",
                "model_info": {"model_id": "v2"},
                "deployment_config": {"rollout_strategy": "canary", "traffic_percentage": 10},
                "metadata": {
                    "state": "held",
                    "previous_model": "v1",
                    "deployed_by": "ada",
                    "approval_status": "approved",
                },
            },
            {
                "deployment_id": "d-1",
                "model_id": "v2",
                "state": "held",
                "rollout_strategy": "canary",
                "traffic_percentage": 10.0,
                "previous_model": "v1",
                "deployed_by": "ada",
                "approval_status": "approved",
            },
        ),
    ],
)
def test_each_fact_stands_where_the_event_has_it(subject: str, data: Json, facts: Json) -> None:
    assert facts_of(subject, data) == facts


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (2**31 - 1, 2.0**31 - 1),
        (2**31, None),
        (-(2**31), None),
        (float("nan"), None),
        (float("-inf"), None),
        ("7", None),
    ],
)
def test_a_number_that_no_column_takes_is_not_known(given: Json, kept: float | None) -> None:
    assert facts_of(REWARD, {"total_reward": given})["total_reward"] == kept


@pytest.mark.parametrize(("given", "kept"), [(0, 0), (2**31 - 1, 2**31 - 1), (2**31, 1), (1.0, 1)])
def test_a_revision_that_no_column_takes_is_the_first(given: Json, kept: int) -> None:
    assert facts_of(REWARD, {"metadata": {"revision": given}})["revision"] == kept


def test_a_name_is_one_line_of_200_characters_at_most() -> None:
    name = facts_of(TRAJECTORY, {"agent_id": "a\nb " + "x" * 300 + "\ud800"})["agent"]
    assert name.startswith("a b xxx")
    assert len(name) == 200
    assert facts_of(TRAJECTORY, {"agent_id": "x\ud800"})["agent"].isascii()


def test_a_run_is_blocked_only_where_that_is_said() -> None:
    for said in (False, None, 1, "true"):
        assert facts_of(TRAJECTORY, {"outcome": {"safety_blocked": said}})["blocked"] is False
