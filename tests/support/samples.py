"""Samples that simulations of the numerics draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np

from pytest_tfgrpo.numerics import pooled_effects as module
from pytest_tfgrpo.numerics.attribution import Effect, Trials
from pytest_tfgrpo.numerics.cells import Cells, Kinds, cells_of
from pytest_tfgrpo.numerics.sequential import IntervalSequence, MeanSequence
from pytest_tfgrpo.numerics.stats import mean_interval

CONTEXTS, ARMS = 3, 4


def trials(z: Any, y: Any, **changes: Any) -> Trials:
    """Return trials of one scenario each, without a covariate that says anything."""
    n = len(z)
    fields = {
        "z_K": np.asarray(z, dtype=np.bool_),
        "propensity_K": np.full(n, 0.8),
        "y_K": np.asarray(y, dtype=np.float64),
        "x_K": np.zeros(n),
        "cluster_K": np.arange(n),
        "stratum_K": np.zeros(n, dtype=np.intp),
    }
    return Trials(**{key: np.asarray(value) for key, value in (fields | changes).items()})


def drawn_trials(
    seed: int, n: int, effect: float = 0.0, *, propensity: float = 0.8, base: float = 0.5, **changes: Any
) -> Trials:
    """Return trials by a coin of `propensity`, with outcomes of 0, .5 and 1."""
    rng = np.random.default_rng(seed)
    z = rng.random(n) < propensity
    y = rng.binomial(2, np.clip(base + effect * z, 0, 1)) / 2
    return trials(z, y, propensity_K=np.full(n, propensity), **changes)


def cover(found: list[Effect], truth: float) -> float:
    """Return the share of intervals that hold the truth."""
    return float(
        np.mean([e.low <= truth <= e.high for e in found if e.low is not None and e.high is not None])
    )


def seeds_and_families(seed: int, seeds: int, between: float) -> tuple[np.ndarray, list[int]]:
    """Return gains by seed and scenario around 0.1, and the family of each scenario."""
    rng = np.random.default_rng(seed)
    family_K = np.repeat(np.arange(20), 3)
    shared = rng.normal(0, 0.15, 20)[family_K] + rng.normal(0, 0.1, (seeds, 20))[:, family_K]
    gains = 0.1 + rng.normal(0, between, (seeds, 1)) + shared + rng.normal(0, 0.1, (seeds, 60))
    return gains.clip(-1, 1), family_K.tolist()


def logged(seed: int, n: int = 400, floor: float = 0.05) -> tuple[np.ndarray, ...]:
    """Return rewards, contexts, arms, probabilities of a policy that learned, and the true means."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(2, 2, (CONTEXTS, ARMS))
    sums, counts = np.full((CONTEXTS, ARMS), 0.5), np.ones((CONTEXTS, ARMS))
    contexts, draws = rng.integers(0, CONTEXTS, n), rng.random((2, n))
    rewards, arms, probabilities = np.empty(n), np.empty(n, dtype=int), np.empty((n, ARMS))
    for i, context in enumerate(contexts):
        raised = np.exp(8 * sums[context] / counts[context])
        p = (1 - ARMS * floor) * raised / raised.sum() + floor
        arm = min(int((draws[0, i] > p.cumsum()).sum()), ARMS - 1)
        rewards[i], arms[i], probabilities[i] = draws[1, i] < truth[context, arm], arm, p
        sums[context, arm] += rewards[i]
        counts[context, arm] += 1
    return rewards, contexts, arms, probabilities, truth


def target_of(truth: np.ndarray, sure: float = 0.9) -> np.ndarray:
    """Return a policy that mostly takes the best arm of each context."""
    target = np.full((CONTEXTS, ARMS), (1 - sure) / (ARMS - 1))
    target[np.arange(CONTEXTS), truth.argmax(axis=1)] = sure
    return target


def bounds(population: Sequence[float | None], **options: float) -> list[tuple[float, float]]:
    """Return the bounds of a confidence sequence after each value."""
    sequence, found = MeanSequence(len(population), **options), []  # type: ignore[arg-type]
    for value in population:
        sequence.feed(value)
        found.append((sequence.low, sequence.high))
    return found


def foreseen_and_found(seed: int, sizes: Sequence[int]) -> tuple[float, float]:
    """Return the widths of the interval foreseen after 60 families, and of that of all their values."""
    rng = np.random.default_rng([7, seed])
    families = [
        rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2]) * np.ones(rng.choice(sizes)) for _ in range(60)
    ]
    mean = MeanSequence(sum(f.size for f in families), families=[f.size for f in families])
    foreseen = IntervalSequence(mean, spread_alpha=0.0025, alpha=0.02)
    low, high = -1.0, 1.0
    for family in families:
        mean.feed(*family)
        low, high = foreseen.feed(*family)
    family_K = np.repeat(np.arange(60), [f.size for f in families]).tolist()
    found = mean_interval(np.concatenate(families), family_K, support=(-1, 1), seed=seed, resamples=1000)
    assert found.low is not None
    assert found.high is not None
    return high - low, found.high - found.low


def one_by_one(cells: Cells, *known: Any) -> Kinds:
    """Take each scenario as a kind of its own."""
    places = np.arange(len(known[0]))
    return Kinds(cells, places, places)


def by_kinds_and_one_by_one(
    seed: int, graded: bool, errors: bool, lessons: int = 3
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return effects and gain of rollouts drawn, from kinds of scenarios and from each by itself."""
    rng = np.random.default_rng(seed)
    scenarios = int(rng.integers(1, 60))
    about = rng.integers(0, 3, scenarios)[:, None] == np.arange(lessons)[None]
    stands, parts = about | (rng.random(about.shape) < 0.5), rng.integers(-1, 3, scenarios)
    targets = rng.integers(0, 3, scenarios).astype(float)
    at = np.sort(rng.integers(0, scenarios, 4 * scenarios))
    carried = rng.integers(0, 2, (at.size, 1)).astype(bool) & (np.arange(lessons) < 2)
    scores = rng.choice([0.0, 0.5, 1.0] if graded else [0.0, 1.0], at.size)
    scores[rng.random(at.size) < 0.1 * errors] = math.nan
    cells = cells_of(scores, at, carried)

    def found() -> tuple[Any, ...]:
        effects = module.pooled_effects(cells, about, targets_S=targets, stands_SL=stands)
        gain = module.cross_fitted(cells, about, parts, targets_S=targets, stands_SL=stands)
        numbers = (effects.on_topic, effects.on_topic_sd, effects.elsewhere, effects.value, effects.value_sd)
        return (*numbers, effects.helps, effects.tried, [effects.prior.on_topic.sd], gain)

    together = found()
    with mock.patch.object(module, "kinds_of", one_by_one):
        return together, found()
