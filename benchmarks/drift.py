"""Measure how often the gain's interval holds the truth while the actor drifts, by when the control is asked.

    python benchmarks/drift.py [RUNS [RESAMPLES]]

Prints a table of Markdown. Success chances are Beta(0.8, 0.8). A lesson shifts their logits by a normal
amount in two of three scenarios, and leaves the prompts of the others as they are. The actor's logits drift
as a Brownian motion, so that its mean success moves by DRIFT (standard deviation) from the middle of an early
control to that of the final sweep. An early control takes the first tenth of a run, the final sweep the
last; a concurrent one is asked in the same last tenth, pair by pair in the order of a run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.numerics.stats import mean_interval
from pytest_tfgrpo.runs.seeds import control_first

Floats = npt.NDArray[np.float64]
SCENARIOS = (40, 100, 400)
ROLLOUTS = 5
DRIFT = 0.02
EFFECT, SPREAD, REACHED = 0.5, 1.0, 2 / 3
"""Of a lesson on the logit scale where it reaches a prompt, and the share of prompts that it reaches."""
SLOPE = 0.8 / 5.2
"""Mean of p (1 - p) of Beta(0.8, 0.8): what the mean success changes by per unit of drift in logits."""


class Sample(NamedTuple):
    """Scores of one run by scenario."""

    control_K: Floats
    early_K: Floats
    final_K: Floats
    shared_K: npt.NDArray[np.bool_]
    """Prompts that the library leaves as they are."""


def starts(n: int) -> tuple[Floats, Floats]:
    """Return the times of the control's and the final sweep's rollouts in one joint sweep, (n, ROLLOUTS)."""
    control_KR, final_KR = np.empty((2, n, ROLLOUTS))
    for k in range(n):
        scenario = Scenario(id=f"s{k}", domain="d", split="eval", prompt="", stamp=f"{k:064x}")
        for index in range(ROLLOUTS):
            first = control_first(0, scenario, index)
            place = 2 * (k * ROLLOUTS + index)
            control_KR[k, index], final_KR[k, index] = place + (not first), place + first
    length = 2 * n * ROLLOUTS
    return 0.9 + 0.1 * control_KR / length, 0.9 + 0.1 * final_KR / length


def draw(rng: np.random.Generator, n: int, times: tuple[Floats, Floats]) -> Sample:
    """Draw a run: the same scenarios, drift and lessons, with a control at both times."""
    p_K = rng.beta(0.8, 0.8, n).clip(1e-9, 1 - 1e-9)
    logit_K = np.log(p_K / (1 - p_K))
    shared_K = rng.random(n) >= REACHED
    effect_K = np.where(shared_K, 0.0, rng.normal(EFFECT, SPREAD, n))
    early_KR = 0.1 * np.arange(n * ROLLOUTS).reshape(n, ROLLOUTS) / (n * ROLLOUTS)
    order = np.concatenate([t.ravel() for t in (early_KR, *times)])
    by_time = np.argsort(order, kind="stable")
    steps = np.diff(order[by_time], prepend=0.0)
    drift = np.empty(order.size)
    drift[by_time] = np.cumsum(rng.normal(0, DRIFT / SLOPE / 0.9**0.5, order.size) * np.sqrt(steps))
    scores = []
    for part, shift_K in zip(np.split(drift, 3), (0.0, 0.0, effect_K), strict=True):
        logit_KR = (logit_K + shift_K)[:, None] + part.reshape(n, ROLLOUTS)
        scores.append((rng.random((n, ROLLOUTS)) < 1 / (1 + np.exp(-logit_KR))).mean(axis=1))
    early_K, control_K, final_K = scores
    return Sample(np.where(shared_K, final_K, control_K), early_K, final_K, shared_K)


def true_gain(points: int = 2_000_000) -> float:
    """Return the mean gain over scenarios like these without drift, to 0.0003."""
    rng = np.random.default_rng(1)
    p = rng.beta(0.8, 0.8, points).clip(1e-9, 1 - 1e-9)
    after = 1 / (1 + np.exp(-np.log(p / (1 - p)) - rng.normal(EFFECT, SPREAD, points)))
    return float((after - p).mean()) * REACHED


def cover(n: int, runs: int, resamples: int) -> tuple[float, float, float, float]:
    """Return the shares covered (concurrent, early) and the median widths of their intervals."""
    times, truth = starts(n), true_gain()
    held, widths = [0, 0], list[list[float]]([[], []])
    for run in range(runs):
        sample = draw(np.random.default_rng([run, n]), n, times)
        for place, before_K in enumerate((sample.control_K, sample.early_K)):
            gains_K = sample.final_K - before_K
            found = mean_interval(gains_K, support=(-1.0, 1.0), seed=run, resamples=resamples)
            assert found.low is not None
            assert found.high is not None
            held[place] += found.low <= truth <= found.high
            widths[place].append(found.high - found.low)
    concurrent, early = (float(np.median(width)) for width in widths)
    return held[0] / runs, held[1] / runs, concurrent, early


def table(runs: int, resamples: int) -> Iterator[str]:
    """Yield the table."""
    yield "| scenarios | concurrent | width | early | width | rollouts saved |"
    yield "| --- | --- | --- | --- | --- | --- |"
    with ProcessPoolExecutor(2) as pool:
        tasks = {n: pool.submit(cover, n, runs, resamples) for n in SCENARIOS}
        for n, task in tasks.items():
            concurrent, early, width, early_width = task.result()
            saved = (1 - REACHED) / 2
            yield (
                f"| {n} | {concurrent:.1%} | {width:.3f} | {early:.1%} | {early_width:.3f} | {saved:.0%} |"
            )


def main(runs: int = 1000, resamples: int = 1000) -> None:
    """Print the table."""
    for line in table(runs, resamples):
        print(line, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
