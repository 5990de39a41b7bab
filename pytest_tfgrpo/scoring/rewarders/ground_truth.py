"""The ground-truth rewarder: the weighted share of planned checks that passed, or what stands in for it.

A scenario without ground truth is scored by the majority of its group or by a judge; both are estimates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.records import Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.scoring.rewarders.majority import majority_scores


def gt_scores(rollouts: Sequence[Rollout], scenarios: Mapping[str, Scenario]) -> list[float]:
    """Return gt_score of each rollout: 0 when the agent failed, NaN for errors (decision 9).

    It is also NaN where an estimate was wanted and there is none.
    """
    planned = {id_: sum(check.weight for check in s.checks) for id_, s in scenarios.items()}
    gt_N = [_by_checks(r, planned[r.scenario_id]) for r in rollouts]
    truth = {id_: s.truth for id_, s in scenarios.items() if s.truth != "checks"}
    if truth:
        _estimate(gt_N, rollouts, truth)
    return gt_N


def _estimate(gt_N: list[float], rollouts: Sequence[Rollout], truth: Mapping[str, str]) -> None:
    """Put the estimates of scenarios without ground truth into `gt_N`; `truth` names those scenarios."""
    voted = [n for n, r in enumerate(rollouts) if truth.get(r.scenario_id) == "majority"]
    for n, score in zip(voted, majority_scores([rollouts[n] for n in voted]), strict=True):
        gt_N[n] = score
    for n, rollout in enumerate(rollouts):
        if truth.get(rollout.scenario_id) == "judge":
            gt_N[n] = _by_judge(rollout)


def _by_checks(rollout: Rollout, planned: float) -> float:
    """Score against the weight of all planned checks, so that a check not reached counts as failed.

    A marked test function plans no checks of its own: the weights of its results stand in.
    """
    if rollout.status == "error":
        return math.nan
    if rollout.status == "failed":
        return 0.0
    total = planned or sum(result.weight for result in rollout.checks)
    return sum(result.weight * result.credit for result in rollout.checks) / total if total else 0.0


def _by_judge(rollout: Rollout) -> float:
    if rollout.status == "failed":
        return 0.0
    opinion = rollout.opinion
    if rollout.status == "error" or opinion is None or opinion.score is None:
        return math.nan
    return opinion.score
