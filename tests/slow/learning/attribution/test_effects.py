"""Evidence: exposures of many lessons in, what is known of each out."""

from dataclasses import replace

import pytest
from support.builders import make_exposures

from pytest_tfgrpo.learning.attribution.effects import (
    lesson_effects,
)


def test_many_groups_are_told_apart() -> None:
    rows = [
        replace(row, epoch=n // 1000, scenario=f"s{n % 1000}")
        for n, row in enumerate(make_exposures({"a": 0.04, "b": 0.0}, groups=40_000))
    ]
    found = lesson_effects(rows)
    assert found["a"].verdict == "helpful"
    assert found["a"].effect == pytest.approx(0.04, abs=0.015)
    assert found["b"].verdict == "unclear"
