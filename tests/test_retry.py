"""One set of statuses and one back-off for every client."""

import pytest

from pytest_tfgrpo.retry import BUSY, FIRST_S, MODEL, MOST_S, NOT_ITS_FAULT, OTLP, backoff_s, may_pass

STATUSES = range(100, 600)


def test_the_statuses_that_pass_are_those_of_the_specifications() -> None:
    assert [s for s in STATUSES if may_pass(s) and s < 500] == [408, 425, 429]
    assert all(may_pass(status) for status in range(500, 600))
    assert [s for s in STATUSES if may_pass(s, MODEL) and not may_pass(s)] == [409]
    assert sorted(OTLP) == [429, 502, 503, 504]
    assert sorted(NOT_ITS_FAULT) == [408, 425, 429, 502, 503, 504]
    assert sorted(BUSY) == [429, 503, 529]
    assert all(map(may_pass, BUSY | OTLP | NOT_ITS_FAULT))


@pytest.mark.parametrize("before", [0, 1, 5, 6, 10**6])
def test_a_wait_is_twice_the_one_before_up_to_the_longest(before: int) -> None:
    assert (FIRST_S, MOST_S) == (0.5, 30.0)
    assert backoff_s(before) == min(MOST_S, FIRST_S * 2**before if before < 20 else MOST_S)
    assert backoff_s(before + 1, 0.25, 2.0) == min(2.0, 2 * backoff_s(before, 0.25, 2.0))
