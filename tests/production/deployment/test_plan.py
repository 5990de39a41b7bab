"""What may be deployed without a person, and in which steps it comes to meet all users."""

from __future__ import annotations

import pytest

from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.plan import BLUE_GREEN, CANARY, CAREFUL, RampPlan, ramp_plan


@pytest.mark.parametrize(
    ("gain", "low", "approved_by", "plan"),
    [
        (None, None, "ada", CAREFUL),
        (0.049, 0.01, "ada", CAREFUL),
        (0.05, -0.2, "", CANARY),
        (0.149, 0.1, "ada", CANARY),
        (0.15, 0.01, "ada", BLUE_GREEN),
        (0.15, 0.01, "", CANARY),
        (0.15, 0.0, "ada", CANARY),
        (0.9, None, "ada", CANARY),
    ],
)
def test_only_a_clear_gain_that_somebody_approved_meets_all_users_at_once(
    gain: float | None, low: float | None, approved_by: str, plan: RampPlan
) -> None:
    candidate = DeployCandidate(version="v2", improvement=gain, improvement_low=low, approved_by=approved_by)
    assert ramp_plan(candidate) == plan
    assert len(plan.shares) == len(plan.waits_min)
    assert (plan.shares[-1], sorted(plan.shares)) == (1.0, list(plan.shares))


@pytest.mark.parametrize(
    ("benchmark", "safety", "regression", "deployable"),
    [
        (True, True, False, True),
        (False, True, False, False),
        (True, False, False, False),
        (True, True, True, False),
    ],
)
def test_what_may_be_deployed_passed_benchmark_and_safety_without_a_regression(
    benchmark: bool, safety: bool, regression: bool, deployable: bool
) -> None:
    candidate = DeployCandidate(
        version="v2",
        benchmark_passed=benchmark,
        safety_checks_passed=safety,
        performance_regression=regression,
    )
    assert candidate.deployable is deployable
    assert candidate.start == ("validated" if deployable else "rejected")
