"""Scoring: one group or a whole epoch at a time; axis ``_N`` runs over rollouts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.core.records import Group, Rollout, Score
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.numerics.arrays import Floats, np
from pytest_tfgrpo.protocols import RewardBatch, Rewarder
from pytest_tfgrpo.scoring.rewarders.additional import ScoreColumns, columns_of
from pytest_tfgrpo.scoring.rewarders.ground_truth import gt_scores
from pytest_tfgrpo.scoring.rewarders.relative_rank import rank

if TYPE_CHECKING:
    import numpy.typing as npt

NOTHING: Mapping[str, Any] = {}
"""One for all: a dictionary of its own takes a tenth of the time of a score."""


def batch_of(rollouts: Sequence[Rollout], scenarios: Mapping[str, Scenario]) -> RewardBatch:
    """Return the batch that rewarders score; the rollouts of a group must stand together.

    Raises ValueError when they do not.
    """
    gt_N = np.array(gt_scores(rollouts, scenarios), dtype=np.float64)
    return RewardBatch(
        rollouts=tuple(rollouts),
        scenarios=scenarios,
        group_N=_group_index(rollouts),
        scored_N=~np.isnan(gt_N),
        gt_N=gt_N,
    )


def score(
    rollouts: Sequence[Rollout], scenarios: Mapping[str, Scenario], extra: Sequence[Rewarder] = ()
) -> tuple[Score, ...]:
    """Return the score of each rollout; `scenarios` are by id, `extra` are additional rewarders.

    The reward is gt_score, or its weighted mean with the extra scores of weight > 0 that are there; rank and
    advantage are of the reward. Raises RewarderError naming an extra rewarder that broke its contract.

    Attempts that were made elsewhere have the reward that they came with, and no gt_score.
    """
    given = bool(rollouts) and rollouts[0].mode == "evidence"
    extra = () if given else extra
    if not extra and len({rollout.group_id for rollout in rollouts}) == len(rollouts):
        return tuple(_alone(rollout, scenarios) for rollout in rollouts)

    batch = batch_of(rollouts, scenarios)
    found = {rewarder.name: columns_of(rewarder, batch) for rewarder in extra}
    reward_N = _weighted(batch.gt_N, [(rewarder.weight, found[rewarder.name].own_N) for rewarder in extra])
    rank_N, advantage_N = rank(batch, reward_N)
    columns = [_nullable(values_N) for values_N in (batch.gt_N, reward_N, rank_N, advantage_N)]
    extras = [(name, _nullable(of.own_N), of) for name, of in found.items()]
    told = any(of.reasons for of in found.values())
    spread_K = np.bincount(batch.group_N, weights=np.abs(advantage_N) > 0)  # NaN, not scored, is not > 0
    flat_N = batch.scored_N & (spread_K[batch.group_N] == 0)
    return tuple(
        Score(
            rollout_id=rollout.rollout_id,
            gt_score=None if given else gt,
            reward=reward,
            relative_rank=place,
            advantage=advantage,
            advantage_reason="zero_variance" if flat else "",
            extra=_extra(extras, i) if extras else NOTHING,
            evidence=_evidence(extras, i) if told else NOTHING,
        )
        for i, (rollout, gt, reward, place, advantage, flat) in enumerate(
            zip(rollouts, *columns, flat_N.tolist(), strict=True)
        )
    )


def _extra(extras: Sequence[tuple[str, list[float | None], ScoreColumns]], i: int) -> dict[str, float | None]:
    """Return the scores of additional rewarders of one rollout, each followed by those of its parts."""
    scores: dict[str, float | None] = {}
    for name, values, columns in extras:
        scores[name] = values[i]
        if columns.parts and i in columns.parts:
            scores |= columns.parts[i]
    return scores


def _evidence(extras: Sequence[tuple[str, list[float | None], ScoreColumns]], i: int) -> Mapping[str, str]:
    """Return what additional rewarders say of the scores of one rollout."""
    found = [columns.reasons[i] for _, _, columns in extras if i in columns.reasons]
    if len(found) < 2:
        return found[0] if found else NOTHING
    return {name: why for reasons in found for name, why in reasons.items()}


def _alone(rollout: Rollout, scenarios: Mapping[str, Scenario]) -> Score:
    """Return the score of a rollout that has nobody to be compared with, without loading numpy."""
    (gt,) = gt_scores([rollout], scenarios)
    known = None if math.isnan(gt) else gt
    return Score(
        rollout_id=rollout.rollout_id,
        gt_score=known,
        reward=known,
        relative_rank=None,
        advantage=None if known is None else 0.0,
        advantage_reason="" if known is None else "zero_variance",
    )


def group_of(rollouts: Sequence[Rollout], scores: Sequence[Score], scenario: Scenario) -> Group:
    """Return the scored group that `rollouts` of one scenario in one epoch form."""
    first = rollouts[0]
    rewards = {s.reward for s in scores if s.reward is not None}
    return Group(
        group_id=first.group_id,
        epoch=first.epoch,
        mode=first.mode,
        scenario_id=scenario.id,
        domain=scenario.domain,
        rollouts=tuple(rollouts),
        scores=tuple(scores),
        informative=len(rewards) > 1,
    )


def _group_index(rollouts: Sequence[Rollout]) -> npt.NDArray[np.intp]:
    places: dict[str, int] = {}
    index_N = np.fromiter(
        (places.setdefault(r.group_id, len(places)) for r in rollouts), dtype=np.intp, count=len(rollouts)
    )
    if np.any(np.diff(index_N) < 0):
        broken = rollouts[int(np.flatnonzero(np.diff(index_N) < 0)[0]) + 1]
        raise ValueError(f"rollouts of group {broken.group_id!r} are not adjacent")
    return index_N


def _weighted(gt_N: Floats, weighted: Sequence[tuple[float, Floats]]) -> Floats:
    if not any(weight for weight, _ in weighted):
        return gt_N

    sum_N, weight_N = gt_N.copy(), np.ones_like(gt_N)
    for weight, values_N in weighted:
        known_N = ~np.isnan(values_N)
        sum_N[known_N] += weight * values_N[known_N]
        weight_N[known_N] += weight
    return sum_N / weight_N


def _nullable(values_N: Floats) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values_N.tolist()]
