"""Off-policy estimates: what a policy would have earned, from decisions that another one made and logged.

Axis ``_N`` runs over decisions in the order they were made, ``_A`` over arms. The logging policy may have
learned meanwhile: nothing here looks at a later decision than the one it weighs, so that the terms are a
martingale's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.numerics.arrays import Floats, Ints, finite, np, same_shape
from pytest_tfgrpo.numerics.resampling import student_quantile

if TYPE_CHECKING:
    import numpy.typing as npt

MIN_ESS = 50.0
"""Effective decisions below which nothing is estimated: the interval would not hold."""
SUM = 1e-3
"""By how much probabilities that were rounded may miss 1."""
LEAST = math.ulp(0.0)
PRIOR = 1.0
"""Decisions that the mean of all arms counts for in the mean of one."""


class OffPolicyEstimate(NamedTuple):
    """A mean reward under the target policy."""

    value: float | None
    """None: not estimable."""
    low: float | None
    high: float | None
    ess: float
    """Effective sample size of the weights (Kish 1965)."""
    largest_weight: float
    reason: str = ""
    """Why it is not estimable."""


def ips(
    reward_N: npt.ArrayLike, target_N: npt.ArrayLike, logged_N: npt.ArrayLike, *, level: float = 0.95
) -> OffPolicyEstimate:
    """Return the mean of ``target / logged * reward``: unbiased, and wide (Horvitz and Thompson 1952).

    `target_N` and `logged_N` are the probabilities of the arm that was taken, under the target and under the
    policy that took it. Raises ValueError for a logged one outside of (0, 1], a target outside of [0, 1], and
    with its place for a reward that is not finite.
    """
    reward, weight = _weighted(reward_N, target_N, logged_N)
    return _estimate(weight * reward, weight, level)


def snips(
    reward_N: npt.ArrayLike, target_N: npt.ArrayLike, logged_N: npt.ArrayLike, *, level: float = 0.95
) -> OffPolicyEstimate:
    """Return the weighted mean reward, weights made to sum to 1 (Swaminathan and Joachims 2015); as `ips`.

    Its interval is at least as wide as with 4 more effective decisions, half a range of rewards from the mean
    (after Agresti and Coull 1998): where nearly all rewards are equal, the variance alone shows too little.
    """
    reward, weight = _weighted(reward_N, target_N, logged_N)
    total = weight.sum()
    mean = float(weight @ reward / total) if total else 0.0
    terms = mean + weight * (reward - mean) * (weight.size / total if total else 0.0)
    found = _estimate(terms, weight, level)
    if found.value is None or found.high is None:
        return found
    quantile = student_quantile(0.5 + level / 2, found.ess)
    error = (found.high - found.value) / quantile
    least = quantile * ((error * found.ess) ** 2 + float(np.ptp(reward)) ** 2) ** 0.5 / (found.ess + 4)
    half = max(found.high - found.value, least)
    return found._replace(low=found.value - half, high=found.value + half)


def dr(
    reward_N: npt.ArrayLike,
    context_N: npt.ArrayLike,
    arm_N: npt.ArrayLike,
    target_NA: npt.ArrayLike,
    logged: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> OffPolicyEstimate:
    """Return the doubly robust mean: a model's prediction, corrected by the weighted error where it was
    tested.

    `target_NA` are the target's probabilities of every arm in each decision's context, `context_N` and
    `arm_N` whole numbers. `logged` are the probabilities under the policy that chose: of every arm, [N, A],
    or of the one that was taken, [N]; with the first, large weights that happen not to come up are seen in
    the effective sample size all the same. The model of rewards is the mean of each context and arm over
    *earlier* decisions, shrunken towards that of the arm, and that towards all. Dudik et al. 2011; Hadad et
    al. 2021 for logs of a learning policy. Raises ValueError as `ips` does.
    """
    target = np.asarray(target_NA, dtype=np.float64)
    if target.ndim != 2:
        raise ValueError(f"target_NA must be [N, A], got the shape {target.shape}")
    if (odd := np.abs(target.sum(axis=1) - 1) > SUM).any():
        raise ValueError(
            f"target_NA[{odd.argmax()}] sums to {float(target[odd.argmax()].sum())}; it must be 1"
        )
    contexts, arms = _whole("context_N", context_N), _whole("arm_N", arm_N)
    same_shape(target.shape[:1], context_N=contexts, arm_N=arms)
    if arms.size and arms.max() >= target.shape[1]:
        raise ValueError(f"arm_N must hold whole numbers from 0 to {target.shape[1] - 1}")
    rows = np.arange(len(target))
    given = np.asarray(logged, dtype=np.float64)
    every = given.ndim == 2
    if every:
        same_shape(target.shape, logged=given)
        _check_probabilities("logged", np.where(target > 0, given, 1.0), LEAST)
    reward, weight = _weighted(reward_N, target[rows, arms], given[rows, arms] if every else given)
    _check_probabilities("target_NA", target, 0.0)
    predicted = predictions(reward, contexts, arms, target.shape[1])
    terms = (target * predicted).sum(axis=1) + weight * (reward - predicted[rows, arms])
    expected = (target * _divided(target, np.where(target > 0, given, 1.0))).sum() if every else 0.0
    return _estimate(terms, weight, level, float(expected))


def predictions(reward_N: Floats, context_N: Ints, arm_N: Ints, arms: int) -> Floats:
    """Return the mean reward of each arm in each decision's context, [N, A], from earlier decisions alone."""
    n = len(reward_N)
    taken_NA = np.zeros((n, arms))
    taken_NA[np.arange(n), arm_N] = 1.0
    earned_NA = taken_NA * reward_N[:, None]
    overall_N = (_before(reward_N[:, None])[:, 0]) / np.maximum(np.arange(n), 1)
    by_arm_NA = (_before(earned_NA) + PRIOR * overall_N[:, None]) / (_before(taken_NA) + PRIOR)
    order = np.argsort(context_N, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(context_N[order]) != 0]) if n else np.zeros(0, dtype=np.intp)
    counts_NA, sums_NA = np.empty((n, arms)), np.empty((n, arms))
    for rows in np.split(order, starts[1:]):
        counts_NA[rows], sums_NA[rows] = _before(taken_NA[rows]), _before(earned_NA[rows])
    found: Floats = (sums_NA + PRIOR * by_arm_NA) / (counts_NA + PRIOR)
    return found


def _before(values_NA: Floats) -> Floats:
    """Return the sums over earlier rows."""
    found = np.zeros_like(values_NA)
    np.cumsum(values_NA[:-1], axis=0, out=found[1:])
    return found


def _estimate(
    terms_N: Floats, weight_N: Floats, level: float, expected_squares: float = 0.0
) -> OffPolicyEstimate:
    total, largest = float(weight_N.sum()), float(weight_N.max(initial=0.0))
    squares = float(weight_N @ weight_N)
    ess = total * total / squares if squares else 0.0
    if expected_squares:
        ess = min(ess, weight_N.size**2 / expected_squares)
    if ess < MIN_ESS:
        reason = f"{ess:.0f} effective decisions; {MIN_ESS:.0f} are needed"
        return OffPolicyEstimate(None, None, None, ess, largest, reason)
    mean = float(terms_N.mean())
    centred_N = terms_N - mean
    variance = float(centred_N @ centred_N) / (terms_N.size - 1)
    half = _quantile(level, centred_N) * (variance / terms_N.size) ** 0.5
    return OffPolicyEstimate(mean, mean - half, mean + half, ess, largest)


def _quantile(level: float, centred_N: Floats) -> float:
    """Return Student's quantile with the degrees of freedom that the kurtosis leaves the variance.

    A variance estimated from few large terms is itself uncertain: var(s^2) / s^4 = (kurtosis - 1) / N, as
    that of 2 / that many degrees (Satterthwaite 1946).
    """
    second = float((centred_N**2).mean())
    kurtosis = float((centred_N**4).mean()) / second**2 if second else 1.0
    return student_quantile(0.5 + level / 2, max(2 * centred_N.size / max(kurtosis - 1, 2.0), 4.0))


def _weighted(
    reward_N: npt.ArrayLike, target_N: npt.ArrayLike, logged_N: npt.ArrayLike
) -> tuple[Floats, Floats]:
    reward, target, logged = (np.asarray(one, dtype=np.float64) for one in (reward_N, target_N, logged_N))
    if reward.ndim != 1:
        raise ValueError(f"reward_N must be a vector, got the shape {reward.shape}")
    same_shape(reward.shape, target_N=target, logged_N=logged)
    finite(reward_N=reward)
    _check_probabilities("target_N", target, 0.0)
    _check_probabilities("logged_N", logged, LEAST)
    return reward, _divided(target, logged)


def _divided(target: Floats, logged: Floats) -> Floats:
    """Return weights, or 1e100 in place of a larger one, whose square would be no number."""
    with np.errstate(over="ignore"):
        return np.minimum(target / logged, 1e100)


def _check_probabilities(name: str, values: Floats, least: float) -> None:
    bad = ~((values >= least) & (values <= 1 + 1e-9))
    if bad.any():
        place = ", ".join(str(int(i)) for i in np.unravel_index(int(bad.argmax()), bad.shape))
        allowed = "above 0 and at most 1" if least else "from 0 to 1"
        raise ValueError(f"{name}[{place}] is {float(values[bad][0])}; a probability is {allowed}")


def _whole(name: str, values: npt.ArrayLike) -> Ints:
    found = np.asarray(values)
    if found.ndim != 1 or (found.size and (found.dtype.kind not in "iu" or found.min() < 0)):
        raise ValueError(f"{name} must be a vector of whole numbers, none below 0")
    return found.astype(np.intp)
