"""Rows of the three formats, each made from one training group.

Texts and lists that do not apply are null or empty by column, never of another type: loaders guess the type
of a column from the beginning of a file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.scenarios import Prompt, Scenario
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.export.attempts import FORMULAS, AdvantageKind, ExportedGroup, ExportedRollout
from pytest_tfgrpo.export.messages import prompt_messages
from pytest_tfgrpo.export.source import ExportSource

ExportFormat: TypeAlias = Literal["rollouts", "preference", "prompt"]
ExportRow: TypeAlias = dict[str, Json]
SCHEMA = "tfgrpo.rollouts/1"
NO_ANSWER = "without an answer"
MAX_PAIRS = 4
"""Most pairs of a group."""


def rollout_rows(index: ExportSource, group: ExportedGroup, kind: AdvantageKind) -> Iterator[ExportRow]:
    """Yield a row for each rollout, as the schema ``tfgrpo.rollouts/1`` has them."""
    for one in group.rollouts:
        rollout, score = one.rollout, one.score
        drawn = rollout.mode != "evidence"  # attempts of production have neither
        asked = prompt_messages(one.prompt)
        yield {
            "schema": SCHEMA,
            "run_id": rollout.run_id,
            "group_id": rollout.group_id,
            "rollout_id": rollout.rollout_id,
            "scenario_id": rollout.scenario_id,
            "domain": group.scenario.domain,
            "epoch": rollout.epoch,
            "index": rollout.index,
            "actor": index.actor,
            "seed": rollout.seed if drawn else None,
            "temperature": rollout.temperature if drawn else None,
            "status": rollout.status,
            "failure": rollout.failure.code if rollout.failure is not None else "",
            "prompt_stamp": rollout.prompt_stamp,
            "lessons": len(rollout.experiences),
            "messages": [*asked, *one.completion.messages],
            "prompt_messages": len(asked),
            "reward": one.reward,
            "gt_score": score.gt_score,
            "advantage": one.advantage,
            "advantage_kind": kind,
            "advantage_formula": FORMULAS[kind],
            "advantage_reason": group.reason,
            "run_advantage": score.advantage,
            "run_advantage_reason": score.advantage_reason,
            "sampled": _sampled(one, len(asked)),
            "sampled_reason": one.completion.reason,
        }


def _sampled(one: ExportedRollout, start: int) -> list[Json] | None:
    """Return the log-probabilities of each message of the assistant, which is named by its place."""
    if one.completion.sampled is None:
        return None
    spoken = [n for n, m in enumerate(one.completion.messages, start) if m["role"] == "assistant"]
    return [
        {
            "message": n,
            "kind": sampled.kind,
            "temperature": sampled.temperature,
            "logprobs": sampled.logprobs,
            "token_ids": sampled.token_ids,
        }
        for n, sampled in zip(spoken, one.completion.sampled, strict=True)
    ]


def preference_rows(
    index: ExportSource, group: ExportedGroup, bare: bool, left_out: Counter[str]
) -> Iterator[ExportRow]:
    """Yield pairs of a winner above and a loser below the mean of the group, the best with the worst first.

    Equal conversations count once; one that both won and lost is in no pair. Rollouts without an answer are
    counted in `left_out`.
    """
    spoken = [one for one in group.rollouts if one.rollout.answer]
    left_out[NO_ANSWER] += len(group.rollouts) - len(spoken)
    above = _distinct(sorted((o for o in spoken if o.reward > group.mean), key=lambda o: -o.reward))
    below = _distinct(sorted((o for o in spoken if o.reward < group.mean), key=lambda o: o.reward))
    winners = [one for said, one in above.items() if said not in below]
    losers = [one for said, one in below.items() if said not in above]
    if not winners or not losers:
        return
    for n in range(min(MAX_PAIRS, max(len(winners), len(losers)))):
        won, lost = winners[n % len(winners)], losers[n % len(losers)]
        yield {
            "prompt": _plain(index.bare_prompt(group.scenario) if bare else won.prompt),
            "chosen": won.completion.messages,
            "rejected": lost.completion.messages,
            "chosen_reward": won.reward,
            "rejected_reward": lost.reward,
            "chosen_id": won.rollout.rollout_id,
            "rejected_id": lost.rollout.rollout_id,
            "scenario_id": group.scenario.id,
            "domain": group.scenario.domain,
        }


def _distinct(rollouts: Sequence[ExportedRollout]) -> dict[str, ExportedRollout]:
    """Return rollouts by their conversation, the first of equal ones."""
    found: dict[str, ExportedRollout] = {}
    for one in rollouts:
        found.setdefault(json.dumps(one.completion.messages), one)
    return found


def _plain(prompt: Prompt) -> list[Json]:
    return [{"role": m["role"], "content": m["content"]} for m in prompt_messages(prompt)]


def prompt_row(index: ExportSource, scenario: Scenario, prompt: Prompt, n: int) -> ExportRow:
    """Return row `n`: a prompt alone, with the checks that score an answer, as JSON text."""
    style = "rule" if scenario.checks else "model"
    return {
        "data_source": index.task_id,
        "prompt": _plain(prompt),
        "ability": scenario.domain,
        "reward_model": {"style": style, "ground_truth": json.dumps(to_wire(scenario.checks))},
        "extra_info": {
            "index": n,
            "split": scenario.split,
            "scenario_id": scenario.id,
            "scenario_stamp": scenario.stamp,
            "rubric": json.dumps(to_wire(scenario.rubric)),
            "run_id": index.run_id,
        },
    }
