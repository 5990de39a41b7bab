"""The interval over seeds and families, over many runs."""

import pytest
from support.samples import seeds_and_families

from pytest_tfgrpo.numerics.replication import two_way_interval
from pytest_tfgrpo.numerics.stats import mean_interval


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("between", [0.0, 0.1])
def test_it_holds_the_truth_where_the_interval_of_one_library_does_not(seeds: int, between: float) -> None:
    runs, held, alone = 200, 0, 0
    for run in range(runs):
        gains_SK, families_K = seeds_and_families(run, seeds, between)
        found, one = (
            two_way_interval(gains_SK, families_K),
            mean_interval(gains_SK[0], families_K, support=(-1, 1)),
        )
        held += (found.low or 1) <= 0.1 <= (found.high or -1)
        alone += (one.low or 1) <= 0.1 <= (one.high or -1)
    assert held / runs >= 0.92
    assert (alone / runs < 0.7) == (between > 0)
