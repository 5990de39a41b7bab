"""Simulated arenas of optimizers with planted gains: order, equals, power."""

from collections import Counter

from support.arena.known_effects import outcomes


def test_planted_optimizers_are_ordered_and_equal_ones_are_not_called_different() -> None:
    arenas, found = 200, Counter[str]()
    for seed in range(arenas):
        found.update(outcomes(seed))
    assert found["equal"] >= 0.95 * arenas
    assert found["wrong way"] == 0
    assert found["ordered"] >= 0.85 * arenas
    assert found["best"] >= 0.9 * arenas
    assert found["claimed 0.2"] >= 0.7 * found["pairs 0.2"]
    assert found["claimed 0.3"] >= 0.95 * found["pairs 0.3"]
