"""Choices as lines of JSON, for programs that learn from logged bandit data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from pytest_tfgrpo.production.live.records import LiveRollout, LiveStatus

SCHEMA = "tfgrpo.live-choice/1"


def choice_lines(rollouts: Iterable[LiveRollout]) -> Iterator[str]:
    """Yield a line for each choice of each run that succeeded or failed, in the order of the runs.

    ``reward`` is the composite in [-1, 1], null where it is not known; ``score`` is the application's. In a
    choice with ``control`` the default arm was taken without a draw.
    """
    for rollout in rollouts:
        if rollout.status not in (LiveStatus.SUCCEEDED, LiveStatus.FAILED):
            continue
        for choice in rollout.choices:
            row = {
                "schema": SCHEMA,
                "rollout": rollout.id,
                "context": {"category": rollout.category, "point": choice.point, "place": choice.place},
                "arms": choice.arms,
                "probabilities": choice.probabilities,
                "arm": choice.arm,
                "propensity": choice.propensity,
                "reward": None if rollout.reward is None else rollout.reward.composite,
                "score": None if rollout.trace is None else rollout.trace.score,
                "selector": choice.selector,
                "control": choice.control,
            }
            yield json.dumps(row, ensure_ascii=True, allow_nan=False)
