"""One update of the selector: trajectories of choices to advantages, and a step of bounded divergence.

The clip bounds the step from today's policy; a choice weighs as much as today's probability of its arm over
that logged when it was drawn (decisions 26, 27; Hilton et al. 2022, "Batch size-invariance for policy
optimization"), so that old runs teach as well. Axis ``_K`` runs over trajectories, ``_N`` over their choices
end to end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.numerics.arrays import np
from pytest_tfgrpo.numerics.rl.advantages import grpo_advantage, rloo_advantage
from pytest_tfgrpo.numerics.rl.losses import explained_variance, value_loss
from pytest_tfgrpo.numerics.rl.normalise import whiten
from pytest_tfgrpo.numerics.rl.returns import gae_packed, pack
from pytest_tfgrpo.numerics.rl.softmax import (
    ArmPolicy,
    Decisions,
    arm_kl,
    ppo_step,
    probabilities,
    raise_shares,
    reinforce_step,
    within_kl,
)
from pytest_tfgrpo.production.live.records import ArmChoice, LiveRollout, LiveStatus, LiveUpdate
from pytest_tfgrpo.production.live.selection.critic import Visit
from pytest_tfgrpo.production.live.selection.evidence import ArmEvidence, ArmReturn
from pytest_tfgrpo.production.live.selection.selector import PointPolicy, Points, SelectorState, open_selector
from pytest_tfgrpo.production.live.states import UNKNOWN_ARM

if TYPE_CHECKING:
    from pytest_tfgrpo.numerics.arrays import Floats
    from pytest_tfgrpo.numerics.rl.softmax import ArmPolicy, Decisions

RATES: Mapping[str, float] = {"ppo": 3.0, "grpo": 3.0, "rloo": 12.0}
"""Size of a step by algorithm; the bound of the divergence is what limits it."""
EPOCHS, MINIBATCH, CLIP, ENTROPY, MAX_KL = 4, 32, 0.2, 0.01, 0.05
LEAST_SOFTMAX = 0.005
"""Softmax that an arm keeps, before the floor is mixed in: the gradient of one that fell further is so small
that it would not come back when it becomes good."""
UPDATE_SCHEMA = "tfgrpo.live-update/1"
MAX_DRIFT = 10.0
"""Largest mean square of the importance ratio of a run: beyond, runs of then count for less than a tenth of
runs of today, and the run is stale."""
WAITS_FOR = 8
"""Selectors for which a run waits for a process that has its arm."""

PolicyAlgorithm = Literal["ppo", "grpo", "rloo"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Learning:
    """What an update learns for, and how."""

    points: Points
    """Stamp of each arm there is now, by point and name."""
    strategy: str
    """Of reward inference: runs with another are left out."""
    algorithm: PolicyAlgorithm = "ppo"
    limit: int = 64
    """Rollouts of an update at most."""


class _Step(NamedTuple):
    """A choice that an update can use."""

    point: str
    arm: str
    """By its present name."""
    propensity: float
    """Today's: the probability of the arm before the update."""
    weight: float
    """Today's probability over that with which the arm was drawn."""


class _Trajectory(NamedTuple):
    """A run that an update can use."""

    id: str
    category: str
    """As the application named it."""
    reward: float
    """Composite, at the last choice."""
    steps: tuple[_Step, ...]


@dataclass(slots=True)
class _Batch:
    """What of the rollouts is used, and why the others are not."""

    learning: Learning
    state: SelectorState
    """Before the update, with logits for all categories of the runs that it uses."""
    full: bool
    used: list[_Trajectory] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    out: list[str] = field(default_factory=list)
    """Ids of those that no update will use."""


class _Judged(NamedTuple):
    """All steps of a batch, end to end, with what they were worth."""

    step_N: list[_Step]
    visit_N: list[Visit]
    advantage_N: Floats
    return_N: Floats
    value_N: Floats


def compute(
    rollouts: Sequence[LiveRollout], selector: int, document: Json | None, *, learning: Learning, now: float
) -> tuple[LiveUpdate, Json]:
    """Return the report of an update, and the document of the selector after it.

    `rollouts` are ended runs, `document` is that of selector number `selector`. Where the report says
    ``executed: false`` the document is the one given: nothing is learned from no trajectories, from rewards
    without spread, or without the probabilities of the choices (decision 26). The store numbers the update.
    """
    batch = _sorted_out(rollouts, open_selector(selector, document, learning.points), learning)
    reason = _reason(batch)
    judged = None if reason else _judged(batch)
    if judged is None or float(judged.advantage_N.max()) == float(judged.advantage_N.min()):
        return _report(batch, now, reason=reason or "zero_variance"), document
    evidence = _evidence(batch, judged)
    points, metrics = _improved(batch, judged, evidence)
    critic = batch.state.critic.updated(zip(judged.visit_N, judged.return_N.tolist(), strict=True))
    after = batch.state.learned(points, critic, evidence)
    return _report(batch, now, after=after, metrics=metrics | _of_rewards(batch, judged)), after.document()


def update_document(update: LiveUpdate) -> dict[str, Json]:
    """Return the report of an update as JSON (``tfgrpo.live-update/1``)."""
    return {"schema": UPDATE_SCHEMA, "weights_applied": update.weights_applied, **to_wire(update)}


def _sorted_out(rollouts: Sequence[LiveRollout], state: SelectorState, learning: Learning) -> _Batch:
    batch = _Batch(learning, state, full=len(rollouts) >= learning.limit)
    for rollout in sorted(rollouts, key=lambda one: one.sequence)[: learning.limit]:
        found = _trajectory(rollout, state, learning.strategy)
        if isinstance(found, str):
            batch.left_out[found] += 1
            if found != UNKNOWN_ARM:
                batch.out.append(rollout.id)
        else:
            batch.used.append(found)
    batch.state = state.with_categories(one.category for one in batch.used)
    return batch


def _trajectory(rollout: LiveRollout, state: SelectorState, strategy: str) -> _Trajectory | str:
    """Return what an update learns from a run, or why it learns nothing."""
    choices, reward = rollout.choices, rollout.reward
    if rollout.status not in (LiveStatus.SUCCEEDED, LiveStatus.FAILED):
        return str(rollout.status)
    if rollout.used_in is not None:
        return "used"
    if rollout.control or any(choice.control for choice in choices):
        return "control"
    if not choices:
        return "no_choices"
    if reward is None:
        return "no_outcome"
    if reward.strategy != strategy:
        return "other_strategy"
    if not all(0 < choice.probabilities.get(choice.arm, 0.0) <= 1 for choice in choices):
        return "missing_logprobs"
    steps, drift = [], 1.0
    for choice in choices:
        policy = state.points.get(choice.point)
        arm = None if policy is None else policy.arm_of(choice)
        if policy is None or arm is None:
            return UNKNOWN_ARM if choice.selector >= state.number - WAITS_FOR else "stale"
        today = state.probabilities(choice.point, rollout.category)
        drift *= _drift(choice, policy, today)
        steps.append(_Step(choice.point, arm, today[arm], today[arm] / choice.propensity))
    if drift > MAX_DRIFT:
        return "stale"
    return _Trajectory(rollout.id, rollout.category, reward.composite, tuple(steps))


def _drift(choice: ArmChoice, policy: PointPolicy, today: Mapping[str, float]) -> float:
    """Return the mean square of the importance ratio of a choice, over the arms that its policy and today's
    both have: 1 where they are equal; runs of then count for its inverse of runs of today (Kish 1965)."""
    now = {stamp: today[arm] for arm, stamp in policy.arms.items()}
    both = [
        (now[stamp], choice.probabilities[arm])
        for arm, stamp in choice.arms.items()
        if stamp in now and choice.probabilities.get(arm)
    ]
    square = sum(p * p / q for p, q in both)
    return square * sum(q for _, q in both) / sum(p for p, _ in both) ** 2


def _reason(batch: _Batch) -> str:
    """Return why there is nothing to learn from; empty where there is."""
    if not batch.used:
        return "missing_logprobs" if batch.left_out["missing_logprobs"] else "no_trajectories"
    rewards = [one.reward for one in batch.used]
    return "zero_variance" if max(rewards) == min(rewards) else ""


def _judged(batch: _Batch) -> _Judged:
    """Return the steps with their advantages: by GAE and whitened over the batch for ppo, else the advantage
    of the run among those of its category."""
    state, used = batch.state, batch.used
    category_K = [state.category(one.category) for one in used]
    visits = [
        [Visit(category, place) for place in range(len(one.steps))]
        for category, one in zip(category_K, used, strict=True)
    ]
    visit_N = [visit for steps in visits for visit in steps]
    rewards = pack([[0.0] * (len(one.steps) - 1) + [one.reward] for one in used])
    value_N = np.array([state.critic.value(visit) for visit in visit_N])
    over_K = np.ones(len(used), dtype=np.bool_)
    found, return_N = gae_packed(rewards.steps_N, value_N, rewards.lengths_K, over_K, np.zeros(len(used)))
    if batch.learning.algorithm == "ppo":
        found = whiten(found, ddof=0, single="keep")
    else:
        of_group = grpo_advantage if batch.learning.algorithm == "grpo" else rloo_advantage
        group_K = np.unique(category_K, return_inverse=True)[1]
        found = np.repeat(of_group([one.reward for one in used], group_K), rewards.lengths_K)
    step_N = [step for one in used for step in one.steps]
    return _Judged(step_N, visit_N, found.astype(np.float64), return_N.astype(np.float64), value_N)


def _evidence(batch: _Batch, judged: _Judged) -> dict[str, ArmEvidence]:
    """Return what is known of the arms of each point after the batch."""
    found = dict(batch.state.evidence)
    for name in {step.point for step in judged.step_N}:
        stamps = batch.state.points[name].arms
        returns = [
            ArmReturn(visit.category, stamps[step.arm], value)
            for step, visit, value in zip(
                judged.step_N, judged.visit_N, judged.return_N.tolist(), strict=True
            )
            if step.point == name
        ]
        found[name] = found.get(name, ArmEvidence()).with_returns(returns)
    return found


def _improved(
    batch: _Batch, judged: _Judged, evidence: Mapping[str, ArmEvidence]
) -> tuple[dict[str, PointPolicy], dict[str, float]]:
    """Return the points' policies after the step, and its metrics; each point counts by its steps."""
    points, totals = dict(batch.state.points), Counter[str]()
    for name in sorted({step.point for step in judged.step_N}):
        here = [place for place, step in enumerate(judged.step_N) if step.point == name]
        arms = sorted(points[name].arms)
        decisions = Decisions(
            np.array([batch.state.categories.index(judged.visit_N[i].category) for i in here]),
            np.array([arms.index(judged.step_N[i].arm) for i in here]),
            np.log([judged.step_N[i].propensity for i in here]),
        )
        weight_N = np.array([judged.step_N[i].weight for i in here])
        advantage_N = weight_N * judged.advantage_N[here]
        points[name], metrics = _moved(batch, points[name], decisions, advantage_N, evidence[name])
        totals.update({metric: value * len(here) for metric, value in metrics.items()})
    return points, {metric: value / len(judged.step_N) for metric, value in totals.items()}


def _moved(
    batch: _Batch, point: PointPolicy, decisions: Decisions, advantage_N: Floats, evidence: ArmEvidence
) -> tuple[PointPolicy, dict[str, float]]:
    arms, categories, algorithm = sorted(point.arms), batch.state.categories, batch.learning.algorithm
    rate = RATES[algorithm]
    own_CA = np.array([[point.own.get(c, {}).get(arm, 0.0) for arm in arms] for c in categories])
    policy = ArmPolicy(np.array([point.shared[arm] for arm in arms]), own_CA, point.floor)
    if algorithm == "rloo":
        step = reinforce_step(policy, decisions, advantage_N, rate=rate, entropy=ENTROPY, max_kl=MAX_KL)
    else:
        step = ppo_step(
            policy,
            decisions,
            advantage_N,
            rate=rate,
            epochs=EPOCHS,
            minibatch=MINIBATCH,
            clip=CLIP,
            entropy=ENTROPY,
            max_kl=MAX_KL,
            seed=batch.state.number,
        )
    weight_C = np.bincount(decisions.context_N, minlength=len(categories))
    after = within_kl(policy, _kept_open(point, categories, step.policy, evidence), weight_C, MAX_KL)
    p_NA = probabilities(after)[decisions.context_N]
    metrics = {
        "loss": step.metrics["loss"],
        "kl": arm_kl(policy, after, weight_C),
        "clip_fraction": step.metrics.get("clip_low", 0.0) + step.metrics.get("clip_high", 0.0),
        "entropy": -float((p_NA * np.log(p_NA)).sum(axis=1).mean()),
        "early_stop": float(step.metrics["halvings"] > 0),
    }
    return _point_of(point, categories, after), metrics


def _kept_open(
    point: PointPolicy, categories: Sequence[str], policy: ArmPolicy, evidence: ArmEvidence
) -> ArmPolicy:
    """Return the policy with the share of each arm that is not shown worse, for new categories too."""
    stamps = [point.arms[arm] for arm in sorted(point.arms)]
    rows = evidence.least_shares((None, *categories), stamps)
    least_CA = np.array([[max(row[stamp], LEAST_SOFTMAX) for stamp in stamps] for row in rows])
    shared_A = raise_shares(policy.shared_A[None], least_CA[:1])[0]
    own_CA = raise_shares(policy.shared_A + policy.own_CA, least_CA[1:]) - shared_A
    return ArmPolicy(shared_A, own_CA, policy.floor)


def _point_of(point: PointPolicy, categories: Sequence[str], policy: ArmPolicy) -> PointPolicy:
    arms = sorted(point.arms)
    own = {
        category: dict(zip(arms, logits, strict=True))
        for category, logits in zip(categories, policy.own_CA.tolist(), strict=True)
    }
    return PointPolicy(
        arms=point.arms, shared=dict(zip(arms, policy.shared_A.tolist(), strict=True)), own=own
    )


def _of_rewards(batch: _Batch, judged: _Judged) -> dict[str, float]:
    """Return how well the critic knew the returns, and their mean reward."""
    rewards = [one.reward for one in batch.used]
    value_N, return_N = judged.value_N, judged.return_N
    found = {
        "value_loss": value_loss(value_N[:, None], value_N[:, None], return_N[:, None]).value,
        "mean_reward": sum(rewards) / len(rewards),
    }
    explained = explained_variance(value_N, return_N)
    return found if explained != explained else {**found, "explained_variance": explained}  # NaN: no spread


def _report(
    batch: _Batch,
    now: float,
    *,
    reason: str = "",
    after: SelectorState | None = None,
    metrics: Mapping[str, float] | None = None,
) -> LiveUpdate:
    before, ids = batch.state, tuple(one.id for one in batch.used)
    waits = reason == "zero_variance" and not batch.full
    probabilities_before = _table(before)
    return LiveUpdate(
        number=0,
        at=now,
        executed=not reason,
        reason=reason,
        algorithm=batch.learning.algorithm,
        strategy=batch.learning.strategy,
        selector_before=before.number,
        selector_after=(after or before).number,
        trajectories=len(batch.used),
        samples=sum(len(one.steps) for one in batch.used),
        metrics=metrics or {},
        probabilities_before=probabilities_before,
        probabilities_after=_table(after) if after else probabilities_before,
        left_out=dict(sorted(batch.left_out.items())),
        used=() if reason else ids,
        spent=tuple(sorted([*batch.out, *(() if waits else ids)])),
    )


def _table(state: SelectorState) -> dict[str, dict[str, Mapping[str, float]]]:
    """Return the probabilities by point, category, arm."""
    return {
        point: {category: state.probabilities(point, category) for category in state.categories}
        for point in state.points
    }
