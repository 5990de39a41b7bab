"""Noise: how far sweeps of one library differ by their seeds alone, and which scenarios cause it.

The rollouts of a scenario in a sweep differ in their seed alone, and each has its seed from its identity, so
that they are independent. The variance of a sweep's mean over K scenarios with n rollouts each is therefore
``sum_k s_k^2 / n_k / K^2`` with the sample variances s_k^2 within scenarios: Miller 2024, "Adding Error Bars
to Evals", section 2. Which scenarios are in the suite is no part of it: two runs have the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypedDict

from pytest_tfgrpo.core.records import Group, Mode, PhaseResult, Run
from pytest_tfgrpo.core.report_blocks import Bounds, Gain
from pytest_tfgrpo.core.scenarios import given_families
from pytest_tfgrpo.metrics.comparison import Sweeps, Tally
from pytest_tfgrpo.numerics.arrays import np
from pytest_tfgrpo.numerics.stats import mean_interval

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


class SweepNoise(TypedDict):
    """The spread over seeds in one sweep, with the mean of each seed."""

    epoch: int
    mode: Mode
    scenarios: int
    seed_std: float
    run_std: float
    means: list[float]


class Noise(TypedDict):
    """The noise floor of a run."""

    rollouts: int
    sweeps: list[SweepNoise]
    seed_std: float | None
    """Standard deviation of a sweep with one rollout per scenario, over seeds."""
    run_std: float | None
    """That of a sweep as it was made."""
    difference: float | None
    """What two runs of one library differ by at most, in 19 of 20 cases."""
    gain_within: bool | None


class Flaky(TypedDict):
    """A scenario that some seeds of a sweep solved and some did not."""

    scenario: str
    domain: str
    epoch: int
    mode: Mode
    solved: float
    """Share of the scored rollouts that passed every check."""
    n: int


class AsFailures(TypedDict):
    """Mean and interval of a sweep or epoch with errors counted as 0."""

    epoch: int
    mode: Mode
    errors: int
    n: int
    mean: float | None
    ci95: Bounds


def noise(sweeps: Sweeps, gain: Gain | None) -> Noise | None:
    """Return the noise floor of a run, from its final and its baseline sweep; None without a final sweep.

    Its figures are null without a scenario of two scored rollouts. `gain` is the gain of the report.
    """
    last = sweeps.after
    if last is None:
        return None
    rows = [row for sweep in (sweeps.before, last) if sweep is not None and (row := _row(sweep))]
    value: Noise = {
        # a sweep that did not end while it was extended has groups of several sizes
        "rollouts": min((len(group.rollouts) for group in last.groups), default=last.phase.rollouts),
        "sweeps": rows,
        "seed_std": None,
        "run_std": None,
        "difference": None,
        "gain_within": None,
    }
    if not rows:
        return value
    value["seed_std"] = math.sqrt(sum(row["seed_std"] ** 2 for row in rows) / len(rows))
    value["run_std"] = run_std = math.sqrt(sum(row["run_std"] ** 2 for row in rows) / len(rows))
    value["difference"] = Z95 * math.sqrt(2) * run_std
    if gain is not None and gain["difference"] is not None and len(rows) == 2:
        stds = [row["run_std"] if own is None else own for row, own in zip(rows, _own(sweeps), strict=True)]
        value["gain_within"] = bool(abs(gain["difference"]) < Z95 * math.hypot(*stds))
    return value


def _own(sweeps: Sweeps) -> Iterator[float | None]:
    """Yield for both sweeps the part of `run_std` from answers of their own; None where none is shared.

    Answers that count in both sweeps are no noise of their difference.
    """
    for sweep in filter(None, (sweeps.before, sweeps.after)):
        if not any(group.shared for group in sweep.counted):
            yield None
            continue
        own = replace(sweep, groups=tuple(g for g in sweep.groups if not g.shared), shared=())
        row, whole = _row(own), _row(sweep)
        yield row["run_std"] * row["scenarios"] / whole["scenarios"] if row and whole else 0.0


def _row(sweep: PhaseResult) -> SweepNoise | None:
    """Return the spread over seeds in one sweep; None when no scenario has two scored rollouts."""
    scores = [known for group in sweep.counted if len(known := _known(group)) > 1]
    if not scores:
        return None

    variances = [float(np.var(known, ddof=1)) for known in scores]
    n = len(scores)
    whole = [known for known in scores if len(known) == sweep.phase.rollouts]
    return {
        "epoch": sweep.phase.epoch,
        "mode": sweep.phase.mode,
        "scenarios": n,
        "seed_std": math.sqrt(sum(variances)) / n,
        "run_std": math.sqrt(sum(v / len(known) for v, known in zip(variances, scores, strict=True))) / n,
        "means": np.mean(whole, axis=0).tolist() if whole else [],
    }


def _known(group: Group) -> list[float]:
    return [s.gt_score for s in group.scores if s.gt_score is not None]


def flaky(run: Run, sweeps: Sweeps) -> list[Flaky]:
    """Return the scenarios of the final and the baseline sweep that some seeds solved and some did not."""
    domain_of = {s.id: s.domain for s in run.scenarios}
    return [
        {
            "scenario": group.scenario_id,
            "domain": domain_of[group.scenario_id],
            "epoch": sweep.phase.epoch,
            "mode": sweep.phase.mode,
            "solved": share,
            "n": n,
        }
        for sweep in (sweeps.after, sweeps.before)
        if sweep is not None
        for group, share, n in _mixed(sweep)
    ]


def _mixed(sweep: PhaseResult) -> Iterator[tuple[Group, float, int]]:
    for group in sweep.groups:
        solved = [score >= 1.0 for score in _known(group)]
        if 0 < sum(solved) < len(solved):
            yield group, sum(solved) / len(solved), len(solved)


def within_spread(before: Tally, after: Tally) -> bool:
    """Return whether two means of a scenario differ by no more than its own spread over seeds explains.

    That is by at most two standard errors, of which one at least must be known not to be 0.
    """
    one, two = before.mean(), after.mean()
    if one is None or two is None:
        return False
    variance = sum(_variance(tally) / tally.n for tally in (before, after) if tally.n > 1)
    return variance > 0 and abs(two - one) <= 2 * math.sqrt(variance)


def _variance(tally: Tally) -> float:
    spread = tally.sum_sq - tally.sum * tally.sum / tally.n
    return spread / (tally.n - 1) if spread > 1e-12 else 0.0  # what is left of equal shares is rounding


def as_failures(run: Run) -> list[AsFailures]:
    """Return mean and interval of every epoch with errors counted as 0; empty for a run without errors.

    A scenario of which every rollout is an error counts as 0 too: nothing is dropped.
    """
    asked = [result for result in run.phases if result.phase.asks]
    errors = [sum(group.errors for group in result.counted) for result in asked]
    if not any(errors):
        return []
    families = given_families(run.scenarios)
    return [_as_failures(result, n, families) for result, n in zip(asked, errors, strict=True)]


def _as_failures(result: PhaseResult, errors: int, families: Mapping[str, str]) -> AsFailures:
    groups = [group for group in result.counted if group.scores]
    means = [math.fsum(s.gt_score or 0.0 for s in group.scores) / len(group.scores) for group in groups]
    found = mean_interval(means, [families.get(group.scenario_id, group.scenario_id) for group in groups])
    return {
        "epoch": result.phase.epoch,
        "mode": result.phase.mode,
        "errors": errors,
        "n": len(means),
        "mean": found.mean if means else None,
        "ci95": found.ci95,
    }
