"""A small world in which a policy learns: three kinds of task, three steps each, four tools, one reward at
the end."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.numerics.rl.returns import gae
from pytest_tfgrpo.numerics.rl.softmax import (
    ArmPolicy,
    Decisions,
    arm_log_probs,
    grpo_step,
    ppo_step,
    probabilities,
    rloo_step,
    uniform_policy,
)

RIGHT = np.array([[0, 1, 2], [3, 2, 1], [1, 3, 0]])
"""The tool that each step of each kind of task needs."""
KINDS, STEPS = RIGHT.shape
TOOLS, NOISE = 4, 0.2
BATCH, GROUP = 32, 8


class Episodes(NamedTuple):
    """Contexts and tools, [T, B], and the reward at the end, [B]."""

    context_TB: npt.NDArray[np.intp]
    tool_TB: npt.NDArray[np.intp]
    reward_B: npt.NDArray[np.float64]


def play(policy: ArmPolicy, kind_B: npt.NDArray[np.intp], rng: np.random.Generator) -> Episodes:
    """Return episodes; the reward is the share of steps with the right tool, and noise."""
    context_TB = kind_B[None, :] * STEPS + np.arange(STEPS)[:, None]
    edges = probabilities(policy)[context_TB].cumsum(axis=-1)
    tool_TB = np.minimum((rng.random(context_TB.shape)[..., None] > edges).sum(axis=-1), TOOLS - 1)
    right = tool_TB == RIGHT[kind_B].T
    return Episodes(context_TB, tool_TB, right.mean(axis=0) + rng.normal(0, NOISE, len(kind_B)))


def success(policy: ArmPolicy) -> float:
    """Return the probability of the right tool, over all steps of all kinds."""
    p = probabilities(policy)
    return float(np.mean([p[k * STEPS + t, RIGHT[k, t]] for k in range(KINDS) for t in range(STEPS)]))


def learned(
    how: Literal["ppo", "grpo", "rloo"], seed: int, *, episodes: int = 2_000, sign: float = 1.0
) -> float:
    """Return the success of a policy after `episodes`; `sign` -1 plants an error in the advantages."""
    rng = np.random.default_rng(seed)
    policy, values_C = uniform_policy(KINDS * STEPS, TOOLS, 0.005), np.zeros(KINDS * STEPS)
    for batch in range(episodes // BATCH):
        if how == "ppo":
            policy = _ppo(policy, values_C, rng, sign, batch)
            continue
        group_B = np.repeat(np.arange(BATCH // GROUP), GROUP)
        played = play(policy, rng.integers(KINDS, size=BATCH // GROUP)[group_B], rng)
        reward_N = np.tile(sign * played.reward_B, STEPS)
        group_N = np.tile(group_B, STEPS)
        decisions = _decisions(policy, played)
        if how == "grpo":
            step = grpo_step(
                policy, decisions, reward_N, group_N, rate=3.0, epochs=4, entropy=0, max_kl=0.2, seed=batch
            )
        else:
            step = rloo_step(policy, decisions, reward_N, group_N, rate=40.0, entropy=0, max_kl=0.2)
        policy = step.policy
    return success(policy)


def _ppo(
    policy: ArmPolicy, values_C: npt.NDArray[np.float64], rng: np.random.Generator, sign: float, seed: int
) -> ArmPolicy:
    played = play(policy, rng.integers(KINDS, size=BATCH), rng)
    rewards = np.zeros(played.tool_TB.shape)
    rewards[-1] = played.reward_B
    values = values_C[played.context_TB]
    after = np.vstack([values[1:], np.zeros((1, BATCH))])
    over = np.zeros(rewards.shape, dtype=np.bool_)
    over[-1] = True
    advantages, returns = gae(rewards, values, after, over, np.zeros_like(over), gamma=1.0, lam=0.95)
    for context in np.unique(played.context_TB):
        here = played.context_TB == context
        values_C[context] += 0.3 * (returns[here].mean() - values_C[context])
    decisions = _decisions(policy, played)
    step = ppo_step(
        policy, decisions, sign * advantages.ravel(), rate=3.0, epochs=4, entropy=0, max_kl=0.2, seed=seed
    )
    return step.policy


def _decisions(policy: ArmPolicy, played: Episodes) -> Decisions:
    contexts, tools = played.context_TB.ravel(), played.tool_TB.ravel()
    return Decisions(contexts, tools, arm_log_probs(policy, contexts, tools))
