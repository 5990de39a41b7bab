"""How a version comes to meet all users: in which steps, by how much better it was on the eval split."""

from __future__ import annotations

from typing import NamedTuple

from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.serving import Strategy

CLEAR, SOME = 0.15, 0.05
"""Improvements from which a version is switched to at once, and from which its ramp begins at 10 %."""
LAST_MIN = 30.0
"""Minutes that the last step takes, with a hold-out, before a version is live."""


class RampPlan(NamedTuple):
    """Steps of a ramp."""

    strategy: Strategy
    shares: tuple[float, ...]
    waits_min: tuple[float, ...]


AT_ONCE = RampPlan("immediate", (1.0,), (LAST_MIN,))
BLUE_GREEN = RampPlan("blue_green", (1.0,), (LAST_MIN,))
CANARY = RampPlan("canary", (0.1, 0.25, 0.5, 1.0), (60.0, 60.0, 120.0, LAST_MIN))
CAREFUL = RampPlan("canary", (0.05, 0.1, 0.25, 0.5, 1.0), (60.0, 60.0, 60.0, 120.0, LAST_MIN))


def ramp_plan(candidate: DeployCandidate) -> RampPlan:
    """Return the steps of a version that may be deployed (decision 34, amended)."""
    gain, low = candidate.improvement, candidate.improvement_low
    if gain is None or gain < SOME:
        return CAREFUL
    if gain >= CLEAR and candidate.approved_by and low is not None and low > 0.0:
        return BLUE_GREEN
    return CANARY
