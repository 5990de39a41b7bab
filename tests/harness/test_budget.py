from __future__ import annotations

from builders import make_rollout

from pytest_tfgrpo.harness.budget import Budget


def test_without_limits_every_call_is_admitted() -> None:
    budget = Budget({}, {})
    assert all(budget.admit() for _ in range(1000))
    assert budget.warning is None


def test_declared_maxima_of_calls_in_flight_are_reserved() -> None:
    budget = Budget({"budget_usd": 1.0}, {"usd": 0.4})
    assert budget.admit()
    assert budget.admit()
    assert not budget.admit()
    assert budget.exhausted is not None
    assert "budget_usd" in budget.exhausted


def test_a_settled_call_costs_what_it_cost() -> None:
    budget = Budget({"budget_usd": 1.0}, {"usd": 0.4})
    for _ in range(7):
        assert budget.admit()
        budget.settle()
        budget.spend(make_rollout(cost_usd=0.1))
    assert not budget.admit()


def test_without_declared_maxima_calls_stop_once_the_limit_is_reached_and_a_warning_says_so() -> None:
    budget = Budget({"budget_tokens": 10}, {"tokens": None})
    assert budget.warning is not None
    assert "overshot" in budget.warning
    assert budget.admit()
    budget.spend(make_rollout(tokens=10))
    assert not budget.admit()


def test_time_is_a_budget_too() -> None:
    now = [0.0]
    budget = Budget({"budget_s": 5.0}, {}, clock=lambda: now[0])
    assert budget.admit()
    now[0] = 5.0
    assert not budget.admit()
    assert budget.exhausted == "budget_s of 5 s is used up"
