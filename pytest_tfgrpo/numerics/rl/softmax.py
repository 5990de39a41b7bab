"""A softmax policy over arms, as a table, with the steps that improve it.

Axis ``_C`` runs over contexts, ``_A`` over arms, ``_N`` over decisions. A context's logits are those that all
share plus its own, so that a context that was never seen starts from what holds on the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.numerics.arrays import Floats, Ints, finite, np, same_shape
from pytest_tfgrpo.numerics.rl.advantages import Scale, grpo_advantage, rloo_advantage
from pytest_tfgrpo.numerics.rl.losses import policy_loss

if TYPE_CHECKING:
    import numpy.typing as npt

HALVINGS = 40
"""After these a step that is still too large is not made."""


class ArmPolicy(NamedTuple):
    """Logits of arms, and the least probability that each arm has."""

    shared_A: Floats
    own_CA: Floats
    floor: float = 0.0
    """p = (1 - A floor) softmax + floor: an arm that is never pulled can never be judged."""


class Decisions(NamedTuple):
    """What a policy chose, each [N]."""

    context_N: Ints
    arm_N: Ints
    log_prob_N: Floats
    """Of the arm, under the policy that chose it."""


class ArmStep(NamedTuple):
    """An improved policy."""

    policy: ArmPolicy
    metrics: dict[str, float]
    """kl: exact, of the new from the old policy, over the decisions' contexts; halvings; and of the last
    minibatch its loss, clip_low, clip_high."""


def uniform_policy(contexts: int, arms: int, floor: float = 0.0) -> ArmPolicy:
    """Return the policy that knows nothing; raises ValueError for a floor that leaves no room to learn."""
    if arms < 1 or contexts < 1 or not 0 <= floor * arms < 1:
        raise ValueError(f"{contexts} contexts, {arms} arms with a floor of {floor!r}: the floor is too high")
    return ArmPolicy(np.zeros(arms), np.zeros((contexts, arms)), floor)


def probabilities(policy: ArmPolicy) -> Floats:
    """Return the probability of each arm in each context, [C, A]."""
    softmax_CA = _softmax(policy)
    found_CA: Floats = (1 - softmax_CA.shape[1] * policy.floor) * softmax_CA + policy.floor
    return found_CA


def arm_log_probs(policy: ArmPolicy, context_N: npt.ArrayLike, arm_N: npt.ArrayLike) -> Floats:
    """Return the log-probability of each decision, [N]; raises ValueError for no context or arm of the
    policy."""
    contexts, arms = _places(policy, context_N, arm_N)
    found: Floats = np.log(probabilities(policy)[contexts, arms])
    return found


def log_prob_gradient(
    policy: ArmPolicy, context_N: npt.ArrayLike, arm_N: npt.ArrayLike, slope_N: npt.ArrayLike
) -> ArmPolicy:
    """Return the gradient of ``sum(slope * log-probability)`` by the logits, in the shape of a policy."""
    contexts, arms = _places(policy, context_N, arm_N)
    softmax_CA = _softmax(policy)
    mixed = 1 - softmax_CA.shape[1] * policy.floor
    chosen_N = softmax_CA[contexts, arms]
    weight_N = np.asarray(slope_N, dtype=np.float64) * mixed * chosen_N / (mixed * chosen_N + policy.floor)
    own_CA = np.zeros_like(policy.own_CA)
    np.add.at(own_CA, (contexts, arms), weight_N)
    own_CA -= np.bincount(contexts, weights=weight_N, minlength=len(own_CA))[:, None] * softmax_CA
    return ArmPolicy(own_CA.sum(axis=0), own_CA, policy.floor)


def arm_kl(old: ArmPolicy, new: ArmPolicy, weight_C: npt.ArrayLike) -> float:
    """Return the exact divergence of `new` from `old` in nats, KL(old || new), weighted over contexts."""
    weights = np.asarray(weight_C, dtype=np.float64)
    p_CA, q_CA = probabilities(old), probabilities(new)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms_CA = np.where(p_CA > 0, p_CA * (np.log(p_CA) - np.log(q_CA)), 0.0)
    total = float(weights.sum())
    return max(float(weights @ terms_CA.sum(axis=1)) / total, 0.0) if total else 0.0


def ppo_step(
    policy: ArmPolicy,
    decisions: Decisions,
    advantage_N: npt.ArrayLike,
    *,
    rate: float,
    epochs: int = 1,
    minibatch: int = 32,
    clip: float = 0.2,
    entropy: float = 0.01,
    max_kl: float | None = None,
    seed: int = 0,
) -> ArmStep:
    """Return the policy after `epochs` passes over decisions in shuffled minibatches, each a step downhill.

    The whole step is halved until the exact divergence from `policy`, over the decisions' contexts, is at
    most `max_kl`. Defaults are those of decision 27. Schulman et al. 2017. Raises ValueError for contexts and
    arms that the policy lacks, and for advantages that are not finite.
    """
    contexts, arms = _places(policy, decisions.context_N, decisions.arm_N)
    old_N, adv_N = (np.asarray(one, dtype=np.float64) for one in (decisions.log_prob_N, advantage_N))
    same_shape(contexts.shape, log_prob_N=old_N, advantage_N=adv_N)
    finite(log_prob_N=old_N, advantage_N=adv_N)
    rng = np.random.default_rng(seed)
    found, metrics = policy, {"loss": 0.0, "clip_low": 0.0, "clip_high": 0.0}
    for _ in range(epochs):
        order = rng.permutation(contexts.size)
        for start in range(0, contexts.size, minibatch):
            rows = order[start : start + minibatch]
            new_N = arm_log_probs(found, contexts[rows], arms[rows])
            loss = policy_loss(
                new_N[:, None], old_N[rows, None], adv_N[rows], clip_low=clip, clip_high=clip, kind="ppo"
            )
            downhill = log_prob_gradient(found, contexts[rows], arms[rows], -loss.gradient[:, 0])
            found = _moved(found, downhill, rate)
            if entropy:
                found = _moved(found, _entropy_gradient(found, contexts[rows]), rate * entropy)
            metrics = {name: loss.metrics[name] for name in ("clip_low", "clip_high")} | {"loss": loss.value}
    return _within(policy, found, np.bincount(contexts, minlength=len(policy.own_CA)), max_kl, metrics)


def grpo_step(
    policy: ArmPolicy,
    decisions: Decisions,
    reward_N: npt.ArrayLike,
    group_N: npt.ArrayLike,
    *,
    rate: float,
    scale: Scale = "group",
    epochs: int = 1,
    minibatch: int = 32,
    clip: float = 0.2,
    entropy: float = 0.01,
    max_kl: float | None = None,
    seed: int = 0,
) -> ArmStep:
    """Return what `ppo_step` does, with the advantages of `advantages.grpo_advantage`."""
    return ppo_step(
        policy,
        decisions,
        grpo_advantage(np.asarray(reward_N, dtype=np.float64), group_N, scale=scale),
        rate=rate,
        epochs=epochs,
        minibatch=minibatch,
        clip=clip,
        entropy=entropy,
        max_kl=max_kl,
        seed=seed,
    )


def rloo_step(
    policy: ArmPolicy,
    decisions: Decisions,
    reward_N: npt.ArrayLike,
    group_N: npt.ArrayLike,
    *,
    rate: float,
    entropy: float = 0.01,
    max_kl: float | None = None,
) -> ArmStep:
    """Return the policy after one step along the exact gradient of REINFORCE, with leave-one-out
    baselines."""
    advantage_N = rloo_advantage(np.asarray(reward_N, dtype=np.float64), group_N)
    return reinforce_step(policy, decisions, advantage_N, rate=rate, entropy=entropy, max_kl=max_kl)


def reinforce_step(
    policy: ArmPolicy,
    decisions: Decisions,
    advantage_N: npt.ArrayLike,
    *,
    rate: float,
    entropy: float = 0.01,
    max_kl: float | None = None,
) -> ArmStep:
    """Return the policy after one step along the exact gradient of REINFORCE; raises ValueError as
    `ppo_step`."""
    contexts, arms = _places(policy, decisions.context_N, decisions.arm_N)
    adv_N = np.asarray(advantage_N, dtype=np.float64)
    same_shape(contexts.shape, advantage_N=adv_N)
    finite(advantage_N=adv_N)
    uphill = log_prob_gradient(policy, contexts, arms, adv_N / max(contexts.size, 1))
    found = _moved(policy, uphill, rate)
    if entropy:
        found = _moved(found, _entropy_gradient(policy, contexts), rate * entropy)
    weight_C = np.bincount(contexts, minlength=len(policy.own_CA))
    return _within(
        policy, found, weight_C, max_kl, {"loss": -float(adv_N @ arm_log_probs(policy, contexts, arms))}
    )


def raise_shares(logits_CA: Floats, least_CA: Floats) -> Floats:
    """Return logits whose softmax is at least `least_CA`, [C, A], whose rows sum to 1 at most.

    The arms above their least keep their proportions; rows that have nothing below it stay as they are.
    """
    same_shape(logits_CA.shape, least_CA=least_CA)
    highest_C = logits_CA.max(axis=1, keepdims=True)
    total_C = highest_C + np.log(np.exp(logits_CA - highest_C).sum(axis=1, keepdims=True))
    share_CA = np.exp(logits_CA - total_C)
    low_CA = share_CA < least_CA
    found_CA: Floats = logits_CA
    tiny = np.finfo(np.float64).tiny
    for _ in range(share_CA.shape[1]):  # what is raised lowers the others, which may need it then
        free_C = 1 - np.where(low_CA, least_CA, 0.0).sum(axis=1, keepdims=True)
        held_C = np.where(low_CA, 0.0, share_CA).sum(axis=1, keepdims=True)
        scale_C = np.divide(free_C, held_C, out=np.ones_like(held_C), where=held_C > 0)
        raised_CA = np.where(low_CA, least_CA, share_CA * scale_C)
        low_CA |= raised_CA < least_CA
        kept_CA = logits_CA + np.log(np.maximum(scale_C, tiny))  # a share may be too small for its logarithm
        moved_CA = np.where(low_CA, np.log(np.maximum(least_CA, tiny)) + total_C, kept_CA)
        found_CA = np.where(low_CA.any(axis=1, keepdims=True), moved_CA, logits_CA)
    return found_CA


def within_kl(old: ArmPolicy, new: ArmPolicy, weight_C: npt.ArrayLike, max_kl: float | None) -> ArmPolicy:
    """Return `new`, its step from `old` halved until its divergence over contexts is at most `max_kl`."""
    return _within(old, new, np.asarray(weight_C), max_kl, {}).policy


def _within(
    old: ArmPolicy, new: ArmPolicy, weight_C: Ints, max_kl: float | None, metrics: dict[str, float]
) -> ArmStep:
    halvings, kl = 0, arm_kl(old, new, weight_C)
    while max_kl is not None and not kl <= max_kl:
        halvings += 1
        if halvings > HALVINGS:
            return ArmStep(old, {**metrics, "kl": 0.0, "halvings": float(halvings)})
        new = ArmPolicy((old.shared_A + new.shared_A) / 2, (old.own_CA + new.own_CA) / 2, old.floor)
        kl = arm_kl(old, new, weight_C)
    return ArmStep(new, {**metrics, "kl": kl, "halvings": float(halvings)})


def _moved(policy: ArmPolicy, direction: ArmPolicy, rate: float) -> ArmPolicy:
    return ArmPolicy(
        policy.shared_A + rate * direction.shared_A, policy.own_CA + rate * direction.own_CA, policy.floor
    )


def _entropy_gradient(policy: ArmPolicy, contexts: Ints) -> ArmPolicy:
    """Return the gradient of the mean entropy over decisions, of p with its floor."""
    softmax_CA = _softmax(policy)
    mixed = 1 - softmax_CA.shape[1] * policy.floor
    slope_CA = -mixed * (np.log(np.maximum(probabilities(policy), np.finfo(np.float64).tiny)) + 1)
    inner_C = (softmax_CA * slope_CA).sum(axis=1, keepdims=True)
    share_C = np.bincount(contexts, minlength=len(softmax_CA)) / max(contexts.size, 1)
    own_CA = share_C[:, None] * softmax_CA * (slope_CA - inner_C)
    return ArmPolicy(own_CA.sum(axis=0), own_CA, policy.floor)


def _softmax(policy: ArmPolicy) -> Floats:
    logits_CA = policy.shared_A + policy.own_CA
    raised_CA = np.exp(logits_CA - logits_CA.max(axis=1, keepdims=True))
    found: Floats = raised_CA / raised_CA.sum(axis=1, keepdims=True)
    return found


def _places(policy: ArmPolicy, context_N: npt.ArrayLike, arm_N: npt.ArrayLike) -> tuple[Ints, Ints]:
    contexts, arms = np.asarray(context_N), np.asarray(arm_N)
    same_shape(contexts.shape, arm_N=arms)
    for name, found, size in (
        ("context_N", contexts, len(policy.own_CA)),
        ("arm_N", arms, len(policy.shared_A)),
    ):
        if found.ndim != 1 or (found.size and (found.dtype.kind not in "iu" or not _inside(found, size))):
            raise ValueError(f"{name} must be a vector of whole numbers from 0 to {size - 1}")
    return contexts.astype(np.intp), arms.astype(np.intp)


def _inside(found: Ints, size: int) -> bool:
    return bool(found.min() >= 0 and found.max() < size)
