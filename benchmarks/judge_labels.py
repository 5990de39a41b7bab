"""Measure how often a gain that people's labels correct holds the truth, where a lesson pleases the judge.

    python benchmarks/judge_labels.py [RUNS]

Prints a table of Markdown: the share of simulated runs whose 95 % interval holds the true gain, and the mean
width, after labels and by the judge alone. Scenarios of a family share most of what a lesson gains; both
sweeps have 3 rollouts, of which one of each labelled scenario is labelled. Judges: *fair* is wrong about 5 %
of the answers; *pleased* calls 10 % of the bad answers good before, and 40 % after; *graded* gives scores
from 0 to 1 with noise, and .15 more after.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.numerics.rectified import rectify
from pytest_tfgrpo.numerics.stats import mean_interval

Floats = npt.NDArray[np.float64]
SUITES = {
    "20 x 5": (20, (5,)),
    "20 x 1 to 10": (20, (1, 2, 3, 10)),
    "40 x 1": (40, (1,)),
    "100 x 2": (100, (2,)),
}
LABELS = (20, 50, 1000)
JUDGES = ("fair", "pleased", "graded")
ROLLOUTS, GAIN = 3, 0.1


class Cell(NamedTuple):
    """One row of the table."""

    suite: str
    judge: str
    labels: int


def scores(rng: np.random.Generator, judge: str, family_K: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the scores by people and by the judge, (sweeps, scenarios, rollouts)."""
    n, families = family_K.size, int(family_K.max()) + 1
    before_K = rng.beta(0.8, 0.8, families)[family_K]
    solved_K = np.where(rng.random(n) < 0.7, (rng.random(families) < 0.25)[family_K], rng.random(n) < 0.25)
    chance = np.stack([before_K, np.where(solved_K, 1 - 0.2 * (1 - before_K), before_K)])[:, :, None]
    shape = (2, n, ROLLOUTS)
    if judge == "graded":
        people = rng.binomial(4, np.broadcast_to(chance, shape)) / 4
        lenient = np.array([0.0, 0.15])[:, None, None]
        return people, (people + lenient + rng.normal(0, 0.15, shape)).clip(0, 1)
    people = (rng.random(shape) < chance).astype(np.float64)
    misses, lax = (0.05, (0.05, 0.05)) if judge == "fair" else (0.1, (0.1, 0.4))
    good = np.where(
        people == 1, rng.random(shape) >= misses, rng.random(shape) < np.array(lax)[:, None, None]
    )
    return people, good.astype(np.float64)


def sampled(rng: np.random.Generator, family_K: npt.NDArray[np.int64], labels: int) -> npt.NDArray[np.int64]:
    """Return the places of a systematic sample in which families take turns."""
    key_K = np.empty(family_K.size)
    for family in range(int(family_K.max()) + 1):
        members = rng.permutation(np.flatnonzero(family_K == family))
        key_K[members] = (np.arange(members.size) + rng.random()) / members.size
    return np.argsort(key_K)[:labels]


def measure(cell: Cell, runs: int) -> tuple[float, float, float, float]:
    """Return coverage and mean width, with labels and by the judge alone."""
    families, sizes = SUITES[cell.suite]
    found = np.zeros(4)
    for run in range(runs):
        rng = np.random.default_rng([run, *map(ord, repr(cell))])
        family_K = np.repeat(np.arange(families), rng.choice(sizes, families))
        people, judge = scores(rng, cell.judge, family_K)
        gains_K, of_K = judge.mean(axis=2)[1] - judge.mean(axis=2)[0], family_K.tolist()
        places_N = sampled(rng, family_K, cell.labels)
        wrong = (people - judge)[:, places_N, 0]
        ours = rectify(
            gains_K.tolist(), of_K, places_N.tolist(), (wrong[1] - wrong[0]).tolist(), resamples=1000
        )
        plain = mean_interval(gains_K, of_K, support=(-1.0, 1.0), resamples=1000)
        for place, ci95 in ((0, ours.ci95), (2, plain.ci95)):
            low, high = ci95 or (-1.0, 1.0)
            found[place : place + 2] += low - 1e-12 <= GAIN <= high + 1e-12, high - low
    held, wide, alone, narrow = (found / runs).tolist()
    return held, wide, alone, narrow


def main(runs: int = 400) -> None:
    """Print the table."""
    print("| families x scenarios | judge | tasks labelled | covered | width | by the judge alone | width |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    cells = [Cell(*row) for row in product(SUITES, JUDGES, LABELS)]
    with ProcessPoolExecutor(2) as pool:
        for cell, task in [(cell, pool.submit(measure, cell, runs)) for cell in cells]:
            held, wide, alone, narrow = task.result()
            some = "all" if cell.labels == max(LABELS) else cell.labels
            row = f"| {cell.suite} | {cell.judge} | {some} | {held:.1%} | {wide:.3f}"
            print(f"{row} | {alone:.1%} | {narrow:.3f} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
