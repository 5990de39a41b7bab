"""The block `reach`: answers that the agent could read, and agents that looked for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from pytest_tfgrpo.core.records import Rollout, Run
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.report.blocks.block import BlockSources, ReportBlock
from pytest_tfgrpo.runs.reach import UNCONFINED, why_in_reach

NAMED = 3
"""Rollouts that a warning names."""


class DecoyUse(TypedDict):
    """A rollout with the answer of a decoy, and where that stands."""

    rollout: str
    scenario: str
    where: str


class ReachBlock(TypedDict):
    """Why answers were in reach, and which rollouts returned a decoy."""

    why: str
    decoys: list[DecoyUse]


def _value(at: BlockSources) -> ReachBlock | None:
    """Return what was in reach; None where no answer was."""
    why = why_in_reach(at.run)
    if not why:
        return None
    decoys: list[DecoyUse] = [
        {"rollout": r.rollout_id, "scenario": r.scenario_id, "where": r.decoy}
        for r in _rollouts(at.run)
        if r.decoy is not None
    ]
    return {"why": why, "decoys": decoys}


def _text(found: ReachBlock) -> str:
    advice = "; tfgrpo_sandbox = bwrap hides them" if found["why"] == UNCONFINED else ""
    return f"the agent could read the scenarios and their answers, as {found['why']}{advice}"


def _warnings(found: ReachBlock) -> Iterator[str]:
    """Yield what to say of rollouts with a decoy."""
    used = found["decoys"]
    if used:
        named = ", ".join(f"{one['rollout']} ({line(one['where'], 100)})" for one in used[:NAMED])
        more = f" and {len(used) - NAMED} more" if len(used) > NAMED else ""
        gave = "1 rollout returned" if len(used) == 1 else f"{len(used)} rollouts returned"
        yield (
            f"{gave} a wrong answer that only the run's decoy file contains: the agent looked for answers, "
            f"so do not trust its other scores either: {named}{more}"
        )


def _rollouts(run: Run) -> Iterator[Rollout]:
    for result in run.phases:
        for group in result.with_dev:
            yield from group.rollouts
        yield from result.loose


REACH = ReportBlock("reach", _value, _text, warnings=_warnings)
