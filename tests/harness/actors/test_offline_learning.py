"""The whole loop on the shipped fixtures: what the offline actor learns, it learns from the prompt's text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from support import ROOT


@pytest.fixture(scope="module")
def gains() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import learning_gain

        yield learning_gain
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_a_run_gains_and_the_gain_vanishes_without_its_own_experiences(gains: ModuleType) -> None:
    final, removed, swapped = gains.measure(gains.Bench(ROOT / "fixtures"), seed=0)
    assert 0.15 <= final.before <= 0.5
    assert final.difference.mean >= 0.2
    assert final.difference.low > 0
    assert final.after >= 0.85
    assert abs(removed) <= 0.03
    assert max(map(abs, swapped)) <= 0.03
    assert len(swapped) == 5
