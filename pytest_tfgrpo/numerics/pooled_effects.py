"""What lessons are worth, from rollouts that carried each of them by chance: all effects at once.

One regression (`effect_model`) estimates two effects a lesson, on the logit scale; from them follow the value
of a lesson on the scale of scores, the choice of lessons, and what the choice is worth.

Axes: ``_C`` cells, ``_S`` scenarios, ``_L`` lessons, ``_Q`` effects on topic, then elsewhere. Everything
is deterministic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from pytest_tfgrpo.numerics.arrays import Bools, Floats, Ints, np
from pytest_tfgrpo.numerics.cells import Cells, kinds_of
from pytest_tfgrpo.numerics.effect_model import (
    EffectFit,
    EffectPrior,
    fit_effects,
    logistic,
)

_TINY = 1e-12
_VARIED = 0.75
"""How much a lesson's effect differs between tasks that it is about, relative to the size of such effects."""
_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True, slots=True)
class PooledEffects:
    """What rollouts show of lessons; effects are on the logit scale, values on that of scores."""

    on_topic: Floats
    """Posterior mean, by lesson."""
    on_topic_sd: Floats
    elsewhere: Floats
    elsewhere_sd: Floats
    value: Floats
    """Expected change of the mean score if the lesson joins the others that are worth it."""
    value_sd: Floats
    prior: EffectPrior
    """As learned."""
    tried: Bools
    """By lesson, whether a scenario has rollouts with it and others without."""

    @property
    def estimable(self) -> bool:
        """Whether the rollouts show anything of any lesson."""
        return bool(self.tried.any())

    @property
    def helps(self) -> Floats:
        """Probability of each lesson to raise the mean score."""
        return normal_cdf(self.value / np.maximum(self.value_sd, _TINY))


def chosen(effects: PooledEffects, *, confidence: float = 0.5) -> Bools:
    """Return which lessons to keep: those that raise the mean score with probability over `confidence`.

    At 0.5 that is what serves the mean score best. How much doubt a lesson survives follows the learned
    prior: among lessons that mostly help, one of which little is known stays; among those that mostly harm,
    it goes.
    """
    kept_L: Bools = effects.helps > confidence
    return kept_L


def pooled_effects(
    cells: Cells,
    about_SL: Bools,
    prior: EffectPrior | None = None,
    *,
    targets_S: Floats | None = None,
    stands_SL: Bools | None = None,
) -> PooledEffects:
    """Return what rollouts show of each lesson.

    Cells are of the scenarios in the rows of `about_SL`, which has True where a lesson is about the task;
    their errors do not count. Values are means over scenarios with the weights `targets_S` (all alike by
    default), where the prompts of `stands_SL` would carry the lesson (all by default).

    Raises ValueError on arrays that do not fit.
    """
    _require_fit(cells, about_SL)
    weights_S = np.ones(len(about_SL)) if targets_S is None else targets_S
    reach_SL = np.ones_like(about_SL) if stands_SL is None else stands_SL
    kinds = kinds_of(cells.scored, about_SL, reach_SL)
    first = kinds.first_K
    tasks = _Tasks(about_SL[first], reach_SL[first], kinds.sums(weights_S), kinds.count_K)
    return _pooled(kinds.cells, tasks, prior or EffectPrior())


class _Tasks(NamedTuple):
    """Scenarios, of one kind or each by itself."""

    about_SL: Bools
    reach_SL: Bools
    """Where a prompt would carry the lesson."""
    weights_S: Floats
    count_S: Floats
    """How many scenarios each stands for."""


def _pooled(cells: Cells, tasks: _Tasks, prior: EffectPrior) -> PooledEffects:
    about_SL, count = tasks.about_SL, tasks.about_SL.shape[1]
    fit = fit_effects(cells, about_SL, prior, count_S=tasks.count_S)
    value_L, value_sd_L = _values(fit, about_SL, tasks.reach_SL, tasks.weights_S)
    sd_P = np.sqrt(np.maximum(np.diag(fit.covariance_QQ), 0.0))
    return PooledEffects(
        on_topic=fit.effect_Q[:count],
        on_topic_sd=sd_P[:count],
        elsewhere=fit.effect_Q[count:],
        elsewhere_sd=sd_P[count:],
        value=value_L,
        value_sd=value_sd_L,
        prior=fit.prior,
        tried=_tried(cells, about_SL.shape),
    )


def cross_fitted(
    cells: Cells,
    about_SL: Bools,
    parts_S: Ints,
    prior: EffectPrior | None = None,
    *,
    among_L: Bools | None = None,
    confidence: float = 0.5,
    targets_S: Floats | None = None,
    stands_SL: Bools | None = None,
) -> tuple[float, float]:
    """Return what lessons of `among_L` add to the mean score together, and its standard error.

    On each part of the scenarios, numbered in `parts_S`, the lessons count that all others choose, so that
    luck in the choice is not counted as gain; scenarios of part -1 only choose. The measuring part gives
    those chosen a mean effect of their own, of which it knows nothing before, so that it does not draw them
    towards the others. The mean is over scenarios with the weights `targets_S`; otherwise as
    `pooled_effects`.
    """
    _require_fit(cells, about_SL)
    known, reach_SL = prior or EffectPrior(), np.ones_like(about_SL) if stands_SL is None else stands_SL
    weights_S = np.ones(len(about_SL)) if targets_S is None else targets_S
    kinds = kinds_of(cells.scored, about_SL, reach_SL, parts_S)
    first, of_kinds = kinds.first_K, kinds.cells
    tasks = _Tasks(about_SL[first], reach_SL[first], kinds.sums(weights_S), kinds.count_K)
    parts_K, seen_K = parts_S[first], np.bincount(of_kinds.scenario_C, minlength=first.size) > 0
    gain = variance = total = 0.0
    for part in np.unique(parts_K[(parts_K >= 0) & seen_K]):
        on_K = parts_K == part
        choice = _pooled(of_kinds.within(~on_K), tasks._replace(weights_S=tasks.count_S), known)
        kept_L = chosen(choice, confidence=confidence) & (True if among_L is None else among_L)
        measured = tasks._replace(weights_S=tasks.weights_S * (on_K & seen_K))
        weight = float(measured.weights_S.sum())
        total += weight
        if not kept_L.any():
            continue
        member_LK = np.column_stack([kept_L, ~kept_L])[:, : 1 if kept_L.all() else 2].astype(np.float64)
        fit = fit_effects(of_kinds.within(on_K), tasks.about_SL, known, member_LK, count_S=tasks.count_S)
        found = _joint_value(fit, measured, kept_L)
        gain, variance = gain + weight * found[0], variance + weight**2 * found[1]
    return (gain / total, math.sqrt(variance) / total) if total else (0.0, 0.0)


def _joint_value(fit: EffectFit, tasks: _Tasks, kept_L: Bools) -> tuple[float, float]:
    """Return by how much the lessons of `kept_L` change the mean score together, and its variance."""
    about_SL, reach_SL, weights_S, _ = tasks
    total = float(weights_S.sum())
    if total <= 0:
        return 0.0, 0.0
    carried_SL = reach_SL * kept_L
    design_SQ = np.hstack([carried_SL * about_SL, carried_SL * ~about_SL])
    shrink_S = _shrink(fit.scenario_variance_S)
    low_S = logistic(shrink_S * fit.scenario_S)
    high_S = logistic(shrink_S * (fit.scenario_S + design_SQ @ fit.effect_Q))
    slope_Q = (weights_S * shrink_S * high_S * (1.0 - high_S) / total) @ design_SQ
    return float(weights_S @ (high_S - low_S)) / total, float(slope_Q @ fit.covariance_QQ @ slope_Q)


def _require_fit(cells: Cells, about_SL: Bools) -> None:
    if about_SL.ndim != 2 or cells.carried_CL.shape[1:] != about_SL.shape[1:]:
        raise ValueError(f"cells are of other lessons: {cells.carried_CL.shape}, about {about_SL.shape}")
    if cells.n_C.size and not (cells.scenario_C.min() >= 0 and cells.scenario_C.max() < len(about_SL)):
        raise ValueError(f"scenarios must be indices below {len(about_SL)}")


def _tried(cells: Cells, shape: tuple[int, ...]) -> Bools:
    with_SL = np.zeros(shape, dtype=np.bool_)
    without_SL = np.zeros(shape, dtype=np.bool_)
    np.logical_or.at(with_SL, cells.scenario_C, cells.carried_CL)
    np.logical_or.at(without_SL, cells.scenario_C, ~cells.carried_CL)
    return np.asarray((with_SL & without_SL).any(axis=0))


def _values(fit: EffectFit, about_SL: Bools, reach_SL: Bools, weights_S: Floats) -> tuple[Floats, Floats]:
    """Return by how much each lesson changes the mean score beside the others worth it, with its sd.

    That effects differ between tasks flattens the mean of the logistic function (MacKay 1992, "The evidence
    framework applied to classification networks"); else the best of large effects are listed as too large.
    It flattens with and without the lesson alike, so that it turns no sign.
    """
    scenarios, lessons = about_SL.shape
    total = weights_S.sum()
    if not (scenarios and lessons) or total <= 0:
        return np.zeros(lessons), np.zeros(lessons)
    on_L, elsewhere_L = fit.effect_Q[:lessons], fit.effect_Q[lessons:]
    effect_SL = np.where(about_SL, on_L, elsewhere_L) * reach_SL
    size = math.hypot(fit.prior.on_topic.mean, fit.prior.on_topic.sd)
    varied_SL = (about_SL & reach_SL) * (_VARIED * size) ** 2
    w_S1 = (weights_S / total)[:, None]
    kept_L = np.ones(lessons, dtype=np.bool_)
    for _ in range(4):
        others_SL = fit.scenario_S[:, None] + (effect_SL @ kept_L)[:, None] - effect_SL * kept_L
        known_S = fit.scenario_variance_S + varied_SL @ kept_L
        shrink_SL = _shrink(known_S[:, None] + varied_SL * ~kept_L)
        low_SL = logistic(shrink_SL * others_SL)
        high_SL = logistic(shrink_SL * (others_SL + effect_SL))
        value_L = (w_S1 * (high_SL - low_SL)).sum(axis=0)
        if np.array_equal(kept_L, value_L > 0):
            break
        kept_L = value_L > 0
    slope_SL = w_S1 * shrink_SL * reach_SL * high_SL * (1.0 - high_SL)
    on_slope_L, elsewhere_slope_L = (slope_SL * about_SL).sum(axis=0), (slope_SL * ~about_SL).sum(axis=0)
    k = np.arange(lessons)
    V = fit.covariance_QQ
    variance_L = (
        on_slope_L**2 * V[k, k]
        + elsewhere_slope_L**2 * V[lessons + k, lessons + k]
        + 2 * on_slope_L * elsewhere_slope_L * V[k, lessons + k]
    )
    return value_L, np.sqrt(np.maximum(variance_L, 0.0))


def _shrink(variance: Floats) -> Floats:
    """Return what a normal logit is multiplied by, so that its logistic function is the mean one."""
    return np.asarray(1.0 / np.sqrt(1.0 + math.pi / 8.0 * variance))


def normal_cdf(z: Floats) -> Floats:
    """Return the standard normal distribution function, elementwise."""
    return np.array([_NORMAL.cdf(float(value)) for value in z], dtype=np.float64)
