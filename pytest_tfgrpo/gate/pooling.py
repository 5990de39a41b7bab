"""Pooling: a baseline over every sweep of one build, green or not, as small sums; and how much they drift.

To keep only the sweeps that passed would raise the bar with every lucky one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import fsum

from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.gate.baseline import Baseline, SweepSums
from pytest_tfgrpo.metrics.comparison import Tally

MOST_SWEEPS = 100
"""Sweeps that a file lists; the sums keep what older ones found."""
MIN_DRIFT = 5
"""Sweeps from which on their spread is known well enough to be used."""


def pooled(baseline: Baseline, others: Iterable[Baseline]) -> Baseline:
    """Return `baseline` with the sweeps of those `others` that have its build and are not in it yet.

    A scenario whose task is another in an older sweep is not pooled, nor is a sweep that repeats another one
    to the last score, as a run with the same seeds does: it adds nothing.
    """
    known, rows = dict(sweeps_of(baseline)), dict(baseline.scenarios)
    seen = [dict(baseline.scenarios)]
    for other in others:
        new = sweeps_of(other)
        if not is_same_build(baseline, other) or not known.keys().isdisjoint(new) or other.scenarios in seen:
            continue
        known |= new
        seen.append(dict(other.scenarios))
        alike = {name for name, scale in other.metrics.items() if baseline.metrics.get(name) == scale}
        for id_, row in other.scenarios.items():
            mine = rows.get(id_)
            if mine is not None and mine.stamp == row.stamp:
                rows[id_] = _sum(mine, row, alike)
    if len(known) < 2:
        return baseline
    listed = sorted(known.items(), key=lambda item: (item[1].created_at, item[0]))
    return replace(baseline, scenarios=rows, sweeps=dict(listed[-MOST_SWEEPS:]))


def is_same_build(one: Baseline, other: Baseline) -> bool:
    """Return whether two baselines are of one agent, library and packs, measured alike."""
    return (one.actor, one.library, one.temperature, dict(one.stamps)) == (
        other.actor,
        other.library,
        other.temperature,
        dict(other.stamps),
    )


def sweeps_of(baseline: Baseline) -> Mapping[str, SweepSums]:
    """Return the sweeps of a baseline by run; one that was never pooled has the one it was made from."""
    if baseline.sweeps:
        return baseline.sweeps
    means = [mean for row in baseline.scenarios.values() if (mean := row.mean()) is not None]
    own = SweepSums(
        created_at=baseline.created_at,
        scenarios=stamp({id_: row.stamp for id_, row in sorted(baseline.scenarios.items())}),
        n=len(means),
        sum=fsum(means),
        rollouts=sum(row.n for row in baseline.scenarios.values()),
    )
    return {baseline.run_id: own}


def drift_of(baseline: Baseline) -> float | None:
    """Return the standard deviation of a new sweep around the baseline that its rollouts do not explain.

    None with fewer than 5 sweeps of the same scenarios. The variance of their means, less what their rollouts
    bring, holds for the new sweep and, divided by their number, for the baseline.
    """
    listed = list(sweeps_of(baseline).values())
    alike = [sweep for sweep in listed if sweep.scenarios == listed[-1].scenarios and sweep.n]
    if len(alike) < MIN_DRIFT:
        return None
    means = [sweep.sum / sweep.n for sweep in alike]
    mean = fsum(means) / len(means)
    found = fsum((x - mean) ** 2 for x in means) / (len(means) - 1)
    explained = fsum(_within(baseline.scenarios) / max(sweep.rollouts, 1) for sweep in alike) / len(alike)
    return math.sqrt(max(found - explained, 0.0) * (1 + 1 / len(alike)))


def not_covered(baseline: Baseline) -> str:
    """Return that nothing is known of drift, and how many sweeps there are of those needed."""
    return f"drift is not covered ({len(sweeps_of(baseline))} of {MIN_DRIFT} sweeps)"


def _within(rows: Mapping[str, Tally]) -> float:
    """Return the mean variance of the rollouts of a scenario."""
    known = [max(row.sum_sq - row.sum**2 / row.n, 0.0) / (row.n - 1) for row in rows.values() if row.n > 1]
    return fsum(known) / len(known) if known else 0.0


def _sum(one: Tally, other: Tally, alike: Collection[str]) -> Tally:
    """Return both tallies as one; of further metrics those that are on one scale."""
    both = {name: own for name, own in one.metrics.items() if name in alike and name in other.metrics}
    added = {n: tuple(a + b for a, b in zip(own, other.metrics[n], strict=True)) for n, own in both.items()}
    return replace(
        one,
        n=one.n + other.n,
        sum=one.sum + other.sum,
        sum_sq=one.sum_sq + other.sum_sq,
        errors=one.errors + other.errors,
        metrics={**one.metrics, **added},
    )
