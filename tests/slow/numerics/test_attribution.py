"""The effect of one lesson, over many samples."""

import math

import numpy as np
import pytest
from support.samples import cover, drawn_trials

from pytest_tfgrpo.numerics.attribution import estimate


@pytest.mark.parametrize("effect", [-0.2, 0.0, 0.15])
def test_known_effects_are_recovered_at_realistic_n(effect: float) -> None:
    found = [estimate(drawn_trials(seed, 200, effect), draws=600) for seed in range(200)]
    known = [e for e in found if e.effect is not None]
    assert len(known) > 180
    assert np.mean([e.effect for e in known]) == pytest.approx(effect, abs=0.02)
    assert cover(known, effect) >= 0.92


@pytest.mark.parametrize("base", [0.5, 0.95])
def test_nothing_is_claimed_of_null_lessons_more_often_than_the_level(base: float) -> None:
    found = [estimate(drawn_trials(seed, 200, base=base), draws=600) for seed in range(300)]
    claims = [e.p < 0.05 for e in found if e.effect is not None]
    assert np.mean(claims) <= 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / len(claims))
