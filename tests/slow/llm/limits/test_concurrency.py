"""Concurrency that adapts, against simulated servers: no clock of this machine has a part in it."""

import pytest
from support.simulated_server import fixed, simulate

from pytest_tfgrpo.llm.limits.concurrency import (
    Concurrency,
)


@pytest.mark.parametrize("limit", [5, 20, 64, 200])
def test_it_loses_little_against_a_fixed_64(limit: int) -> None:
    auto = simulate(Concurrency(), lambda _: limit, calls=3000)
    assert auto.rate >= 0.95 * simulate(fixed(64), lambda _: limit, calls=3000).rate
