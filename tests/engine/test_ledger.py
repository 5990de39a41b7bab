"""What attempts cost that are in no group."""

from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_frame, make_rollout

from pytest_tfgrpo.core.records import Phase, Rollout
from pytest_tfgrpo.engine import ledger
from pytest_tfgrpo.engine.ledger import Ledger

PHASE = Phase(epoch=1, mode="train", temperature=0.5, rollouts=2, scenarios=("a", "b"))


def opened(*resumed: Rollout) -> Ledger:
    writer = SimpleNamespace(abandoned=lambda rollout: rollout)
    job = SimpleNamespace(run_id="run1", resumed=SimpleNamespace(abandoned=resumed))
    context: Any = SimpleNamespace(writer=writer, job=job)
    return Ledger(context, (PHASE,))


def test_a_resumed_run_begins_with_what_it_abandoned_in_its_own_phases() -> None:
    own, later = make_rollout(0), make_rollout(0, epoch=2)
    assert opened(own, later).abandoned == [own]


def test_what_is_in_a_group_waits_no_more() -> None:
    found, rollouts = opened(), [make_rollout(n) for n in range(3)]
    for one in rollouts:
        found.pay(one)
    found.settle([*rollouts[:2], make_rollout(7)])
    assert [*found.paid] == [rollouts[2].rollout_id]


@pytest.mark.parametrize(
    ("used", "kept"),
    [
        ({"frames": (), "tokens": None, "cost_usd": None}, False),
        ({"frames": (make_frame(),)}, True),
    ],
)
def test_of_an_attempt_that_is_no_result_only_what_it_may_have_cost_is_kept(used: Any, kept: bool) -> None:
    found = opened()
    found.forget(make_rollout(0, None, **used))
    assert bool(found.abandoned) is kept


@pytest.mark.parametrize(
    ("frames", "kept"),
    [
        ((), False),
        ((make_frame(tokens=0, cost_usd=None), make_frame(tokens=None, cost_usd=0.0)), False),
        ((make_frame(tokens=0, cost_usd=None), make_frame(tokens=1, cost_usd=None)), True),
        ((make_frame(tokens=None, cost_usd=0.01),), True),
    ],
)
def test_an_attempt_that_the_end_of_the_run_cut_short_is_kept_where_it_is_known_to_have_cost(
    monkeypatch: pytest.MonkeyPatch, frames: Any, kept: bool
) -> None:
    monkeypatch.setattr(ledger, "rollout_of", lambda *_: make_rollout(0))
    found, slot = opened(), SimpleNamespace()
    found.cancel(slot, SimpleNamespace(frames=frames))  # type: ignore[arg-type]
    told = [(one.status, one.failure.code) for one in found.abandoned if one.failure is not None]
    assert told == ([("cancelled", "cancelled")] if kept else [])
