"""A bill in words: sums by purpose, unknown costs, budgets, where prices are from."""

from typing import Any

from pytest_tfgrpo.report import cost


def bill(**changes: Any) -> Any:
    sums = {"calls": 2, "failed": 0, "unknown": 0, "tokens": 10, "usd": 0.5}
    epoch = {"rollouts": sums, "judge": {**sums, "calls": 1, "usd": 0.25, "unknown": 1}}
    empty = {**sums, "calls": 0, "usd": None, "tokens": 0}
    return {
        **{**sums, "calls": 6, "usd": 1.5, "unknown": 2},
        "epochs": [epoch, {**epoch, "learning": empty}],
        "models": [],
        "solved": None,
        "lesson": None,
        "budget": None,
        **changes,
    }


def test_sums_by_purpose_are_over_all_epochs_and_without_what_made_no_call() -> None:
    found = dict(cost.by_purpose(bill()))
    assert list(found) == ["rollouts", "judge"]
    assert found["judge"] == {"calls": 2, "failed": 0, "unknown": 2, "tokens": 20, "usd": 0.5}
    assert (cost.spent(found["rollouts"]), cost.spent(found["judge"])) == ("$1.00", "$0.50+")
    unknown: Any = {"calls": 1, "failed": 0, "unknown": 1, "tokens": 0, "usd": None}
    assert cost.spent(unknown) == "?"


def test_a_bill_has_a_total_where_there_are_several_purposes() -> None:
    lines = cost.cost_lines(bill(), 80)
    assert [text.split()[0] for text in lines[:4] if text.strip("- ")][-1] == "total"
    alone = bill(epochs=[{"rollouts": {"calls": 1, "failed": 0, "unknown": 0, "tokens": 1, "usd": 1.5}}])
    assert not any(text.startswith("total") for text in cost.cost_lines(alone, 80))
    free = bill(usd=0.0, unknown=0)
    assert cost.cost_lines(free, 80) == []
    named = {"model": "m", "calls": 2, "unknown": 1, "usd": None, "usage": None}
    assert cost.is_paid(bill(usd=None, models=[named]))
    assert not cost.is_paid(bill(usd=None, models=[]))


def test_calls_of_unknown_cost_are_counted_by_model_and_the_rest_as_no_calls() -> None:
    named = [
        {"model": m, "calls": 9, "unknown": n, "usd": 1.0, "usage": None} for m, n in (("a", 2), ("b", 0))
    ]
    assert list(cost._unknown(bill(unknown=5, models=named))) == [
        "calls without a known cost: 5 (a 2, rollouts that report no model call 3); sums marked + "
        "leave them out"
    ]
    assert list(cost._unknown(bill(unknown=2, models=named))) == [
        "calls without a known cost: 2 (a 2); sums marked + leave them out"
    ]
    assert "report no model call" not in next(cost._unknown(bill(unknown=1, models=named)))
    assert list(cost._unknown(bill(unknown=0, models=named))) == []


def test_what_a_solved_scenario_and_a_lesson_cost() -> None:
    solved = {"scenarios": 2.5, "usd_each": 0.5, "gained": 1.256, "usd_each_gained": 2.0}
    lesson = {"usd_each": 0.1, "lessons": 3}
    assert list(cost._each(bill(solved=solved, lesson=lesson))) == [
        "per solved scenario $0.50 (2.5 in the final sweep); per scenario gained $2.00 "
        "(1.26 more than before, at the cost of the whole run)",
        "per lesson $0.10 (3 learned)",
    ]
    for gained in (None, 0.0, -1.0):
        assert "gained" not in next(cost._each(bill(solved={**solved, "gained": gained})))
    assert list(cost._each(bill(solved={**solved, "scenarios": 0}))) == []


def test_what_is_used_and_left_of_each_budget() -> None:
    budget = {
        "usd": {"used": 1.0, "limit": 2.0, "left": 1.0, "over": 0},
        "tokens": {"used": 30, "limit": 20, "left": 0, "over": 10},
    }
    assert list(cost.budget(bill(budget=budget))) == [
        "budget_usd  at least $1.00 of $2.00 used, $1.00 left",
        "budget_tokens  30 of 20 used, 10 over",
    ]
    assert next(cost.budget(bill(budget=budget, unknown=0))).startswith("budget_usd  $1.00 of")


def test_where_prices_are_from() -> None:
    rows = [{"table": "t1", "model": "a"}, {"table": "t2", "model": "b"}, {"table": "t1", "model": "c"}]
    assert list(cost._tables(bill(prices=rows))) == ["prices a, c of t1; b of t2"]
    assert list(cost._tables(bill(prices=rows[::2]))) == ["prices of t1"]
    assert list(cost._tables(bill())) == []
