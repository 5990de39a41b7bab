"""Kinds of scenarios, in many samples."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.samples import by_kinds_and_one_by_one


@given(seed=st.integers(0, 2**32 - 1), graded=st.booleans(), errors=st.booleans())
@settings(max_examples=40, deadline=None)
def test_kinds_of_scenarios_say_what_the_scenarios_one_by_one_say(
    seed: int, graded: bool, errors: bool
) -> None:
    for one, two in zip(*by_kinds_and_one_by_one(seed, graded, errors), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-10)
