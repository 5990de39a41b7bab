"""Draws: scenarios in an order that a seed decides, one of each family before a second one of any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.stamp import seed_of
from pytest_tfgrpo.suite.families import family_of


def drawn(scenarios: Sequence[Scenario], seed: int, purpose: str) -> list[Scenario]:
    """Return `scenarios` in an order that depends on the seed, the purpose and what they are alone."""
    order = sorted(scenarios, key=lambda s: (seed_of(seed, purpose, s.seed_stamp), s.id))
    return families_first(order)


def families_first(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return `scenarios` with the first of each family before the second of any, else in their order."""
    met: Counter[str] = Counter()
    rounds: list[int] = []
    for scenario in scenarios:
        family = family_of(scenario) or scenario.id
        rounds.append(met[family])
        met[family] += 1
    return [scenario for _, scenario in sorted(zip(rounds, scenarios, strict=True), key=lambda pair: pair[0])]
