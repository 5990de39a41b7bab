"""Aggregates: what one token of an answer weighs in a loss over a batch, [B, T].

Every aggregate in use is a weighted sum, whose weights depend on the mask alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from pytest_tfgrpo.numerics.arrays import Bools, Floats, np, usable

if TYPE_CHECKING:
    import numpy.typing as npt

Aggregate = Literal[
    "token-mean",
    "token-sum",
    "seq-mean-token-sum",
    "seq-mean-token-sum-norm",
    "seq-mean-token-mean",
    "rollout-mean",
]
Empty = Literal["skip", "count"]


def row_weights(
    mask_BT: Bools,
    aggregate: Aggregate,
    *,
    norm: float | None = None,
    empty: Empty = "skip",
    mask_eps: float = 0.0,
    rollout_B: npt.ArrayLike | None = None,
) -> Floats:
    """Return the weight of each token of each row, [B]; the loss is the weighted sum over tokens that count.

    * token-mean: 1 / tokens. token-sum: 1.
    * seq-mean-token-sum: 1 / rows; -norm: that / `norm`, T where it is None (Liu et al. 2025, "Dr. GRPO").
    * seq-mean-token-mean: 1 / (rows * tokens of the row).
    * rollout-mean: 1 / (rollouts * tokens of the row's rollout), `rollout_B` naming the rollout of each row.

    A row without a token does not count as a row (as in verl); with `empty` "count" it does (as in TRL).
    `mask_eps` is added to the tokens of a row (1e-8 in verl). Raises ValueError for an unknown aggregate,
    and for a `norm` or `mask_eps` that is negative or not finite.
    """
    usable(0, norm=norm, mask_eps=mask_eps)
    tokens_B = mask_BT.sum(axis=1)
    rows = len(tokens_B) if empty == "count" else int((tokens_B > 0).sum())
    if aggregate == "token-sum":
        return np.ones(len(tokens_B))
    if aggregate == "token-mean":
        return np.full(len(tokens_B), _inverse(tokens_B.sum() + mask_eps))
    if aggregate == "seq-mean-token-sum":
        return np.full(len(tokens_B), _inverse(rows))
    if aggregate == "seq-mean-token-sum-norm":
        return np.full(len(tokens_B), _inverse(rows * (norm or mask_BT.shape[1])))
    if aggregate == "seq-mean-token-mean":
        own_B = tokens_B + mask_eps
        return np.where(tokens_B > 0, _inverse(rows) / np.maximum(own_B, 1), 0.0)
    if aggregate == "rollout-mean":
        return _rollout_weights(tokens_B.astype(np.float64), rollout_B, empty)
    raise ValueError(f"aggregate is {aggregate!r}; it must be one of {', '.join(get_args(Aggregate))}")


def _rollout_weights(tokens_B: Floats, rollout_B: npt.ArrayLike | None, empty: Empty) -> Floats:
    if rollout_B is None:
        raise ValueError("the aggregate 'rollout-mean' needs rollout_B, the rollout of each row")
    rollouts = np.asarray(rollout_B)
    if rollouts.shape != tokens_B.shape:
        raise ValueError(f"rollout_B must have the shape {tokens_B.shape}, got {rollouts.shape}")
    _, row_B = np.unique(rollouts, return_inverse=True)
    own_R = np.bincount(row_B, weights=tokens_B)
    count = len(own_R) if empty == "count" else int((own_R > 0).sum())
    own_B = own_R[row_B]
    return np.where(own_B > 0, _inverse(count) / np.maximum(own_B, 1), 0.0)


def _inverse(count: float) -> float:
    return 1.0 / count if count else 0.0
