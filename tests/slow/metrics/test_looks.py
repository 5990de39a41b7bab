"""Looks: variants that an eval split has seen, and what they leave of a claim."""

import random

from pytest_tfgrpo.metrics.comparison import Tally, compare
from pytest_tfgrpo.metrics.significance import gain_claim


def test_the_best_of_many_variants_that_gain_nothing_passes_for_better_in_at_most_one_of_twenty() -> None:
    """Simulated: 200 times the best of 20 variants without an effect, on 30 scenarios of one split."""
    variants, rng = 20, random.Random(20)

    def rows(values: list[float]) -> dict[str, Tally]:
        return {
            f"s{n}": Tally(stamp="x", n=5, sum=5 * x, sum_sq=5 * x, errors=0) for n, x in enumerate(values)
        }

    found = {1: 0, variants: 0}
    for _ in range(200):
        chances = [rng.random() for _ in range(30)]

        def sweep(of: list[float] = chances) -> list[float]:
            return [sum(rng.random() < p for _ in range(5)) / 5 for p in of]

        before, best = sweep(), max((sweep() for _ in range(variants)), key=sum)
        compared = compare(rows(before), rows(best))
        for k in found:
            found[k] += gain_claim(compared, compared, k, 0.0)["side"] == "better"
    assert found[1] > 0.08 * 200  # at 0.05 it would pass far too often
    assert found[variants] <= 0.05 * 200
