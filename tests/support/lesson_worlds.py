"""Rollouts in which each lesson has a known effect."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pytest_tfgrpo.numerics.cells import Cells, cells_of
from pytest_tfgrpo.numerics.effect_model import EffectPrior, logistic
from pytest_tfgrpo.numerics.pooled_effects import PooledEffects, pooled_effects


class World(NamedTuple):
    """Rollouts with known effects."""

    scores: Any
    scenarios: Any
    carried: Any
    about: Any
    on: Any
    elsewhere: Any
    does: Any
    """By scenario and lesson."""


def world(
    seed: int,
    *,
    scenarios: int = 60,
    each: int = 12,
    lessons: int = 12,
    on: Any = None,
    elsewhere: Any = None,
    share: float = 1.0,
) -> World:
    """Draw rollouts in six topics, with each lesson by a coin; on topic it works in a `share` of tasks."""
    rng = np.random.default_rng(seed)
    about = rng.integers(0, 6, scenarios)[:, None] == np.arange(lessons)[None] % 6
    on = rng.normal(0.5, 0.8, lessons) if on is None else np.asarray(on)
    elsewhere = rng.normal(-0.1, 0.1, lessons) if elsewhere is None else np.asarray(elsewhere)
    chance = rng.beta(0.8, 0.8, scenarios).clip(0.01, 0.99)
    at = np.repeat(np.arange(scenarios), each)
    carried = rng.random((at.size, lessons)) < 0.5
    works = np.random.default_rng([seed, 1]).random(about.shape) < share
    does = np.where(about, on * works, elsewhere)
    logit = np.log(chance / (1 - chance))[at] + (carried * does[at]).sum(axis=1)
    scores = (rng.random(at.size) < logistic(logit)).astype(float)
    return World(scores, at, carried, about, on, elsewhere, does)


def cells(w: World) -> Cells:
    return cells_of(w.scores, w.scenarios, w.carried)


def found(w: World, prior: EffectPrior | None = None) -> PooledEffects:
    return pooled_effects(cells(w), w.about, prior)


def parts(w: World, number: int = 5) -> Any:
    """Spread the scenarios of each topic over parts."""
    place = np.lexsort((np.arange(len(w.about)), w.about.argmax(axis=1)))
    part = np.zeros(len(w.about), dtype=int)
    part[place] = np.arange(len(w.about)) % number
    return part


def gain_of(w: World, kept: Any) -> float:
    """Return what lessons really add to the mean score of scenarios like these."""
    chance = np.random.default_rng(0).beta(0.8, 0.8, 4000).clip(0.01, 0.99)[:, None]
    logit, shift = np.log(chance / (1 - chance)), w.does[:, kept].sum(axis=1)
    return float((logistic(logit + shift) - chance).mean())
