"""Reach: what the report says of answers that the agent could read, and of agents that looked for them."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.core.records import Rollout, Run
from pytest_tfgrpo.core.report_blocks import ReachBlock, Report
from pytest_tfgrpo.core.text import line
from pytest_tfgrpo.harness.run.reach import UNCONFINED, why_in_reach

NAMED = 3
"""Rollouts that a warning names."""


def reach_report(run: Run) -> ReachBlock | None:
    """Return why answers were in reach and which rollouts gave a decoy; None where they were not."""
    why = why_in_reach(run)
    if not why:
        return None
    used = [(r.rollout_id, r.scenario_id, r.decoy) for r in _rollouts(run) if r.decoy is not None]
    return {
        "why": why,
        "decoys": [{"rollout": id_, "scenario": scenario, "where": where} for id_, scenario, where in used],
    }


def _rollouts(run: Run) -> Iterator[Rollout]:
    for result in run.phases:
        for group in result.with_dev:
            yield from group.rollouts
        yield from result.loose


def reach_warnings(block: ReachBlock | None) -> Iterator[str]:
    """Yield what to say of rollouts that gave a decoy."""
    used = block["decoys"] if block is not None else []
    if used:
        named = ", ".join(f"{one['rollout']} ({line(one['where'], 100)})" for one in used[:NAMED])
        more = f" and {len(used) - NAMED} more" if len(used) > NAMED else ""
        gave = "1 rollout gave" if len(used) == 1 else f"{len(used)} rollouts gave"
        yield (
            f"{gave} a wrong answer that only the run's decoy file contains: the agent looked for answers, "
            f"so do not trust its other scores either: {named}{more}"
        )


def in_reach(report: Report) -> str:
    """Return in words that answers were in reach; empty where they were not."""
    block = report.get("reach")
    if not block:
        return ""
    advice = "; tfgrpo_sandbox = bwrap hides them" if block["why"] == UNCONFINED else ""
    return f"the agent could read the scenarios and their answers, as {block['why']}{advice}"
