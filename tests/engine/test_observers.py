"""What observers receive of a run that is read from its journal."""

from __future__ import annotations

from support.builders import make_rollout
from support.sweeps import make_run

from pytest_tfgrpo.core.records import PhaseResult, Rollout
from pytest_tfgrpo.engine.observers import Record, tell_again


def test_rollouts_without_a_group_are_passed_on_once_before_the_result_of_their_phase() -> None:
    run = make_run({"a": [1.0]}, {"a": [1.0]}, {"b": [1.0, 0.0]})
    epochs = [result.phase.epoch for result in run.phases]
    loose = [make_rollout(rollout_id=f"loose{epoch}", epoch=epoch) for epoch in epochs]
    told: list[Record] = []
    tell_again(run, loose, told.append, groups=False)
    order = [
        record.phase.epoch if isinstance(record, PhaseResult) else record.rollout_id
        for record in told
        if isinstance(record, PhaseResult | Rollout)
    ]
    assert len(epochs) > 2
    assert order == [one for epoch in epochs for one in (f"loose{epoch}", epoch)]
