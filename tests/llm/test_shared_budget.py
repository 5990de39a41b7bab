"""A budget that several runs share."""

import asyncio

import pytest

from pytest_tfgrpo.core.errors import BudgetError
from pytest_tfgrpo.llm.limits.budget import Budget


def test_what_one_spends_both_have_spent() -> None:
    whole = Budget({"budget_tokens": 100})
    one, other = whole.share(), whole.share()

    async def spend() -> None:
        for budget in (one, other, one, other):
            await budget.reserve({"tokens": 25})
            budget.settle({"tokens": 25}, usd=None, tokens=25)
        with pytest.raises(BudgetError, match="budget_tokens of 100 is used up"):
            await other.reserve({"tokens": 25})

    asyncio.run(spend())
    assert one.limits == other.limits == {"tokens": (100, 100)}
    assert one.exhausted == other.exhausted
    assert one.exhausted


def test_each_run_has_its_own_maximum_per_rollout() -> None:
    whole = Budget({"budget_tokens": 100})
    cheap, dear = whole.share(), whole.share()
    cheap.begin({"tokens": 10})
    dear.begin({"tokens": 80})

    async def admit() -> list[bool]:
        first = await cheap.admit(), await dear.admit()
        waits = asyncio.create_task(dear.admit())
        await asyncio.sleep(0)
        assert not waits.done()
        cheap.release()
        dear.release()
        return [*first, await waits]

    assert asyncio.run(admit()) == [True, True, True]
