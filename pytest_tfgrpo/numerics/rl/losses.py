"""Losses of policies and critics, each with its exact gradient.

Axis ``_B`` runs over answers, ``_T`` over their tokens, ``_A`` over actions. Log-probabilities are of the
tokens that were sampled. What the reference stops (the clipped ratio of CISPO) is a constant of the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict, Unpack

from pytest_tfgrpo.numerics.arrays import Bools, Floats, Reals, finite, mask_of, np, reals, same_shape, usable
from pytest_tfgrpo.numerics.rl.aggregation import Aggregate, Empty, row_weights
from pytest_tfgrpo.numerics.rl.divergence import KlKind, estimate, kl_gradient
from pytest_tfgrpo.numerics.rl.surrogates import KINDS, Clipping, PolicyKind, Surrogate, surrogate

if TYPE_CHECKING:
    import numpy.typing as npt

Level = Literal["token", "sequence"]
USUAL_AGGREGATE: dict[PolicyKind, Aggregate] = {
    "ppo": "token-mean",
    "grpo": "seq-mean-token-mean",
    "bnpo": "token-mean",
    "dr_grpo": "seq-mean-token-sum-norm",
    "dapo": "token-mean",
    "cispo": "token-mean",
    "sapo": "seq-mean-token-mean",
    "gspo": "seq-mean-token-mean",
}
"""What a kind's paper or first implementation aggregates by."""
BLOCK = 1 << 15
"""Tokens that are computed at once: what lies between two steps of that stays in the cache."""


LARGEST = {"float32": 88.0, "float64": 709.0}
"""A log-ratio whose ratio is still a number: 0 times it is 0."""


class Loss(NamedTuple):
    """A loss to be made small."""

    value: float
    metrics: dict[str, float]
    gradient: Reals
    """By the log-probabilities (`policy_loss`), the values (`value_loss`) or the logits (`entropy_bonus`)."""


class PpoObjective(NamedTuple):
    """The total of PPO, with the gradient of each part by what that part was computed from."""

    value: float
    metrics: dict[str, float]
    policy_gradient: Reals
    value_gradient: Reals
    entropy_gradient: Reals


class ByLogits(NamedTuple):
    """A number per position, [...], with its gradient by the logits there, [..., A]."""

    values: Reals
    gradient: Reals


class PolicyOptions(TypedDict, total=False):
    """What few losses of a policy set.

    Bounds are not on by default: they hide that two policies are far apart.
    """

    dual_clip: float | None
    """Bounds the loss of bad tokens (Ye et al. 2020; 3 in verl)."""
    delta: float | None
    """Bounds the ratio where it is not clipped (TRL)."""
    log_clamp: float | None
    """Bounds the log-ratio (20 in verl)."""
    temperatures: tuple[float, float]
    """Of sapo, for advantages above 0 and others; usually 1 and 1.05."""
    sequence_gradient: Literal["mean", "token"]
    """token gives each token the slope of its own term (verl), mean the exact gradient of the value (TRL)."""
    kl_kind: KlKind
    """How the divergence from `ref` is estimated, k3 by default."""
    kl_clamp: float | None
    """Bounds it, as `divergence.kl` has it."""
    norm: float | None
    """This and what follows are as in `aggregation.row_weights`."""
    empty: Empty
    mask_eps: float
    rollouts: npt.ArrayLike | None


class _Policy(NamedTuple):
    """What holds for each block of rows."""

    kind: PolicyKind
    by_sequence: bool
    clipping: Clipping
    log_clamp: float | None
    per_token: bool
    beta: float
    kl_kind: KlKind
    kl_clamp: float | None


def policy_loss(
    new: npt.ArrayLike,
    old: npt.ArrayLike,
    advantages: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    kind: PolicyKind = "ppo",
    level: Level | None = None,
    aggregate: Aggregate | None = None,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    ref: npt.ArrayLike | None = None,
    beta: float = 0.0,
    **options: Unpack[PolicyOptions],
) -> Loss:
    """Return the loss of a policy, from log-probabilities `new` and `old`, [B, T], by the kind's rule.

    `advantages` are [B] or [B, T]. The ratio is ``exp(new - old)``; `level` "sequence" takes it from the mean
    over an answer's tokens (Zheng et al. 2025, "GSPO", and usual for gspo). Kinds and their clipping are
    those of `surrogates`, with aggregates of their own (`USUAL_AGGREGATE`). `beta` times the divergence from
    `ref` is added. `options` are those of `PolicyOptions`.

    Metrics, means over tokens that count: clip_low, clip_high, clip_dual (where clipping took the gradient
    away), k1 and k3 (of `new` from `old`, by tokens of `old`), entropy (-`new`), and kl from `ref`. Raises
    ValueError for shapes that differ, for unknown names, and with its place for a number that is not finite
    where `mask` is not 0.
    """
    policy = _policy(kind, level, (clip_low, clip_high), 0.0 if ref is None else beta, options)
    usable(0, beta=beta)
    new_BT, old_BT, ref_BT = reals(new=new, old=old, ref=new if ref is None else ref)
    if new_BT.ndim != 2:
        raise ValueError(f"new must be [B, T], got the shape {new_BT.shape}")
    counted = mask_of(mask, new_BT.shape)
    same_shape(new_BT.shape, old=old_BT, ref=ref_BT)
    adv = _advantages(advantages, new_BT, counted)
    weights_B = row_weights(
        counted,
        aggregate or USUAL_AGGREGATE[kind],
        norm=options.get("norm"),
        empty=options.get("empty", "skip"),
        mask_eps=options.get("mask_eps", 0.0),
        rollout_B=options.get("rollouts"),
    ).astype(new_BT.dtype)
    return _by_block(policy, (new_BT, old_BT, ref_BT), adv, counted, weights_B)


def _policy(
    kind: PolicyKind,
    level: Level | None,
    clips: tuple[float, float],
    beta: float,
    options: PolicyOptions,
) -> _Policy:
    """Return the rule of a loss; raises ValueError, and TypeError for an unknown option."""
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(KINDS)}")
    if level not in (None, "token", "sequence"):
        raise ValueError(f"level is {level!r}; it must be token or sequence")
    if unknown := sorted(options.keys() - PolicyOptions.__annotations__.keys()):
        raise TypeError(f"policy_loss() got an unexpected keyword argument {unknown[0]!r}")
    dual, delta, log_clamp = options.get("dual_clip"), options.get("delta"), options.get("log_clamp")
    kl_clamp = options.get("kl_clamp")
    usable(0, clip_low=clips[0], clip_high=clips[1], dual_clip=dual, delta=delta, log_clamp=log_clamp)
    usable(0, kl_clamp=kl_clamp)
    return _Policy(
        kind=kind,
        by_sequence=(level or ("sequence" if kind == "gspo" else "token")) == "sequence",
        clipping=Clipping(*clips, dual, delta, options.get("temperatures", (1.0, 1.05))),
        log_clamp=log_clamp,
        per_token=options.get("sequence_gradient") == "token",
        beta=beta,
        kl_kind=options.get("kl_kind", "k3"),
        kl_clamp=kl_clamp,
    )


METRICS = ("clip_low", "clip_high", "clip_dual", "k1", "k3", "entropy", "kl")


def _by_block(
    policy: _Policy, given: tuple[Reals, Reals, Reals], advantage: Reals, counted: Bools, weights_B: Reals
) -> Loss:
    """Return the loss of log-probabilities new, old and ref, [B, T], block by block of rows."""
    gradient = np.empty_like(given[0])
    sums = np.zeros(len(METRICS))
    value = 0.0
    for rows in _blocks(gradient.shape):
        here = counted[rows]
        raw = tuple(one[rows] for one in given)
        clean = raw if here.all() else _cleaned(here, *raw)
        with np.errstate(over="ignore", invalid="ignore"):
            found = _block(policy, clean, advantage[rows], here, weights_B[rows], gradient[rows])
        if not np.isfinite(found[0]).all():
            new, old, ref = given
            finite(counted, new=new, old=old, ref=ref)
        value += float(found[0][0])
        sums += found[1]
    tokens = max(int(counted.sum()), 1)
    metrics = {name: float(total / tokens) for name, total in zip(METRICS, sums, strict=True)}
    return Loss(value, metrics, gradient)


def _block(
    policy: _Policy,
    clean: tuple[Reals, ...],
    advantage: Reals,
    here: Bools,
    weight_B: Reals,
    gradient: Reals,
) -> tuple[Floats, Floats]:
    """Fill the rows of the gradient; return the loss with a sum that is finite if all is, and sums of
    metrics."""
    new, old, ref = clean
    whole = bool(here.all())
    log_ratio = new - old
    checked = float(log_ratio.sum()) + (float(ref.sum()) if policy.beta else 0.0)
    tokens_B = here.sum(axis=1, dtype=new.dtype)[:, None]
    x = log_ratio.sum(axis=1, keepdims=True) / np.maximum(tokens_B, 1) if policy.by_sequence else log_ratio
    if policy.log_clamp is not None:
        x = np.clip(x, -policy.log_clamp, policy.log_clamp)
    ratio = np.exp(np.minimum(x, LARGEST[new.dtype.name]))
    found = surrogate(policy.kind, ratio, advantage, new, policy.clipping)
    loss, slope = found.loss, found.slope
    if policy.log_clamp is not None and policy.kind != "cispo":
        slope = slope * (np.abs(x) < policy.log_clamp)
    weight = weight_B[:, None]
    masked = slope * weight if whole else slope * here * weight
    if policy.by_sequence and policy.kind != "cispo" and not policy.per_token:
        masked = here * (
            np.broadcast_to(masked, new.shape).sum(axis=1, keepdims=True) / np.maximum(tokens_B, 1)
        )
    gradient[...] = masked
    divergence: Reals | None = None
    if policy.beta:
        divergence = estimate(new, ref, policy.kl_kind, clamp=policy.kl_clamp)
        loss = loss + policy.beta * divergence
        by_kl = kl_gradient(new, ref, policy.kl_kind, clamp=policy.kl_clamp)
        gradient += policy.beta * weight * (by_kl * here)
    per_row = np.broadcast_to(loss, new.shape) if whole else loss * here
    total = float(per_row.sum(axis=1).astype(np.float64) @ weight_B.astype(np.float64))
    token_x = np.clip(log_ratio, -policy.log_clamp, policy.log_clamp) if policy.log_clamp else log_ratio
    return np.array([total, checked]), _sums(found, token_x, new, divergence, here)


def _sums(found: Surrogate, log_ratio: Reals, new: Reals, divergence: Reals | None, here: Bools) -> Floats:
    """Return the sums of `METRICS` over tokens that count; what is masked is 0 in the log-ratio and in
    `new`."""
    dual = 0 if found.dual is None else np.count_nonzero(found.dual & here)
    k1 = -float(log_ratio.sum())
    k3 = float((np.expm1(log_ratio) - log_ratio).sum())
    clipped = (np.count_nonzero(found.low & here), np.count_nonzero(found.high & here), dual)
    diverged = 0.0 if divergence is None else float((divergence * here).sum())
    return np.array([*clipped, k1, k3, -float(new.sum()), diverged])


def _blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    step = max(BLOCK // max(shape[1], 1), 1)
    for start in range(0, shape[0], step):
        yield slice(start, start + step)


def _advantages(advantages: npt.ArrayLike, new_BT: Reals, counted: Bools) -> Reals:
    (adv,) = reals(advantages=advantages)
    if adv.shape == new_BT.shape[:1]:
        adv, counted = adv[:, None], np.asarray(counted.any(axis=1, keepdims=True))
    same_shape(counted.shape, advantages=adv)
    finite(counted, advantages=adv)
    return _cleaned(counted, adv)[0].astype(new_BT.dtype, copy=False)


def _cleaned(counted: Bools, *arrays: Reals) -> tuple[Reals, ...]:
    """Return arrays that are 0 where they do not count."""
    return tuple(np.where(counted, one, 0).astype(one.dtype, copy=False) for one in arrays)


def value_loss(
    values: npt.ArrayLike,
    old_values: npt.ArrayLike,
    returns: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    clip: float | None = 0.2,
    scale: float = 0.5,
    aggregate: Aggregate = "token-mean",
    norm: float | None = None,
    empty: Empty = "skip",
    mask_eps: float = 0.0,
) -> Loss:
    """Return `scale` times the squared error of a critic, [B, T], the larger of it and the clipped one.

    Clipped is ``old + clip(value - old, -clip, clip)``; None clips nothing (decision 27 has .5 for the weight
    in the total: `ppo_objective`). Metrics: clip, explained_variance. Raises ValueError as `policy_loss`
    does.
    """
    usable(0, clip=clip, scale=scale)
    v, old, wanted = reals(values=values, old_values=old_values, returns=returns)
    counted = mask_of(mask, v.shape)
    same_shape(v.shape, old_values=old, returns=wanted)
    finite(counted, values=v, old_values=old, returns=wanted)
    v, old, wanted = _cleaned(counted, v, old, wanted)
    weight = (
        scale * row_weights(counted, aggregate, norm=norm, empty=empty, mask_eps=mask_eps)[:, None] * counted
    )
    error = v - wanted
    slope, flat = error, np.zeros(v.shape, dtype=np.bool_)
    if clip is not None:
        near = np.clip(v, old - clip, old + clip) - wanted
        flat = near**2 > error**2
        inside = np.abs(v - old) <= clip
        slope = np.where(flat, near * inside, error)
        error = np.where(flat, near, error)
    total = float((weight * error.astype(np.float64) ** 2).sum())
    kept = counted.sum()
    metrics = {
        "clip": float((flat & counted).sum() / max(kept, 1)),
        "explained_variance": explained_variance(v[counted], wanted[counted]),
    }
    return Loss(total, metrics, (2 * weight * slope).astype(v.dtype))


def entropy_bonus(
    logits: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    aggregate: Aggregate = "token-mean",
    norm: float | None = None,
    empty: Empty = "skip",
    mask_eps: float = 0.0,
) -> Loss:
    """Return the entropy of a policy with `logits` [B, T, A], to be subtracted, and its gradient by the
    logits."""
    (given,) = reals(logits=logits)
    counted = mask_of(mask, given.shape[:2])
    clean = np.where(counted[..., None], given, 0).astype(given.dtype, copy=False)
    finite(np.broadcast_to(counted[..., None], given.shape), logits=given)
    weight = row_weights(counted, aggregate, norm=norm, empty=empty, mask_eps=mask_eps)[:, None] * counted
    found = entropy(clean)
    gradient = (weight[..., None] * found.gradient).astype(given.dtype)
    return Loss(float((weight * found.values).sum()), {}, gradient)


def ppo_objective(
    policy: Loss, value: Loss, bonus: Loss, *, value_weight: float = 0.5, entropy_weight: float = 0.01
) -> PpoObjective:
    """Return policy + `value_weight` * value - `entropy_weight` * entropy (Schulman et al. 2017, equation 9).

    Weights are those of decision 27. Where the value's loss has its own half (`scale` .5), as in TRL and
    verl, their weight of .1 or 1 goes on top of it; Stable-Baselines3 has no half and a weight of .5.
    """
    metrics = {
        "policy": policy.value,
        "value": value.value,
        "entropy": bonus.value,
        **{f"policy_{name}": one for name, one in policy.metrics.items()},
        **{f"value_{name}": one for name, one in value.metrics.items()},
    }
    return PpoObjective(
        policy.value + value_weight * value.value - entropy_weight * bonus.value,
        metrics,
        policy.gradient,
        (value_weight * value.gradient).astype(value.gradient.dtype, copy=False),
        (-entropy_weight * bonus.gradient).astype(bonus.gradient.dtype, copy=False),
    )


def log_probs(logits: npt.ArrayLike, actions: npt.ArrayLike) -> ByLogits:
    """Return the log-probability of each action, [...], under `logits` [..., A]; raises ValueError for no
    action."""
    (given,) = reals(logits=logits)
    chosen = np.asarray(actions)
    same_shape(given.shape[:-1], actions=chosen)
    if chosen.dtype.kind not in "iu" or (
        chosen.size and not 0 <= chosen.min() <= chosen.max() < given.shape[-1]
    ):
        raise ValueError(f"actions must be whole numbers from 0 to {given.shape[-1] - 1}")
    finite(logits=given)
    every = _log_softmax(given)
    gradient = -np.exp(every)
    place = chosen[..., None]
    np.put_along_axis(gradient, place, np.take_along_axis(gradient, place, -1) + 1, -1)
    return ByLogits(np.take_along_axis(every, place, -1)[..., 0], gradient)


def entropy(logits: npt.ArrayLike) -> ByLogits:
    """Return the entropy in nats of the distributions of `logits`, [...] of [..., A]."""
    (given,) = reals(logits=logits)
    finite(logits=given)
    every = _log_softmax(given)
    p = np.exp(every)
    values = -(p * every).sum(axis=-1)
    return ByLogits(values, -p * (every + values[..., None]))


def _log_softmax(logits: Reals) -> Reals:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    found: Reals = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found


def explained_variance(values: npt.ArrayLike, returns: npt.ArrayLike) -> float:
    """Return 1 - var(returns - values) / var(returns); NaN where all returns are equal.

    Raises ValueError with its place for a number that is not finite.
    """
    v, wanted = reals(values=values, returns=returns)
    finite(values=v, returns=wanted)
    if not wanted.size or wanted.max() == wanted.min():
        return float("nan")
    wanted = wanted.astype(np.float64)
    return float(1 - np.var(wanted - v) / np.var(wanted))
