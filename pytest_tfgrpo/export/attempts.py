"""Attempts: the rollouts of one training group that can be exported, and why the others cannot."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Rollout, Score
from pytest_tfgrpo.core.scenarios import Prompt, Scenario
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.export.messages import RolloutMessages, completion_of
from pytest_tfgrpo.export.source import ExportSource
from pytest_tfgrpo.numerics.arrays import Reals, np
from pytest_tfgrpo.numerics.rl.advantages import grpo_advantage, rloo_advantage
from pytest_tfgrpo.privacy.redact import MARK, find_secret

AdvantageKind: TypeAlias = Literal["grpo", "dr_grpo", "rloo"]
FORMULAS: dict[AdvantageKind, str] = {
    "grpo": "(reward - mean of the group) / (deviation of the group, ddof 1, + 0.0001)",
    "dr_grpo": "reward - mean of the group",
    "rloo": "reward - mean of the others in the group",
}
"""What each convention computes: TRL's defaults."""
UNSCORED = "without a score"
OTHER_PROMPT = "prompt does not match its stamp"
SECRET_PROMPT = "secret in the prompt"
SECRET = "secret in what the agent said or read"
_GAP = "\n" * 8
ALL_EQUAL = "zero_spread"
ALONE = "singleton"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedRollout:
    """A scored rollout with its conversation."""

    rollout: Rollout
    score: Score
    reward: float
    advantage: float
    prompt: Prompt
    completion: RolloutMessages


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedGroup:
    """A training group with what of it can be exported."""

    group: Group
    scenario: Scenario
    rollouts: tuple[ExportedRollout, ...]
    mean: float
    """Of the rewards of all scored rollouts; NaN without one."""
    reason: str
    """Why all advantages are 0; else empty."""


def advantages_of(rewards: Sequence[float], kind: AdvantageKind) -> Reals:
    """Return the advantages within one group, [G]; NaN is unscored."""
    group = np.zeros(len(rewards), dtype=np.intp)
    if kind == "rloo":
        return rloo_advantage(rewards, group)
    return grpo_advantage(rewards, group, scale="group" if kind == "grpo" else "none")


def read_group(index: ExportSource, id_: str, kind: AdvantageKind, left_out: Counter[str]) -> ExportedGroup:
    """Return a group for export; what is left out of it is counted by reason in `left_out`.

    Advantages count every scored rollout of the group, also one that is then left out.
    """
    group = index.load(id_)
    scenario = index.scenarios[group.scenario_id]
    rewards = [math.nan if score.reward is None else score.reward for score in group.scores]
    known = [reward for reward in rewards if not math.isnan(reward)]
    prompts: dict[tuple[str, ...], Prompt | str] = {}
    rollouts = []
    for rollout, score, advantage in zip(
        group.rollouts, group.scores, advantages_of(rewards, kind), strict=True
    ):
        asked = rollout.prompt_stamp, *rollout.experiences
        if asked not in prompts:
            prompts[asked] = prompt_of(index, scenario, rollout)
        found = _exported(rollout, score, float(advantage), prompts[asked])
        if isinstance(found, str):
            left_out[found] += 1
        else:
            rollouts.append(found)
    flat = bool(known) and min(known) == max(known)
    return ExportedGroup(
        group=group,
        scenario=scenario,
        rollouts=tuple(rollouts),
        mean=sum(known) / len(known) if known else math.nan,
        reason=(ALL_EQUAL if len(known) > 1 else ALONE) if flat else "",
    )


def prompt_of(index: ExportSource, scenario: Scenario, rollout: Rollout) -> Prompt | str:
    """Return the prompt that a rollout got, or why it is not exported."""
    prompt = index.prompt(scenario, rollout)
    return OTHER_PROMPT if prompt is None else without_secret(prompt)


def without_secret(prompt: Prompt) -> Prompt | str:
    """Return a prompt, or why it is not exported."""
    return SECRET_PROMPT if _holds_secret(prompt.system, prompt.user) else prompt


def _exported(
    rollout: Rollout, score: Score, advantage: float, prompt: Prompt | str
) -> ExportedRollout | str:
    """Return a rollout as it is exported, or the reason why it is not."""
    if rollout.status not in ("ok", "failed"):
        return rollout.status
    if score.reward is None:
        return UNSCORED
    if isinstance(prompt, str):
        return prompt
    completion = completion_of(rollout)
    if _holds_secret(*texts_of(completion.messages)):
        return SECRET
    return ExportedRollout(
        rollout=rollout,
        score=score,
        reward=score.reward,
        advantage=advantage,
        prompt=prompt,
        completion=completion,
    )


def texts_of(messages: Sequence[Json]) -> Iterator[str]:
    """Yield the texts of messages: their contents, and the arguments of tools."""
    for message in messages:
        yield message["content"]
        for call in message["tool_calls"] or ():
            yield call["function"]["arguments"]


def _holds_secret(*texts: str) -> bool:
    """Return whether a text holds a secret, or did; no pattern reaches over the gap between two texts."""
    text = _GAP.join(texts)
    return MARK in text or find_secret(text) is not None
