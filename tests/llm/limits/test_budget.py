import asyncio
from dataclasses import replace

import pytest
from support.builders import make_rollout

from pytest_tfgrpo.core.errors import BudgetError
from pytest_tfgrpo.core.records import ModelCall, Usage
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.llm.limits.queueing import take_ticket

pytestmark = pytest.mark.asyncio


async def test_without_limits_every_call_is_admitted() -> None:
    budget = Budget({}, {})
    assert all([await budget.admit() for _ in range(1000)])
    assert budget.warning is None


async def test_declared_maxima_of_calls_in_flight_are_reserved_and_the_next_call_waits_for_them() -> None:
    budget = Budget({"budget_usd": 1.0}, {"usd": 0.4})
    assert await budget.admit()
    assert await budget.admit()
    third = asyncio.create_task(budget.admit())
    await asyncio.sleep(0.01)
    assert not third.done()
    budget.release()
    budget.spend(make_rollout(cost_usd=0.1))
    assert await third
    assert budget.exhausted is None


async def test_a_call_that_does_not_fit_when_nothing_is_in_flight_exhausts_the_budget() -> None:
    budget = Budget({"budget_usd": 1.0}, {"usd": 0.4})
    for cost in (0.4, 0.3):
        assert await budget.admit()
        budget.release()
        budget.spend(make_rollout(cost_usd=cost))
    assert not await budget.admit()
    assert budget.exhausted == "budget_usd of 1 is used up (0.7 spent, and the next call may use 0.4)"


async def test_a_settled_call_costs_what_it_cost() -> None:
    budget = Budget({"budget_usd": 1.0}, {"usd": 0.4})
    for _ in range(7):
        assert await budget.admit()
        budget.release()
        budget.spend(make_rollout(cost_usd=0.1))
    assert not await budget.admit()


async def test_a_call_whose_cost_nobody_can_tell_counts_as_its_declared_maximum() -> None:
    budget = Budget({"budget_usd": 1.0, "budget_tokens": 100})
    bound = {"usd": 0.5, "tokens": 30.0}
    for _ in range(2):
        await budget.reserve(bound)
        budget.settle(bound, usd=None, tokens=5)
    with pytest.raises(BudgetError, match="budget_usd of 1 is used up"):
        await budget.reserve(bound)


async def test_without_declared_maxima_calls_stop_once_the_limit_is_reached_and_a_warning_says_so() -> None:
    budget = Budget({"budget_tokens": 10}, {"tokens": None})
    assert budget.warning is not None
    assert "exceed" in budget.warning
    assert await budget.admit()
    budget.spend(make_rollout(tokens=10))
    assert not await budget.admit()


async def test_time_is_a_budget_too() -> None:
    now = [0.0]
    budget = Budget({"budget_s": 5.0}, {}, clock=lambda: now[0])
    now[0] = 3.0
    budget.begin({})  # the run starts only now
    now[0] = 7.0
    assert await budget.admit()
    now[0] = 8.0
    assert not await budget.admit()
    assert budget.exhausted == "budget_s of 5 s is used up"


async def test_what_is_refused_once_stays_refused() -> None:
    budget = Budget({"budget_tokens": 10})
    with pytest.raises(BudgetError):
        await budget.reserve({"tokens": 11.0})
    with pytest.raises(BudgetError, match="budget_tokens of 10"):
        await budget.reserve({"tokens": 1.0})


async def test_many_waiting_calls_never_overrun_the_limit() -> None:
    budget, spent, most = Budget({"budget_tokens": 100}), 0, 0

    async def call() -> None:
        nonlocal spent, most
        bound = {"tokens": 20.0}
        try:
            await budget.reserve(bound)
        except BudgetError:
            return
        most += 1
        await asyncio.sleep(0)
        spent += 3
        budget.settle(bound, usd=None, tokens=3)

    await asyncio.gather(*(call() for _ in range(200)))
    assert spent <= 100
    assert most == 27, "the last call of at most 20 starts with 80 or less spent"


ONE = {"tokens": 60.0}
"""So much that a budget of 100 has room for one call at a time."""


async def hold(budget: Budget, place: int, served: list[int]) -> None:
    """Make one call in the turn of the rollout that began as number `place`."""
    take_ticket(place)
    await budget.reserve(ONE)
    served.append(place)
    await asyncio.sleep(0)
    budget.settle(ONE, usd=None, tokens=1)


async def test_who_waits_is_served_in_the_order_in_which_rollouts_began() -> None:
    budget, served = Budget({"budget_tokens": 100}), [0]
    await budget.reserve(ONE)
    waiting = [asyncio.create_task(hold(budget, place, served)) for place in (3, 1, 2, 1)]
    await asyncio.sleep(0)
    budget.settle(ONE, usd=None, tokens=1)
    newcomer = asyncio.create_task(hold(budget, 9, served))
    await asyncio.gather(newcomer, *waiting)
    assert served == [0, 1, 1, 2, 3, 9]


async def test_a_small_call_does_not_overtake_a_large_one_that_waits() -> None:
    budget, served = Budget({"budget_tokens": 100}), [0]
    await budget.reserve(ONE)
    large = asyncio.create_task(hold(budget, 1, served))
    await asyncio.sleep(0)
    take_ticket(2)
    small = asyncio.create_task(budget.reserve({"tokens": 1.0}))
    await asyncio.sleep(0.01)
    assert not small.done()
    budget.settle(ONE, usd=None, tokens=1)
    await asyncio.gather(large, small)


async def test_one_who_is_cancelled_while_it_waits_makes_way_for_the_next() -> None:
    budget, served = Budget({"budget_tokens": 100}), [0]
    await budget.reserve(ONE)
    first, second = (asyncio.create_task(hold(budget, place, served)) for place in (1, 2))
    await asyncio.sleep(0)
    budget.settle(ONE, usd=None, tokens=1)  # calls the first, who is gone before it comes
    first.cancel()
    await asyncio.wait_for(second, 100)
    assert served == [0, 2]


async def test_when_the_budget_is_used_up_all_who_wait_are_told() -> None:
    budget, served = Budget({"budget_tokens": 100}), [0]
    await budget.reserve(ONE)
    waiting = [asyncio.create_task(hold(budget, place, served)) for place in range(1, 6)]
    await asyncio.sleep(0)
    budget.settle(ONE, usd=None, tokens=50)
    ends = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 100)
    assert {type(end) for end in ends} == {BudgetError}
    assert served == [0]


async def test_what_an_interrupted_run_used_counts_and_an_unknown_cost_as_the_declared_maximum() -> None:
    budget = Budget({"budget_usd": 1.0, "budget_tokens": 100}, {"usd": 0.2, "tokens": 5.0})
    budget.spend_all(usd=0.3, tokens=40, unknown=2)
    assert budget.limits == {"usd": (pytest.approx(0.7), 1.0), "tokens": (40.0, 100.0)}
    call = ModelCall(
        key="k", purpose="learn", epoch=1, subject="", model="m", fingerprint="f", prompt="p",
        usage=Usage(prompt=7, completion=3), cost_usd=0.25,
    )  # fmt: skip
    budget.spend_call(call)
    budget.spend_call(replace(call, usage=None, cost_usd=None))
    assert budget.limits == {"usd": (pytest.approx(0.95), 1.0), "tokens": (50.0, 100.0)}


async def test_the_time_that_is_spent_is_among_the_limits_and_begins_with_the_run() -> None:
    now = [0.0]
    budget = Budget({"budget_s": 5.0}, clock=lambda: now[0])
    now[0] = 3.0
    assert budget.limits == {"s": (3.0, 5.0)}
    budget.begin({})
    now[0] = 4.0
    assert budget.limits == {"s": (1.0, 5.0)}


async def test_decimal_prices_reach_a_decimal_limit() -> None:
    budget = Budget({"budget_usd": 0.3}, {"usd": 0.1})
    for _ in range(3):  # their sum is a little above 0.3
        assert await budget.admit()
    for _ in range(3):
        budget.release()
        budget.spend(make_rollout(cost_usd=0.1))
    assert not await budget.admit()


async def test_a_warning_names_the_limits_that_nothing_declares() -> None:
    both = {"budget_usd": 1.0, "budget_tokens": 100}
    assert Budget(both, {"usd": 0.1, "tokens": 5.0}).warning is None
    assert (Budget(both, {"usd": 0.1}).warning or "").startswith("budget_tokens: the actor reports")
    assert (Budget(both).warning or "").startswith("budget_usd and budget_tokens: the actor reports")


async def test_what_is_free_fits_into_a_budget_of_nothing_until_there_is_a_bill() -> None:
    budget = Budget({"budget_usd": 0.0})
    for _ in range(3):
        await budget.reserve({"usd": None})
        budget.settle({"usd": None}, usd=0.0, tokens=5)
    with pytest.raises(BudgetError, match="budget_usd of 0 is used up"):
        await Budget({"budget_usd": 0.0}).reserve({"usd": 0.01})
    await budget.reserve({"usd": None})
    budget.settle({"usd": None}, usd=0.01, tokens=5)
    with pytest.raises(BudgetError, match=r"budget_usd of 0 is used up \(0.01 spent\)"):
        await budget.reserve({"usd": None})
