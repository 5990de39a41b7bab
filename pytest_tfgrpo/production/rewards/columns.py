"""Rewards of many new trajectories at once, in numpy: the same numbers, bit by bit, as one by one.

Shapes: N trajectories, in the order in which they are scored and join the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.numerics.arrays import Bools, Floats, np
from pytest_tfgrpo.production.rewards.evidence import (
    EFFICIENCY,
    NEUTRAL,
    USER_FEEDBACK,
    RewardEvidence,
)
from pytest_tfgrpo.production.rewards.history import (
    CAP,
    ENOUGH,
    FLAT,
    STEPS,
    TRAILING,
    RewardHistory,
    TrailingValues,
)
from pytest_tfgrpo.production.rewards.rewards import WEIGHTS, is_sufficient

if TYPE_CHECKING:
    from numpy.typing import NDArray

Whole: TypeAlias = "NDArray[np.int64]"
"""Numbers whose sums are exact."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceColumns:
    """Evidence of N trajectories."""

    keys_N: Sequence[str]
    """Trajectory ids, each one once."""
    domains_N: Sequence[str]
    turns_N: Whole
    blocked_N: Bools
    claims: Mapping[str, Floats]
    """What is claimed of each component, NaN where nothing is."""
    weights: Mapping[str, Floats]
    """As other evaluators declare them, NaN where they do not."""
    sufficient_N: Bools
    """Known enough for a reward."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardColumns:
    """Rewards of N trajectories; NaN where there is none, and for a component that is absent."""

    scores: Mapping[str, Floats]
    normalized: Mapping[str, Floats]
    total_N: Floats
    normalized_total_N: Floats


def columns(evidence: Sequence[RewardEvidence], weights: Mapping[str, float] = WEIGHTS) -> EvidenceColumns:
    """Return the columns of some evidence; `weights` decide what is enough for a reward."""
    names = {name for known in evidence for name in known.claims}
    claims = {name: np.full(len(evidence), np.nan) for name in names}
    declared = {name: np.full(len(evidence), np.nan) for name in names}
    for n, known in enumerate(evidence):
        for name, claim in known.claims.items():
            claims[name][n] = claim.score
            if claim.weight is not None:
                declared[name][n] = claim.weight
    return EvidenceColumns(
        keys_N=[known.trajectory_id for known in evidence],
        domains_N=[known.domain for known in evidence],
        turns_N=np.array([known.turns for known in evidence], dtype=np.int64),
        blocked_N=np.array([known.blocked for known in evidence], dtype=np.bool_),
        claims=claims,
        weights=declared,
        sufficient_N=np.array([is_sufficient(known, weights) for known in evidence], dtype=np.bool_),
    )


def rewards(
    given: EvidenceColumns, history: RewardHistory, weights: Mapping[str, float] = WEIGHTS
) -> RewardColumns:
    """Return the rewards of new trajectories, each compared with what came before it, and let them join.

    None of them may be in the history yet: revisions are scored one by one.
    """
    count = len(given.keys_N)
    joins_N = given.sufficient_N & ~given.blocked_N
    scores: dict[str, Floats] = {}
    normalized: dict[str, Floats] = {}
    total_N, spread_N, whole_N = np.zeros(count), np.zeros(count), np.zeros(count)
    for name in [*WEIGHTS, *sorted((weights.keys() | given.claims.keys()) - WEIGHTS.keys())]:
        weight_N = _weights(name, given, weights, count)
        claim_N = given.claims.get(name, np.full(count, np.nan))
        if name == EFFICIENCY:
            score_N = np.where(np.isnan(claim_N), _efficiency(given, history, joins_N), claim_N)
        elif name == USER_FEEDBACK:
            score_N = np.where(np.isnan(claim_N), NEUTRAL, claim_N)
        else:
            score_N = claim_N
        present_N = given.sufficient_N & ~np.isnan(score_N) & (weight_N > 0)
        score_N = np.where(present_N, score_N, np.nan)
        z_N = 4.0 * score_N - 2.0
        if name != EFFICIENCY:
            z_N = _normalized(score_N, present_N, joins_N, given.keys_N, history.scores(name))
        weight_N = np.where(present_N, weight_N, 0.0)
        total_N += weight_N * np.where(present_N, score_N, 0.0)
        spread_N += weight_N * np.where(present_N, z_N, 0.0)
        whole_N += weight_N
        scores[name], normalized[name] = score_N, z_N
    whole_N = np.where(whole_N > 0, whole_N, np.nan)
    total_N = np.where(given.blocked_N & (whole_N > 0), 0.0, total_N / whole_N)
    spread_N = np.where(given.blocked_N & (whole_N > 0), -CAP, spread_N / np.maximum(1.0, whole_N))
    return RewardColumns(scores=scores, normalized=normalized, total_N=total_N, normalized_total_N=spread_N)


def _weights(name: str, given: EvidenceColumns, weights: Mapping[str, float], count: int) -> Floats:
    if name in weights:
        return np.full(count, weights[name])
    return np.nan_to_num(given.weights.get(name, np.zeros(count)))


def _efficiency(given: EvidenceColumns, history: RewardHistory, joins_N: Bools) -> Floats:
    score_N = np.empty(len(given.keys_N))
    names = np.asarray(given.domains_N)
    for domain in sorted(set(given.domains_N)):
        own = np.flatnonzero(names == domain)
        places: list[int] = own.tolist()
        turns = given.turns_N[own]
        keys = [given.keys_N[n] for n in places]
        n, total, squares = _trailing(turns, joins_N[own], keys, history.turns_of(domain))
        std, mean = _spread(n, total, squares, 1)
        known = (n >= 2) & (std > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.minimum(CAP, np.maximum(-CAP, (mean - turns) / std))
        score_N[own] = np.where(known, (z + 2.0) / 4.0, 0.5)
    return score_N


def _normalized(
    score_N: Floats, present_N: Bools, joins_N: Bools, keys_N: Sequence[str], recent: TrailingValues
) -> Floats:
    steps_N = np.floor(np.where(present_N, score_N, 0.0) * STEPS + 0.5).astype(np.int64)
    n, total, squares = _trailing(steps_N, present_N & joins_N, keys_N, recent)
    std, mean = _spread(n, total, squares, STEPS)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.minimum(CAP, np.maximum(-CAP, (score_N - mean) / std))
    return np.where(present_N, np.where((n >= ENOUGH) & ~(std < FLAT), z, 0.0), np.nan)


def _spread(n: Whole, total: Whole, squares: Whole, steps: int) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        std = np.sqrt((n * squares - total * total).astype(np.float64)) / (n * steps)
        return std, total / (n * steps)


def _trailing(
    values_N: Whole, joins_N: Bools, keys_N: Sequence[str], recent: TrailingValues
) -> tuple[Whole, Whole, Whole]:
    """Return number, sum and sum of squares of the last 1,000 values before each, and let those that join in.

    Sums over everything may wrap around; differences over 1,000 values are exact all the same.
    """
    before = np.array([value for _, value in recent.items()], dtype=np.int64)
    joining = np.flatnonzero(joins_N)
    line = np.concatenate([before, values_N[joining]])
    sums = np.concatenate([[0], np.cumsum(line)])
    squares = np.concatenate([[0], np.cumsum(line * line)])
    end = len(before) + np.cumsum(joins_N) - joins_N
    start = np.maximum(0, end - TRAILING)
    for n in joining[-TRAILING:].tolist():
        recent.put(keys_N[n], int(values_N[n]))
    return end - start, sums[end] - sums[start], squares[end] - squares[start]
