"""Reward 100,000 rollouts (20,000 groups of 5, 3 checks each), against the same in plain Python loops.

    python benchmarks/rewarders.py [ROUNDS]

The peer computes ground truth, reward, rank and advantage group by group.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from pytest_tfgrpo.core.records import CheckResult, Rollout, Score
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.harness.scoring.rewarders.scoring import score

GROUPS, GROUP_SIZE, CHECKS = 20_000, 5, 3


def epoch() -> tuple[list[Rollout], dict[str, Scenario]]:
    """Return the rollouts of one seeded epoch and their scenarios."""
    rng = random.Random(0)
    checks = tuple(Check(kind="exact", weight=w) for w in (1.0, 2.0, 0.5))
    scenarios = {
        f"s{k}": Scenario(id=f"s{k}", domain="text", split="train", prompt="", checks=checks)
        for k in range(GROUPS)
    }
    rollouts = [
        Rollout(
            rollout_id=f"run.e1.s{k}.r{i}",
            group_id=f"run.e1.s{k}",
            run_id="run",
            scenario_id=f"s{k}",
            epoch=1,
            mode="train",
            index=i,
            seed=i,
            temperature=0.7,
            status="ok",
            checks=tuple(
                CheckResult(kind="exact", weight=c.weight, credit=float(rng.random() < 0.5)) for c in checks
            ),
        )
        for k in range(GROUPS)
        for i in range(GROUP_SIZE)
    ]
    return rollouts, scenarios


def plain(rollouts: Sequence[Rollout], scenarios: dict[str, Scenario]) -> list[Score]:
    """The peer: the same scores by loops over groups."""
    groups: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        groups.setdefault(rollout.group_id, []).append(rollout)
    scores = []
    for members in groups.values():
        planned = sum(c.weight for c in scenarios[members[0].scenario_id].checks)
        rewards = [sum(c.weight * c.credit for c in r.checks) / planned for r in members]
        mean = sum(rewards) / len(rewards)
        std = math.sqrt(sum((own - mean) ** 2 for own in rewards) / len(rewards))
        for rollout, own in zip(members, rewards, strict=True):
            worse = sum(other < own for other in rewards)
            tied = sum(other == own for other in rewards) - 1
            scores.append(
                Score(
                    rollout_id=rollout.rollout_id,
                    gt_score=own,
                    reward=own,
                    relative_rank=(worse + tied / 2) / (len(rewards) - 1),
                    advantage=(own - mean) / std if max(rewards) > min(rewards) else 0.0,
                )
            )
    return scores


def median_s(call: Callable[[], object], rounds: int) -> float:
    """Return the median seconds of a call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main(rounds: int) -> None:
    """Print medians and the ratio."""
    rollouts, scenarios = epoch()
    ours = median_s(lambda: score(rollouts, scenarios), rounds)
    peer = median_s(lambda: plain(rollouts, scenarios), rounds)
    print(f"rollouts            {len(rollouts):>9,}")
    print(f"rewarders, median   {ours:>9.3f} s   bar: < 1 s")
    print(f"plain loops, median {peer:>9.3f} s   {peer / ours:.1f}x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
