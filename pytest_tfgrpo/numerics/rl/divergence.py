"""Divergence of one policy from another, estimated from the log-probabilities of sampled tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pytest_tfgrpo.numerics.arrays import Reals, finite, np, reals, usable

if TYPE_CHECKING:
    import numpy.typing as npt

KlKind = Literal["k1", "k2", "k3", "abs"]


def kl(
    new: npt.ArrayLike,
    ref: npt.ArrayLike,
    kind: KlKind = "k3",
    *,
    log_clamp: float | None = None,
    clamp: float | None = None,
) -> Reals:
    """Return an estimate of the divergence of `new` from `ref` at each token that `new` sampled.

    Schulman 2020, "Approximating KL Divergence": k1 = new - ref, k2 its half square, k3 = exp(ref - new) -
    (ref - new) - 1, abs its absolute value. `log_clamp` bounds the log-ratio and `clamp` the estimate (20 and
    10 in verl's k3); by default neither, as in TRL: a bounded estimate is biased where policies are far
    apart. Raises ValueError for another kind, and with its place for a number that is not finite.
    """
    new_n, ref_n = reals(new=new, ref=ref)
    finite(new=new_n, ref=ref_n)
    return estimate(new_n, ref_n, kind, log_clamp=log_clamp, clamp=clamp)


def estimate(
    new_n: Reals,
    ref_n: Reals,
    kind: KlKind,
    *,
    log_clamp: float | None = None,
    clamp: float | None = None,
) -> Reals:
    """Return what `kl` does, of numbers that somebody else checks; raises ValueError for another kind."""
    d = ref_n - new_n if log_clamp is None else np.clip(ref_n - new_n, -log_clamp, log_clamp)
    if kind == "k1":
        found = -d
    elif kind == "k2":
        found = d**2 / 2
    elif kind == "abs":
        found = np.abs(d)
    elif kind == "k3":
        found = np.expm1(d) - d
    else:
        raise ValueError(f"kind is {kind!r}; it must be k1, k2, k3 or abs")
    return found if clamp is None else np.clip(found, -clamp, clamp)


def kl_gradient(
    new: npt.ArrayLike,
    ref: npt.ArrayLike,
    kind: KlKind = "k3",
    *,
    log_clamp: float | None = None,
    clamp: float | None = None,
) -> Reals:
    """Return the gradient of `kl` by `new`; 0 where a clamp is reached."""
    new_n, ref_n = reals(new=new, ref=ref)
    d = ref_n - new_n
    if kind == "k3":
        slope = -np.expm1(d if log_clamp is None else np.clip(d, -log_clamp, log_clamp))
    else:
        slope = {"k1": np.ones_like(d), "k2": -d, "abs": -np.sign(d)}[kind]
    if log_clamp is not None:
        slope = slope * (np.abs(d) <= log_clamp)
    if clamp is not None:
        slope = slope * (np.abs(estimate(new_n, ref_n, kind, log_clamp=log_clamp)) <= clamp)
    return slope


def adaptive_kl(
    weight: float, found: float, target: float, *, steps: int, horizon: int, clip: float = 0.2
) -> float:
    """Return the weight of a divergence after `steps`: larger where it was above `target`.

    Ziegler et al. 2019, "Fine-Tuning Language Models from Human Preferences", section 2.2. Raises ValueError
    for a number that is not finite, and for a `target` or `horizon` that is not above 0.
    """
    usable(weight=weight, found=found, target=target, steps=steps, horizon=horizon, clip=clip)
    if target <= 0 or horizon <= 0:
        raise ValueError(f"target is {target!r} and horizon {horizon!r}; both must be above 0")
    error = min(max(found / target - 1, -clip), clip)
    return weight * (1 + error * steps / horizon)
