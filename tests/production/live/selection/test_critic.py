"""What the critic expects of a step before its arm is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.production.live.selection.critic import MEMORY, PRIOR, Critic, Visit

A, B = Visit("a", 0), Visit("b", 0)


def test_nothing_known_is_worth_0() -> None:
    assert Critic().value(A) == 0


def test_a_category_that_was_never_seen_is_worth_the_mean_of_its_place() -> None:
    critic = Critic().updated([(A, 0.5), (A, 0.7), (Visit("c", 0), 0.0), (Visit("a", 1), -0.75)])
    assert critic.value(B) == pytest.approx(0.4)
    assert critic.value(Visit("b", 1)) == pytest.approx(-0.75)


def test_few_returns_are_shrunk_towards_the_mean_of_the_place() -> None:
    critic = Critic().updated([(A, 1.0), *[(B, 0.0)] * 9])
    assert critic.value(A) == pytest.approx((1.0 + PRIOR * 0.1) / (1 + PRIOR))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
def test_a_value_lies_within_the_returns_that_were_seen(returns: list[float]) -> None:
    critic = Critic().updated((Visit("ab"[i % 2], 0), value) for i, value in enumerate(returns))
    for visit in (A, B, Visit("new", 0)):
        assert min(returns) - 1e-9 <= critic.value(visit) <= max(returns) + 1e-9


def test_it_follows_a_drift_and_an_update_leaves_the_critic_before_it_alone() -> None:
    before = Critic().updated([(A, 1.0)] * 500)
    after = before.updated([(A, 0.0)] * (2 * MEMORY))
    assert before.value(A) == pytest.approx(1.0)
    assert after.value(A) < 0.2
