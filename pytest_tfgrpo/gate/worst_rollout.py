"""The rollout that a metric found worst, to say why a gate failed."""

from __future__ import annotations

from pytest_tfgrpo.core.records import PhaseResult
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.metrics.values import Criteria, column, evidence_of, scale_of

REASON = 160
"""Characters of what a rewarder says."""


def worst_rollout(sweep: PhaseResult | None, metric: str, criteria: Criteria) -> str:
    """Return which rollout of a sweep has the worst score of a metric, and what its rewarder says of it."""
    groups = sweep.groups if sweep is not None else ()
    scale = scale_of(groups, metric)
    scored = [
        (value, rollout, score)
        for group in groups
        for value, rollout, score in zip(
            column(group, metric, criteria, scale), group.rollouts, group.scores, strict=True
        )
        if value is not None
    ]
    if not scored:
        return ""
    value, rollout, score = min(scored, key=lambda one: scale.share(one[0]))
    why = evidence_of(rollout, score, metric)
    told = f", {line(why, REASON)}" if why else ""
    worst = "lowest" if scale.better == "higher" else "highest"
    return f"{worst}: {value:.3f} by r{rollout.index} of {line(rollout.scenario_id, 80)}{told}"
