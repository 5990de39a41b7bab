"""Groups of a run that are put away as its journal is read."""

from dataclasses import replace

import pytest
from support.builders import make_group, make_rollout

from pytest_tfgrpo.core.records import Group, Mode, Phase
from pytest_tfgrpo.runs.journal.settled_groups import SettledCost, SettledGroups, UnsettledError
from pytest_tfgrpo.runs.journal.stored_groups import GroupStore


def test_a_rollout_that_costs_nothing_is_not_of_unknown_cost() -> None:
    cost = SettledCost()
    cost.add(make_rollout(cost_usd=usd) for usd in (0.0, 0.25, None))
    assert cost == SettledCost(usd=0.25, tokens=15, unknown=1)


def group(scenario_id: str, mode: Mode, epoch: int = 1) -> Group:
    id_ = f"run1.e{epoch}.{scenario_id}" + ".dev" * (mode == "dev")
    return make_group([1.0, 0.0], scenario_id=scenario_id, mode=mode, epoch=epoch, group_id=id_)


@pytest.mark.parametrize(
    ("resumed", "again", "mode", "takes"),
    [
        *(
            (False, again, mode, True)
            for again in (False, True)
            for mode in ("train", "dev", "eval", "baseline")
        ),
        *((True, True, mode, False) for mode in ("train", "dev", "eval", "baseline")),
        (True, False, "train", True),
        (True, False, "dev", True),
        (True, False, "eval", False),
        (True, False, "baseline", False),
    ],
)
def test_a_resumed_run_goes_through_its_sweeps_once_more(
    resumed: bool, again: bool, mode: Mode, takes: bool
) -> None:
    assert SettledGroups(resumed=resumed).takes(group("a", mode), again=again) is takes


def test_groups_are_found_by_phase_in_the_order_of_its_scenarios() -> None:
    store = GroupStore()
    settled = SettledGroups(store)
    assert settled.store is store
    rows = {
        name: group(name[0], mode, epoch)
        for name, mode, epoch in (
            ("b", "train", 1),
            ("a", "train", 1),
            ("d2", "dev", 1),
            ("c1", "dev", 1),
            ("a2", "train", 2),
        )
    }
    for one in rows.values():
        settled.add(one)
    phase = Phase(epoch=1, mode="train", temperature=0.5, rollouts=2, scenarios=("a", "x", "b", "d"))
    assert tuple(settled.of(phase)) == (rows["a"], rows["b"])
    assert settled.dev(phase) == (rows["c1"], rows["d2"])
    later = replace(phase, epoch=3)
    assert (tuple(settled.of(later)), settled.dev(later)) == ((), ())
    assert [*settled.all()] == [*rows.values()]
    ids = [one.group_id for one in rows.values()]
    assert [*settled.ids] == ids
    assert [*settled.places([ids[1], "unknown"])] == ids[1:2]
    assert (ids[0] in settled, "unknown" in settled) == (True, False)
    settled.require_open("unknown")
    with pytest.raises(UnsettledError, match=ids[0]):
        settled.add(rows["b"])
