"""The effects of all lessons at once, from rollouts that carried each of them by chance.

One regression on the logit scale: ``logit E[score] = a_s + sum of b_sl over the lessons carried``, where b_sl
is the lesson's effect *on topic* where it is about the task of scenario s, and its effect *elsewhere* where
it merely stands in the prompt. Scenarios and effects are random (Breslow and Clayton 1993, "Approximate
Inference in Generalized Linear Mixed Models"), scores are quasi-binomial (Wedderburn 1974), so graded ones
are welcome. Means and spreads of the effects are learned by empirical Bayes (MacKay 1992, "Bayesian
Interpolation").

Axes: ``_R`` rollouts, ``_S`` scenarios, ``_L`` lessons, ``_C`` cells of rollouts that carried the same
lessons in one scenario, ``_P`` coefficients: on topic, elsewhere, the means of both, that of the scenarios.
Everything is deterministic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.numerics.arrays import Floats

MOST_WEIGHT = 60.0
"""Lessons that a learned prior counts for at most, so that what has changed is learned anew."""
_SCENARIOS = (1.7, 4.0)
"""Spread of the scenarios' logits before any is seen, and its weight in scenarios."""
_MEAN_SD = 2.5
"""Spread of the mean logit, about 0."""
_ROUNDS = 60
_TOLERANCE = 1e-5
_LONGEST_STEP = 3.0
_LEAST_DISPERSION = 0.02
_LEAST_SD = 0.02
_TINY = 1e-12
_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectSpread:
    """A normal distribution of effects over lessons, on the logit scale."""

    mean: float
    sd: float
    weight: float
    """Lessons that mean and spread are known from; 0 is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectPrior:
    """What is known of a lesson's effects before it is tried."""

    on_topic: EffectSpread = field(default_factory=lambda: EffectSpread(mean=0.3, sd=0.7, weight=2.0))
    elsewhere: EffectSpread = field(default_factory=lambda: EffectSpread(mean=-0.05, sd=0.2, weight=2.0))


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
    tried: npt.NDArray[np.bool_]
    """By lesson, whether a scenario has rollouts with it and others without."""

    @property
    def estimable(self) -> bool:
        """Whether the rollouts show anything of any lesson."""
        return bool(self.tried.any())

    @property
    def helps(self) -> Floats:
        """Probability of each lesson to raise the mean score."""
        return normal_cdf(self.value / np.maximum(self.value_sd, _TINY))


def chosen(effects: PooledEffects, *, confidence: float = 0.5) -> npt.NDArray[np.bool_]:
    """Return which lessons to keep: those that raise the mean score with probability over `confidence`.

    At 0.5 that is what serves the mean score best. How much doubt a lesson survives follows the learned
    prior: among lessons that mostly help, one of which little is known stays; among those that mostly harm,
    it goes.
    """
    kept_L: npt.NDArray[np.bool_] = effects.helps > confidence
    return kept_L


def doubtful(effects: PooledEffects, *, level: float = 0.05) -> npt.NDArray[np.bool_]:
    """Return which lessons are neither settled as help nor as harm: those worth trying further."""
    helps_L = effects.helps
    open_L: npt.NDArray[np.bool_] = (helps_L > level) & (helps_L < 1.0 - level)
    return open_L


def pooled_effects(
    scores_R: Floats,
    scenarios_R: npt.NDArray[np.intp],
    carried_RL: npt.NDArray[np.bool_],
    about_SL: npt.NDArray[np.bool_],
    prior: EffectPrior | None = None,
    *,
    targets_S: Floats | None = None,
    stands_SL: npt.NDArray[np.bool_] | None = None,
) -> PooledEffects:
    """Return what rollouts show of each lesson.

    `scores_R` lie in [0, 1], `scenarios_R` are indices into the rows of `about_SL`, which has True where a
    lesson is about the scenario's task. Values are means over scenarios with the weights `targets_S` (all
    alike by default), where the prompts of `stands_SL` would carry the lesson (all by default).

    Raises ValueError on arrays that do not fit, on scores outside [0, 1] and on indices out of range.
    """
    known = prior or EffectPrior()
    _require_sound(scores_R, scenarios_R, carried_RL, about_SL)
    cells = _cells(scores_R, scenarios_R, carried_RL)
    fit = _fit(cells, about_SL, known)
    count = about_SL.shape[1]
    weights_S = np.ones(about_SL.shape[0]) if targets_S is None else np.asarray(targets_S, dtype=np.float64)
    reach_SL = np.ones_like(about_SL) if stands_SL is None else stands_SL
    value_L, value_sd_L = _values(fit, about_SL, reach_SL, weights_S)
    sd_P = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    return PooledEffects(
        on_topic=fit.effects[:count],
        on_topic_sd=sd_P[:count],
        elsewhere=fit.effects[count:],
        elsewhere_sd=sd_P[count:],
        value=value_L,
        value_sd=value_sd_L,
        prior=fit.prior,
        tried=_tried(cells, about_SL.shape),
    )


class _Cells(NamedTuple):
    """Rollouts that carried the same lessons in one scenario, in order of scenario."""

    scenario_C: npt.NDArray[np.intp]
    carried_CL: Floats
    n_C: Floats
    sum_C: Floats
    square_C: Floats


class _Fit(NamedTuple):
    """The posterior of effects and scenarios."""

    effects: Floats
    """On topic, then elsewhere: 2 L."""
    covariance: Floats
    scenarios: Floats
    """Logit of each without a lesson."""
    scenario_variance: Floats
    prior: EffectPrior


def _require_sound(
    scores_R: Floats,
    scenarios_R: npt.NDArray[np.intp],
    carried_RL: npt.NDArray[np.bool_],
    about_SL: npt.NDArray[np.bool_],
) -> None:
    if scores_R.ndim != 1 or scenarios_R.shape != scores_R.shape:
        raise ValueError(f"scores and scenarios differ: {scores_R.shape} and {scenarios_R.shape}")
    if carried_RL.ndim != 2 or about_SL.ndim != 2 or carried_RL.shape != (scores_R.size, about_SL.shape[1]):
        raise ValueError(
            f"carried must be rollouts x lessons, got {carried_RL.shape}, about {about_SL.shape}"
        )
    if not np.all((scores_R >= -_TINY) & (scores_R <= 1 + _TINY)):
        raise ValueError("scores must lie in [0, 1]")
    if scenarios_R.size and not (scenarios_R.min() >= 0 and scenarios_R.max() < about_SL.shape[0]):
        raise ValueError(f"scenarios must be indices below {about_SL.shape[0]}")


def _cells(scores_R: Floats, scenarios_R: npt.NDArray[np.intp], carried_RL: npt.NDArray[np.bool_]) -> _Cells:
    scenario_R3 = scenarios_R.astype(">u4")[:, None].view(np.uint8).reshape(scores_R.size, 4)
    rows_RB = np.column_stack([scenario_R3, np.packbits(carried_RL, axis=1)])
    keys_R = np.ascontiguousarray(rows_RB).view(f"V{rows_RB.shape[1]}").ravel()
    _, first_C, cell_R = np.unique(keys_R, return_index=True, return_inverse=True)
    y_R = np.clip(scores_R.astype(np.float64), 0.0, 1.0)
    return _Cells(
        scenario_C=scenarios_R[first_C].astype(np.intp),
        carried_CL=carried_RL[first_C].astype(np.float64),
        n_C=np.bincount(cell_R, minlength=first_C.size).astype(np.float64),
        sum_C=np.bincount(cell_R, y_R, first_C.size).astype(np.float64),
        square_C=np.bincount(cell_R, y_R**2, first_C.size).astype(np.float64),
    )


def _tried(cells: _Cells, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    with_SL = np.zeros(shape, dtype=np.bool_)
    without_SL = np.zeros(shape, dtype=np.bool_)
    np.logical_or.at(with_SL, cells.scenario_C, cells.carried_CL > 0)
    np.logical_or.at(without_SL, cells.scenario_C, cells.carried_CL == 0)
    return np.asarray((with_SL & without_SL).any(axis=0))


def _fit(cells: _Cells, about_SL: npt.NDArray[np.bool_], prior: EffectPrior) -> _Fit:
    """Return the mode of the posterior, with its curvature there, under the prior learned with it."""
    scenarios, lessons = about_SL.shape
    about_CL = about_SL[cells.scenario_C]
    on_CL, elsewhere_CL = cells.carried_CL * about_CL, cells.carried_CL * ~about_CL
    kinds = (prior.on_topic, prior.elsewhere)
    X_CP = np.column_stack(
        [on_CL, elsewhere_CL, on_CL.sum(axis=1), elsewhere_CL.sum(axis=1), np.ones(cells.n_C.size)]
    )
    sd_2 = np.array([kind.sd for kind in kinds])
    tau, phi = _SCENARIOS[0], 1.0
    a_S, b_P = np.zeros(scenarios), np.zeros(2 * lessons + 3)
    center_P = np.concatenate([np.zeros(2 * lessons), [kind.mean for kind in kinds], [0.0]])
    b_P[:] = center_P
    for _ in range(_ROUNDS):
        precision_P = np.concatenate(
            [
                np.repeat(1.0 / sd_2**2, lessons),
                [max(kind.weight, 0.05) / kind.sd**2 for kind in kinds],
                [1.0 / _MEAN_SD**2],
            ]
        )
        step = _newton(cells, X_CP, a_S, b_P, center_P, precision_P, tau, phi)
        a_S, b_P = a_S + step.a_S, b_P + step.b_P
        before = np.concatenate([sd_2, [tau, phi]])
        sd_2 = np.array(
            [
                _spread(b_P[part], np.diag(step.covariance)[part], sd, kind)
                for part, sd, kind in zip(_parts(lessons), sd_2, kinds, strict=True)
            ]
        )
        tau = math.sqrt(
            (_SCENARIOS[1] * _SCENARIOS[0] ** 2 + (a_S**2 + step.variance_S).sum())
            / (_SCENARIOS[1] + scenarios)
        )
        phi = _dispersion(cells, X_CP, a_S, b_P)
        moved = np.abs(np.concatenate([sd_2, [tau, phi]]) - before).max()
        if max(moved, np.abs(step.b_P).max(), np.abs(step.a_S).max(initial=0.0)) < _TOLERANCE:
            break
    return _posterior(a_S, b_P, step, lessons, sd_2, prior)


def _parts(lessons: int) -> tuple[slice, slice]:
    return slice(0, lessons), slice(lessons, 2 * lessons)


def _spread(d_L: Floats, variance_L: Floats, sd: float, kind: EffectSpread) -> float:
    """Return the spread of effects d about their mean: each counts by what is known of it (MacKay 1992)."""
    known = float(np.clip(1.0 - variance_L / sd**2, 0.0, 1.0).sum())
    weight = max(kind.weight, 0.05)
    return max(math.sqrt((weight * kind.sd**2 + float((d_L**2).sum())) / (weight + known)), _LEAST_SD)


def _dispersion(cells: _Cells, X_CP: Floats, a_S: Floats, b_P: Floats) -> float:
    """Return the variance of scores over that of successes with the same mean: 1 where all are 0 or 1."""
    p_C = logistic(a_S[cells.scenario_C] + X_CP @ b_P)
    spread = float((cells.n_C * p_C * (1.0 - p_C)).sum())
    if cells.square_C.sum() >= cells.sum_C.sum() - 1e-9 or spread < _TINY:
        return 1.0
    squares = float((cells.square_C - 2 * p_C * cells.sum_C + cells.n_C * p_C**2).sum())
    n = float(cells.n_C.sum())
    lost = min(np.unique(cells.scenario_C).size, 0.5 * n)  # what the scenarios' own levels explain
    return float(np.clip(squares / spread * n / (n - lost), _LEAST_DISPERSION, 1.0))


class _Step(NamedTuple):
    """A step of Newton's method, and the inverse curvature where it began."""

    a_S: Floats
    b_P: Floats
    covariance: Floats
    variance_S: Floats
    cross_SP: Floats
    """Covariance of scenarios and coefficients."""


def _newton(
    cells: _Cells,
    X_CP: Floats,
    a_S: Floats,
    b_P: Floats,
    center_P: Floats,
    precision_P: Floats,
    tau: float,
    phi: float,
) -> _Step:
    """Return the step towards the mode; scenarios are eliminated first, for their block is diagonal."""
    s_C, scenarios = cells.scenario_C, a_S.size
    p_C = logistic(a_S[s_C] + X_CP @ b_P)
    w_C = cells.n_C * np.maximum(p_C * (1.0 - p_C), 1e-9) / phi
    g_C = (cells.sum_C - cells.n_C * p_C) / phi
    WX_CP = w_C[:, None] * X_CP
    Haa_S = np.bincount(s_C, w_C, minlength=scenarios) + 1.0 / tau**2
    Hab_SP = np.zeros((scenarios, b_P.size))
    if s_C.size:
        starts = np.flatnonzero(np.r_[True, s_C[1:] != s_C[:-1]])
        Hab_SP[s_C[starts]] = np.add.reduceat(WX_CP, starts, axis=0)
    ratio_SP = Hab_SP / Haa_S[:, None]
    schur_PP = X_CP.T @ WX_CP + np.diag(precision_P) - Hab_SP.T @ ratio_SP
    V_PP = np.linalg.inv(schur_PP)
    ga_S = np.bincount(s_C, g_C, minlength=scenarios) - a_S / tau**2
    gb_P = X_CP.T @ g_C - precision_P * (b_P - center_P)
    db_P = V_PP @ (gb_P - ratio_SP.T @ ga_S)
    da_S = ga_S / Haa_S - ratio_SP @ db_P
    reach = np.abs(da_S[s_C] + X_CP @ db_P).max(initial=0.0)
    scale = min(1.0, _LONGEST_STEP / max(reach, _TINY))
    cross_SP = -ratio_SP @ V_PP
    variance_S = 1.0 / Haa_S - np.einsum("sp,sp->s", cross_SP, ratio_SP)
    return _Step(scale * da_S, scale * db_P, (V_PP + V_PP.T) / 2, variance_S, cross_SP)


def _posterior(a_S: Floats, b_P: Floats, step: _Step, lessons: int, sd_2: Floats, prior: EffectPrior) -> _Fit:
    """Return effects as mean plus deviation, and the prior learned."""
    total_QP = np.zeros((2 * lessons, b_P.size))
    kinds = []
    for k, (part, kind) in enumerate(zip(_parts(lessons), (prior.on_topic, prior.elsewhere), strict=True)):
        total_QP[part, part] = np.eye(lessons)
        total_QP[part, 2 * lessons + k] = 1.0
        sd, at = float(sd_2[k]), 2 * lessons + k
        weight = max(kind.weight, sd**2 / max(float(step.covariance[at, at]), _TINY))
        kinds.append(EffectSpread(mean=float(b_P[at]), sd=sd, weight=min(weight, MOST_WEIGHT)))
    mu = 2 * lessons + 2
    return _Fit(
        effects=total_QP @ b_P,
        covariance=total_QP @ step.covariance @ total_QP.T,
        scenarios=a_S + b_P[mu],
        scenario_variance=step.variance_S + 2 * step.cross_SP[:, mu] + step.covariance[mu, mu],
        prior=EffectPrior(on_topic=kinds[0], elsewhere=kinds[1]),
    )


def _values(
    fit: _Fit, about_SL: npt.NDArray[np.bool_], reach_SL: npt.NDArray[np.bool_], weights_S: Floats
) -> tuple[Floats, Floats]:
    """Return by how much each lesson changes the mean score beside the others worth it, with its sd."""
    scenarios, lessons = about_SL.shape
    total = weights_S.sum()
    if not (scenarios and lessons) or total <= 0:
        return np.zeros(lessons), np.zeros(lessons)
    on_L, elsewhere_L = fit.effects[:lessons], fit.effects[lessons:]
    effect_SL = np.where(about_SL, on_L, elsewhere_L) * reach_SL
    shrink_S = 1.0 / np.sqrt(1.0 + math.pi / 8.0 * np.maximum(fit.scenario_variance, 0.0))
    w_S1 = (weights_S / total)[:, None]
    kept_L = np.ones(lessons, dtype=np.bool_)
    for _ in range(4):
        others_SL = fit.scenarios[:, None] + (effect_SL @ kept_L)[:, None] - effect_SL * kept_L
        low_SL = logistic(shrink_S[:, None] * others_SL)
        high_SL = logistic(shrink_S[:, None] * (others_SL + effect_SL))
        value_L = (w_S1 * (high_SL - low_SL)).sum(axis=0)
        if np.array_equal(kept_L, value_L > 0):
            break
        kept_L = value_L > 0
    slope_SL = w_S1 * shrink_S[:, None] * reach_SL * high_SL * (1.0 - high_SL)
    on_slope_L, elsewhere_slope_L = (slope_SL * about_SL).sum(axis=0), (slope_SL * ~about_SL).sum(axis=0)
    k = np.arange(lessons)
    V = fit.covariance
    variance_L = (
        on_slope_L**2 * V[k, k]
        + elsewhere_slope_L**2 * V[lessons + k, lessons + k]
        + 2 * on_slope_L * elsewhere_slope_L * V[k, lessons + k]
    )
    return value_L, np.sqrt(np.maximum(variance_L, 0.0))


def logistic(x: Floats) -> Floats:
    """Return ``1 / (1 + exp(-x))``, without overflow."""
    result: Floats = 0.5 * (1.0 + np.tanh(0.5 * x))
    return result


def normal_cdf(z: Floats) -> Floats:
    """Return the standard normal distribution function, elementwise."""
    return np.array([_NORMAL.cdf(float(value)) for value in z], dtype=np.float64)
