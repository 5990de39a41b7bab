"""Intervals of what a policy would earn, over many logs."""

import numpy as np
from support.samples import logged, target_of

from pytest_tfgrpo.numerics.rl.offpolicy import dr


def test_intervals_cover_what_the_policy_would_earn_on_logs_of_one_that_learned() -> None:
    covered = []
    for seed in range(200):
        rewards, contexts, arms, logs, truth = logged(seed)
        target = target_of(truth)
        found = dr(rewards, contexts, arms, target[contexts], logs)
        if found.low is not None and found.high is not None:
            covered.append(found.low <= (target * truth).sum(axis=1).mean() <= found.high)
    assert len(covered) > 150
    assert 0.91 <= np.mean(covered) <= 0.99
