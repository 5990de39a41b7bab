"""Losses of preferences: a policy that should like one answer of a pair better, with exact gradients.

Rafailov et al. 2023, "Direct Preference Optimization". Axis ``_P`` runs over pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_tfgrpo.numerics.arrays import Reals, finite, np, reals, same_shape

if TYPE_CHECKING:
    import numpy.typing as npt

PreferenceKind = Literal["sigmoid", "ipo", "hinge", "robust", "nca"]


class PreferenceLoss(NamedTuple):
    """A mean loss over pairs, with its gradients by the policy's log-probabilities, [P]."""

    value: float
    metrics: dict[str, float]
    chosen_gradient: Reals
    rejected_gradient: Reals
    chosen_rewards: Reals
    """Implicit: `beta` times the log-ratio to the reference."""
    rejected_rewards: Reals


def dpo_loss(
    chosen: npt.ArrayLike,
    rejected: npt.ArrayLike,
    ref_chosen: npt.ArrayLike | None = None,
    ref_rejected: npt.ArrayLike | None = None,
    *,
    kind: PreferenceKind = "sigmoid",
    beta: float = 0.1,
    label_smoothing: float = 0.0,
) -> PreferenceLoss:
    """Return the loss of log-probabilities of the chosen and the rejected answers, [P], summed over their
    tokens.

    Without a reference the policy is compared with a uniform one. Kinds: sigmoid (label smoothing makes it
    the conservative one of Mitchell 2023), robust (Chowdhury et al. 2024: unbiased where `label_smoothing` of
    the labels are wrong), hinge (Zhao et al. 2023), ipo (Azar et al. 2023; pass means over tokens instead of
    sums, as TRL does) and nca (Chen et al. 2024). Metrics: accuracy, margin and rewards. Raises ValueError
    for shapes that differ, for a smoothing outside 0 .. 0.5, and with its place for a number that is not
    finite.
    """
    if not 0 <= label_smoothing < 0.5:
        raise ValueError(f"label_smoothing is {label_smoothing!r}; it must be from 0 to less than 0.5")
    none = np.zeros(np.shape(chosen), dtype=getattr(chosen, "dtype", np.float64))
    if (ref_chosen is None) != (ref_rejected is None):
        raise ValueError("ref_chosen and ref_rejected go together")
    good, bad, ref_good, ref_bad = reals(
        chosen=chosen,
        rejected=rejected,
        ref_chosen=none if ref_chosen is None else ref_chosen,
        ref_rejected=none if ref_rejected is None else ref_rejected,
    )
    same_shape((good.size,), chosen=good, rejected=bad, ref_chosen=ref_good, ref_rejected=ref_bad)
    finite(chosen=good, rejected=bad, ref_chosen=ref_good, ref_rejected=ref_bad)
    won, lost = good - ref_good, bad - ref_bad
    loss, by_won, by_lost = _terms(kind, won, lost, beta, label_smoothing)
    pairs = max(good.size, 1)
    margin = beta * (won - lost)
    metrics = {
        "accuracy": float((margin > 0).sum() / pairs),
        "margin": float(margin.sum() / pairs),
        "chosen_reward": float(beta * won.sum() / pairs),
        "rejected_reward": float(beta * lost.sum() / pairs),
    }
    value = float(loss.sum(dtype=np.float64) / pairs)
    return PreferenceLoss(value, metrics, by_won / pairs, by_lost / pairs, beta * won, beta * lost)


def _terms(
    kind: PreferenceKind, won: Reals, lost: Reals, beta: float, smoothing: float
) -> tuple[Reals, Reals, Reals]:
    """Return the loss of each pair, and its slopes by the log-ratios of both."""
    margin = won - lost
    if kind == "nca":
        loss = -_log_sigmoid(beta * won) - (_log_sigmoid(-beta * won) + _log_sigmoid(-beta * lost)) / 2
        by_won = beta * (_sigmoid(beta * won) / 2 - _sigmoid(-beta * won))
        return loss, by_won, beta * _sigmoid(beta * lost) / 2
    if kind == "hinge":
        slope = -beta * (beta * margin < 1)
        return np.maximum(1 - beta * margin, 0), slope.astype(won.dtype), -slope.astype(won.dtype)
    if kind == "ipo":
        off = margin - 1 / (2 * beta)
        return off**2, 2 * off, -2 * off
    right, wrong = 1 - smoothing, smoothing
    if kind == "robust":
        right, wrong = right / (1 - 2 * smoothing), -smoothing / (1 - 2 * smoothing)
    elif kind != "sigmoid":
        raise ValueError(f"kind is {kind!r}; it must be sigmoid, ipo, hinge, robust or nca")
    loss = -right * _log_sigmoid(beta * margin) - wrong * _log_sigmoid(-beta * margin)
    slope = beta * (wrong * _sigmoid(beta * margin) - right * _sigmoid(-beta * margin))
    return loss, slope, -slope


def _log_sigmoid(x: Reals) -> Reals:
    found: Reals = np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))
    return found


def _sigmoid(x: Reals) -> Reals:
    return np.exp(_log_sigmoid(x))
