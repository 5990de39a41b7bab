"""Groups of a run that are put away as its journal is read."""

from support.builders import make_rollout

from pytest_tfgrpo.runs.journal.settled_groups import SettledCost


def test_a_rollout_that_costs_nothing_is_not_of_unknown_cost() -> None:
    cost = SettledCost()
    cost.add(make_rollout(cost_usd=usd) for usd in (0.0, 0.25, None))
    assert cost == SettledCost(usd=0.25, tokens=15, unknown=1)
