"""Measure how often intervals of off-policy estimates hold the truth, on logs of a policy that learned.

    python benchmarks/off_policy.py [--runs 1000] [--seed 1]

Each simulated log has its own true rewards of 4 arms in 3 contexts, and a softmax policy over the mean
rewards so far, mixed with a floor, that chose and learned after each decision. The target takes the best
arm of each context with probability .9 (near), always (sure), or the worst arm always (opposite: few such
decisions were logged). Printed for each cell: how many logs were estimable (50 effective decisions or
more), the share of those whose nominal 95 % interval holds what the target would earn, and the mean error;
at last the share over all cells, and the least and the largest of those where three fifths of the logs or
more were estimable: where few are, luck chose them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.numerics.rl.offpolicy import OffPolicyEstimate, dr, ips, snips

Floats = npt.NDArray[np.float64]
Estimator = Callable[["Logs", int, Floats], OffPolicyEstimate]
CONTEXTS, ARMS = 3, 4
ARMS_OF = {"even": (2.0, 2.0), "good": (19.0, 1.0), "poor": (2.0, 8.0), "graded": (2.0, 2.0)}
"""Beta distributions of the arms' mean rewards, which are 0 or 1 but in the last."""
ENOUGH = 0.6
"""Share of a cell's logs that are estimable, for it to be compared with others."""
GREED = 8.0
"""Inverse temperature of the policy that learns."""


class Logs(NamedTuple):
    """Logs of `S` simulations with `N` decisions each."""

    reward_SN: Floats
    context_SN: npt.NDArray[np.intp]
    arm_SN: npt.NDArray[np.intp]
    logged_SNA: Floats
    truth_SCA: Floats


def learn(runs: int, n: int, floor: float, kind: str, rng: np.random.Generator) -> Logs:
    """Return logs of policies that learn, all simulations a decision at a time."""
    s = np.arange(runs)
    truth = rng.beta(*ARMS_OF[kind], (runs, CONTEXTS, ARMS))
    sums, counts = np.full(truth.shape, 0.5), np.ones(truth.shape)
    context, arms = rng.integers(0, CONTEXTS, (runs, n)), np.empty((runs, n), dtype=np.intp)
    rewards, logged = np.empty((runs, n)), np.empty((runs, n, ARMS))
    for i in range(n):
        here = context[:, i]
        raised = np.exp(GREED * sums[s, here] / counts[s, here])
        p = (1 - ARMS * floor) * raised / raised.sum(axis=1, keepdims=True) + floor
        arm = np.minimum((rng.random((runs, 1)) > p.cumsum(axis=1)).sum(axis=1), ARMS - 1)
        mean = truth[s, here, arm]
        reward = rng.beta(4 * mean, 4 * (1 - mean)) if kind == "graded" else rng.random(runs) < mean
        rewards[:, i], arms[:, i], logged[:, i] = reward, arm, p
        sums[s, here, arm] += reward
        counts[s, here, arm] += 1
    return Logs(rewards, context, arms, logged, truth)


def target_of(truth_SCA: Floats, name: str) -> Floats:
    """Return the probabilities that the target policy gives each arm."""
    chosen = truth_SCA.argmin(axis=2) if name == "opposite" else truth_SCA.argmax(axis=2)
    sure = 0.9 if name == "near" else 1.0
    target = np.full(truth_SCA.shape, (1 - sure) / (ARMS - 1))
    np.put_along_axis(target, chosen[..., None], sure, 2)
    return target


def by_dr(logs: Logs, s: int, target_CA: Floats) -> OffPolicyEstimate:
    context = logs.context_SN[s]
    return dr(logs.reward_SN[s], context, logs.arm_SN[s], target_CA[context], logs.logged_SNA[s])


def weighted(estimate: Callable[[Floats, Floats, Floats], OffPolicyEstimate]) -> Estimator:
    def found(logs: Logs, s: int, target_CA: Floats) -> OffPolicyEstimate:
        rows, arms = np.arange(logs.arm_SN.shape[1]), logs.arm_SN[s]
        return estimate(
            logs.reward_SN[s], target_CA[logs.context_SN[s], arms], logs.logged_SNA[s][rows, arms]
        )

    return found


ESTIMATORS: dict[str, Estimator] = {"dr": by_dr, "ips": weighted(ips), "snips": weighted(snips)}


class Coverage(NamedTuple):
    """What the intervals of one cell are worth."""

    estimable: int
    held: int
    error: float

    @property
    def share(self) -> float:
        return self.held / self.estimable


def coverage(logs: Logs, target_SCA: Floats, estimate: Estimator) -> Coverage:
    """Return how many logs are estimable, how many intervals hold the truth, and the mean error."""
    truth_S = (target_SCA * logs.truth_SCA).sum(axis=2).mean(axis=1)
    held, errors = 0, []
    for s, truth in enumerate(truth_S.tolist()):
        found = estimate(logs, s, target_SCA[s])
        if found.value is not None and found.low is not None and found.high is not None:
            held += found.low <= truth <= found.high
            errors.append(found.value - truth)
    return Coverage(len(errors), held, float(np.mean(errors)) if errors else float("nan"))


def show_all(name: str, cells: list[Coverage], enough: int) -> None:
    shares = [cell.share for cell in cells if cell.estimable >= enough]
    total, held = sum(cell.estimable for cell in cells), sum(cell.held for cell in cells)
    print(
        f"{name}: {held / total:.1%} of {total:,}; from {min(shares):.1%} to {max(shares):.1%} "
        f"in {len(shares)} cells of {enough} or more"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    cells: dict[str, list[Coverage]] = {name: [] for name in ESTIMATORS}
    print("| decisions | floor | arms | target | estimate | estimable | coverage | mean error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for n in (200, 400, 1600):
        for floor in (0.02, 0.05, 0.1):
            for place, arms in enumerate(ARMS_OF):
                rng = np.random.default_rng([given.seed, n, round(floor * 100), place])
                logs = learn(given.runs, n, floor, arms, rng)
                for name in ("near", "sure", "opposite"):
                    target = target_of(logs.truth_SCA, name)
                    for kind, estimate in ESTIMATORS.items():
                        found = coverage(logs, target, estimate)
                        cells[kind] += [found] if found.estimable else []
                        cell = f"{found.share:.1%} | {found.error:+.4f}" if found.estimable else "- | -"
                        print(f"| {n} | {floor} | {arms} | {name} | {kind} | {found.estimable} | {cell} |")
    for kind, known in cells.items():
        show_all(kind, known, round(ENOUGH * given.runs))


if __name__ == "__main__":
    main()
