"""The regression behind `pooled_effects`: what lessons do to scores, on the logit scale.

``logit E[score] = a_s + sum of b_sl over the lessons carried``, where b_sl is the lesson's effect *on topic*
where it is about the task of scenario s, and its effect *elsewhere* where it merely stands in the prompt.
Scenarios and effects are random (Breslow and Clayton 1993, "Approximate Inference in Generalized Linear Mixed
Models"), scores are quasi-binomial (Wedderburn 1974), so graded ones are welcome. Means and spreads of the
effects are learned by empirical Bayes (MacKay 1992, "Bayesian Interpolation").

Axes: ``_S`` scenarios or kinds of them, ``_L`` lessons, ``_K`` sets of lessons with a mean of their own,
``_C`` cells of rollouts that carried the same lessons in one scenario, ``_Q`` effects on topic and elsewhere,
``_P`` coefficients: deviations of the effects from their means, the means, that of the scenarios.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_tfgrpo.numerics.arrays import Bools, Floats, np
from pytest_tfgrpo.numerics.cells import Cells

MOST_WEIGHT = 60.0
"""Lessons that a learned prior counts for at most, so that what has changed is learned again."""
_SCENARIOS = (1.7, 4.0)
"""Spread of the scenarios' logits before any is seen, and its weight in scenarios."""
_MEAN_SD = 2.5
"""Spread of the mean logit, about 0."""
_ROUNDS = 60
_TOLERANCE = 1e-5
_LONGEST_STEP = 3.0
_LEAST_DISPERSION = 0.02
_LEAST_SD = 0.02
_LEAST_WEIGHT = 0.05
_TINY = 1e-12


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
    elsewhere: EffectSpread = field(default_factory=lambda: EffectSpread(mean=-0.02, sd=0.05, weight=4.0))

    @property
    def kinds(self) -> tuple[EffectSpread, EffectSpread]:
        """On topic and elsewhere."""
        return self.on_topic, self.elsewhere


class EffectFit(NamedTuple):
    """The posterior of effects and scenarios."""

    effect_Q: Floats
    """Effects on topic, then elsewhere: Q = 2 L."""
    covariance_QQ: Floats
    scenario_S: Floats
    """Logit of each without a lesson."""
    scenario_variance_S: Floats
    prior: EffectPrior
    """As learned; of several sets, about the first."""


class _Design(NamedTuple):
    """What does not change from step to step."""

    cells: Cells
    X_CP: Floats
    member_LK: Floats
    center_P: Floats
    """Where the coefficients lie before anything is seen."""
    count_S: Floats
    """How many scenarios each stands for."""

    @property
    def count_C(self) -> Floats:
        """How many scenarios have a cell like this."""
        return self.count_S[self.cells.scenario_C]

    @property
    def lessons(self) -> int:
        return int(self.member_LK.shape[0])

    @property
    def kinds(self) -> tuple[slice, slice]:
        """Places of the deviations on topic and elsewhere."""
        return slice(0, self.lessons), slice(self.lessons, 2 * self.lessons)

    @property
    def means(self) -> tuple[slice, slice]:
        """Places of their means, one for each set."""
        start, sets = 2 * self.lessons, self.member_LK.shape[1]
        return slice(start, start + sets), slice(start + sets, start + 2 * sets)


def fit_effects(
    cells: Cells,
    about_SL: Bools,
    prior: EffectPrior,
    member_LK: Floats | None = None,
    *,
    count_S: Floats,
) -> EffectFit:
    """Return the mode of the posterior, with its curvature there, under the prior learned with it.

    Each column of `member_LK` is a set of lessons whose effects have a mean of their own, of which nothing is
    known before; without it all lessons share the mean in `prior`. A scenario stands for
    `count_S` like it.
    """
    design = _design(cells, about_SL, prior, member_LK, count_S)
    weights = [kind.weight if member_LK is None else 0.0 for kind in prior.kinds]
    sd_2, tau, phi = np.array([kind.sd for kind in prior.kinds]), _SCENARIOS[0], 1.0
    a_S, b_P = np.zeros(about_SL.shape[0]), design.center_P.copy()
    for _ in range(_ROUNDS):
        precision_P = np.full(b_P.size, 1.0 / _MEAN_SD**2)
        for k, kind in enumerate(prior.kinds):
            precision_P[design.kinds[k]] = 1.0 / sd_2[k] ** 2
            precision_P[design.means[k]] = max(weights[k], _LEAST_WEIGHT) / kind.sd**2
        step = _newton(design, a_S, b_P, precision_P, tau, phi)
        a_S, b_P = a_S + step.a_S, b_P + step.b_P
        before = np.concatenate([sd_2, [tau, phi]])
        variance_P = np.diag(step.covariance_PP)
        sd_2 = np.array(
            [
                _spread(b_P[part], variance_P[part], sd, kind)
                for part, sd, kind in zip(design.kinds, sd_2, prior.kinds, strict=True)
            ]
        )
        tau = _scenario_spread(a_S, step.variance_S, design.count_S)
        phi = _dispersion(design, a_S, b_P)
        moved = np.abs(np.concatenate([sd_2, [tau, phi]]) - before).max()
        if max(moved, np.abs(step.b_P).max(), np.abs(step.a_S).max(initial=0.0)) < _TOLERANCE:
            break
    return _posterior(design, a_S, b_P, step, sd_2, prior)


def _design(
    cells: Cells,
    about_SL: Bools,
    prior: EffectPrior,
    member_LK: Floats | None,
    count_S: Floats,
) -> _Design:
    lessons = about_SL.shape[1]
    sets_LK = np.ones((lessons, 1)) if member_LK is None else member_LK
    about_CL = about_SL[cells.scenario_C]
    on_CL = (cells.carried_CL & about_CL).astype(np.float64)
    elsewhere_CL = (cells.carried_CL & ~about_CL).astype(np.float64)
    ones_C1 = np.ones((cells.n_C.size, 1))
    X_CP = np.hstack([on_CL, elsewhere_CL, on_CL @ sets_LK, elsewhere_CL @ sets_LK, ones_C1])
    means = np.repeat([kind.mean for kind in prior.kinds], sets_LK.shape[1])
    center_P = np.concatenate([np.zeros(2 * lessons), means, [0.0]])
    return _Design(cells, X_CP, sets_LK, center_P, count_S)


def _spread(d_L: Floats, variance_L: Floats, sd: float, kind: EffectSpread) -> float:
    """Return the spread of effects d about their mean: each counts by what is known of it (MacKay 1992)."""
    known = float(np.clip(1.0 - variance_L / sd**2, 0.0, 1.0).sum())
    weight = max(kind.weight, _LEAST_WEIGHT)
    return max(math.sqrt((weight * kind.sd**2 + float((d_L**2).sum())) / (weight + known)), _LEAST_SD)


def _scenario_spread(a_S: Floats, variance_S: Floats, count_S: Floats) -> float:
    sd, weight = _SCENARIOS
    squares = float((count_S * (a_S**2 + variance_S)).sum())
    return math.sqrt((weight * sd**2 + squares) / (weight + float(count_S.sum())))


def _dispersion(design: _Design, a_S: Floats, b_P: Floats) -> float:
    """Return the variance of scores over that of successes with the same mean: 1 where all are 0 or 1."""
    cells, count_C = design.cells, design.count_C
    p_C = logistic(a_S[cells.scenario_C] + design.X_CP @ b_P)
    spread = float((count_C * cells.n_C * p_C * (1.0 - p_C)).sum())
    if (count_C * cells.square_C).sum() >= (count_C * cells.sum_C).sum() - 1e-9 or spread < _TINY:
        return 1.0
    squares = float((count_C * (cells.square_C - 2 * p_C * cells.sum_C + cells.n_C * p_C**2)).sum())
    n, scenarios = float((count_C * cells.n_C).sum()), design.count_S[np.unique(cells.scenario_C)].sum()
    lost = min(float(scenarios), 0.5 * n)  # what the scenarios' own levels explain
    return float(np.clip(squares / spread * n / (n - lost), _LEAST_DISPERSION, 1.0))


class _Step(NamedTuple):
    """A step of Newton's method, and the inverse curvature where it began."""

    a_S: Floats
    b_P: Floats
    covariance_PP: Floats
    variance_S: Floats
    cross_SP: Floats
    """Covariance of scenarios and coefficients."""


def _newton(design: _Design, a_S: Floats, b_P: Floats, precision_P: Floats, tau: float, phi: float) -> _Step:
    """Return the step towards the mode; scenarios are eliminated first, for their block is diagonal."""
    cells, X_CP, count_S, count_C = design.cells, design.X_CP, design.count_S, design.count_C
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
    schur_PP = X_CP.T @ (count_C[:, None] * WX_CP) + np.diag(precision_P)
    schur_PP -= (count_S[:, None] * Hab_SP).T @ ratio_SP
    V_PP = np.linalg.inv((schur_PP + schur_PP.T) / 2)
    ga_S = np.bincount(s_C, g_C, minlength=scenarios) - a_S / tau**2
    gb_P = X_CP.T @ (count_C * g_C) - precision_P * (b_P - design.center_P)
    db_P = V_PP @ (gb_P - ratio_SP.T @ (count_S * ga_S))
    da_S = ga_S / Haa_S - ratio_SP @ db_P
    reach = float(np.abs(da_S[s_C] + X_CP @ db_P).max(initial=0.0))
    scale = min(1.0, _LONGEST_STEP / max(reach, _TINY))
    cross_SP = -ratio_SP @ V_PP
    variance_S = 1.0 / Haa_S - np.einsum("sp,sp->s", cross_SP, ratio_SP)
    return _Step(scale * da_S, scale * db_P, np.asarray(V_PP, dtype=np.float64), variance_S, cross_SP)


def _posterior(
    design: _Design, a_S: Floats, b_P: Floats, step: _Step, sd_2: Floats, prior: EffectPrior
) -> EffectFit:
    """Return effects as mean plus deviation, and the prior learned."""
    total_QP = np.zeros((2 * design.lessons, b_P.size))
    learned = []
    for part, means, sd, kind in zip(design.kinds, design.means, sd_2, prior.kinds, strict=True):
        total_QP[part, part] = np.eye(design.lessons)
        total_QP[part, means] = design.member_LK
        at = means.start
        weight = max(kind.weight, float(sd**2 / max(step.covariance_PP[at, at], _TINY)))
        learned.append(EffectSpread(mean=float(b_P[at]), sd=float(sd), weight=min(weight, MOST_WEIGHT)))
    variance_S = step.variance_S + 2 * step.cross_SP[:, -1] + step.covariance_PP[-1, -1]
    return EffectFit(
        effect_Q=total_QP @ b_P,
        covariance_QQ=total_QP @ step.covariance_PP @ total_QP.T,
        scenario_S=a_S + b_P[-1],
        scenario_variance_S=np.maximum(variance_S, 0.0),
        prior=EffectPrior(on_topic=learned[0], elsewhere=learned[1]),
    )


def logistic(x: Floats) -> Floats:
    """Return ``1 / (1 + exp(-x))``, without overflow."""
    result: Floats = 0.5 * (1.0 + np.tanh(0.5 * x))
    return result
