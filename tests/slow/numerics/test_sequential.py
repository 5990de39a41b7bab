"""The confidence sequence of a finite population, over many populations."""

import numpy as np
import pytest
from support.samples import bounds, foreseen_and_found


def test_a_missing_value_says_nothing_of_the_mean_of_the_others() -> None:
    rng = np.random.default_rng(5)
    missed, runs = 0, 200
    for _ in range(runs):
        population: list[float | None] = [float(x) for x in rng.choice([-1, 0, 1], 40, p=[0.1, 0.3, 0.6])]
        population[:12] = [None] * 12
        known = [x for x in population if x is not None]
        order = [population[i] for i in rng.permutation(40)]
        mean = sum(known) / len(known)
        run = bounds(order, alpha_low=0.1, alpha_high=0.1)[:-1]
        missed += any(low > mean + 1e-9 or high < mean - 1e-9 for low, high in run)
    assert missed <= 0.2 * runs


@pytest.mark.parametrize("sizes", [(5,), (1, 2, 3, 10)])
def test_the_interval_foreseen_is_no_narrower_than_that_of_the_whole_population(
    sizes: tuple[int, ...],
) -> None:
    widths = [foreseen_and_found(run, sizes) for run in range(30)]
    assert sum(foreseen < 0.98 * found for foreseen, found in widths) <= 1
