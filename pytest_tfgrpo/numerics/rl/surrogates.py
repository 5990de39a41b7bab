"""Surrogates: what one token adds to the loss of a policy, and its slope by the log-ratio.

Kinds ppo, grpo, bnpo, dr_grpo, dapo and gspo clip the ratio to 1 - `clip_low` .. 1 + `clip_high` (Schulman et
al. 2017) and differ in level and aggregate alone; cispo weighs log-probabilities with it, clipped and stopped
(MiniMax 2025; TRL clips above alone: `clip_low` 1, `clip_high` its epsilon_high less 1); sapo gates it softly
at `temperatures`, for advantages above 0 and others (Gao et al. 2025).

Arrays are blocks of rows, [B, T], or [B, 1] where a row has one ratio.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pytest_tfgrpo.numerics.arrays import Bools, Reals, np

PolicyKind = Literal["ppo", "grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "gspo"]
KINDS: tuple[PolicyKind, ...] = ("ppo", "grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "gspo")


class Clipping(NamedTuple):
    """How far a ratio counts; as the arguments of `losses.policy_loss`."""

    low: float
    high: float
    dual: float | None
    delta: float | None
    temperatures: tuple[float, float]


class Surrogate(NamedTuple):
    """Losses of tokens with their slopes, and where the ratio was clipped."""

    loss: Reals
    slope: Reals
    low: Bools
    high: Bools
    dual: Bools | None


def surrogate(kind: PolicyKind, ratio: Reals, advantage: Reals, new: Reals, clipping: Clipping) -> Surrogate:
    """Return a kind's surrogate; the slope is by the log of `ratio`, for cispo by `new`."""
    low = (ratio < 1 - clipping.low) & (advantage < 0)
    high = (ratio > 1 + clipping.high) & (advantage > 0)
    if kind == "cispo":
        weight = np.clip(ratio, 1 - clipping.low, 1 + clipping.high) * -advantage
        return Surrogate(weight * new, np.broadcast_to(weight, new.shape), low, high, None)
    if kind == "sapo":
        return _soft(ratio, advantage, clipping.temperatures, low, high)
    return _clipped(ratio, advantage, clipping, low, high)


def _clipped(ratio: Reals, advantage: Reals, clipping: Clipping, low: Bools, high: Bools) -> Surrogate:
    """Return the smaller of the objectives with and without clipping, as a loss."""
    slope = -advantage * ratio
    if clipping.delta is None:  # then the clipped one is smaller where the slope is lost, and only there
        loss = slope.copy()
        np.copyto(loss, -advantage * (1 - clipping.low), where=low)
        np.copyto(loss, -advantage * (1 + clipping.high), where=high)
        flat = low | high
    else:
        bounded = -advantage * np.minimum(ratio, clipping.delta)
        clipped = -advantage * np.clip(ratio, 1 - clipping.low, 1 + clipping.high)
        inside = (ratio >= 1 - clipping.low) & (ratio <= 1 + clipping.high)
        loss = np.maximum(bounded, clipped)
        flat = ~np.where(bounded >= clipped, ratio <= clipping.delta, inside)
    dual = None
    if clipping.dual is not None:
        bound = -advantage * clipping.dual
        dual = (advantage < 0) & (loss > bound)
        np.copyto(loss, bound, where=dual)
        flat = flat | dual
    np.copyto(slope, 0, where=flat)
    return Surrogate(loss, slope, low, high, dual)


def _soft(
    ratio: Reals, advantage: Reals, temperatures: tuple[float, float], low: Bools, high: Bools
) -> Surrogate:
    above, others = (advantage.dtype.type(one) for one in temperatures)
    temperature = np.where(advantage > 0, above, others)
    gate = 1 / (1 + np.exp(-temperature * (ratio - 1)))
    return Surrogate(
        -advantage * gate * (4 / temperature), -advantage * 4 * gate * (1 - gate) * ratio, low, high, None
    )
