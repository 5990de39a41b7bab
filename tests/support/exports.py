"""Runs that exports are made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest_tfgrpo
from pytest_tfgrpo.core.records import Frame, Rollout
from pytest_tfgrpo.core.sampled import LogProbKind, Sampled
from support import ROOT
from support.builders import make_frame, make_scenario
from support.journals import group_events, make_training_group, write_run


def run_shipped(out: Path) -> Path:
    """Run shipped fixtures, and return the folder of the run."""
    found = pytest_tfgrpo.run(
        ROOT, ROOT / "fixtures/calendar.scenario.yaml", actor="offline", group_size=5, out=str(out)
    )
    assert found.run.status == "complete"
    assert found.folder is not None
    return found.folder


def write_run_of_rare_calls(folder: Path) -> None:
    """Write a run in which few rollouts call a tool and have log probabilities, some with token ids."""
    plain, calling = make_scenario("plain"), make_scenario("calling")
    padding = "word " * 200

    def telling(rollout: Rollout) -> Rollout:
        if rollout.scenario_id == "plain":
            return replace(rollout, frames=(), answer=f"{rollout.index} {padding}")
        raw, ids = rollout.epoch == 1, (7,) if rollout.epoch == 1 else None
        kind: LogProbKind = "raw" if raw else "processed"
        sampled = Sampled(kind=kind, logprobs=(-0.5,), token_ids=ids, temperature=0.7)
        spoken = Frame(kind="model", name="m", output=rollout.answer, sampled=sampled)
        return replace(rollout, frames=(replace(spoken, output=""), make_frame(), spoken))

    groups = [
        make_training_group([1.0, 0.0] * size, scenario, epoch=epoch, change=telling)
        for epoch in (1, 2)
        for scenario, size in ((plain, 12), (calling, 1))
    ]
    events = [event for group in groups for event in group_events(group)]
    write_run(folder, events, [plain, calling], epochs=2)
