"""The ground-truth rewarder: the weighted share of planned checks that passed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from pytest_tfgrpo.core.records import Rollout, Scenario
from pytest_tfgrpo.harness.rewarders.protocol import Floats


def gt_scores(rollouts: Iterable[Rollout], scenarios: Mapping[str, Scenario]) -> Floats:
    """Return gt_score of each rollout: 0 when the agent failed, NaN for errors (decision 9)."""
    planned = {id: sum(check.weight for check in s.checks) for id, s in scenarios.items()}
    return np.array([_gt_score(r, planned[r.scenario_id]) for r in rollouts], dtype=np.float64)


def _gt_score(rollout: Rollout, planned: float) -> float:
    """Score against the weight of all planned checks, so that a check not reached counts as failed.

    A marked test function plans no checks of its own: the weights of its results stand in.
    """
    if rollout.status == "error":
        return math.nan
    if rollout.status == "failed":
        return 0.0
    total = planned or sum(result.weight for result in rollout.checks)
    return sum(result.weight * result.credit for result in rollout.checks) / total if total else 0.0
