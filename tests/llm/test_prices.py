"""What tokens cost."""

import pytest

from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.llm.prices import Price, PriceTable

TABLE = PriceTable(
    prices={
        "m": Price(input=2.0, output=8.0, cached_input=0.5),
        "m@cheap": Price(input=1.0, output=1.0),
        "nothing": Price(input=0.0, output=0.0),
    }
)


def test_cached_tokens_have_their_own_price_and_reasoning_is_paid_as_completion() -> None:
    usage = Usage(prompt=1_000_000, completion=500_000, reasoning=400_000, cached=600_000)
    price = Price(input=2.0, output=8.0, cached_input=0.5)
    assert price.cost(usage) == pytest.approx(0.4 * 2 + 0.6 * 0.5 + 0.5 * 8)


def test_without_a_price_of_their_own_cached_tokens_cost_as_others_do() -> None:
    usage = Usage(prompt=1_000_000, completion=0, cached=10)
    assert Price(input=1.0, output=1.0).cost(usage) == pytest.approx(1.0)


def test_an_unknown_price_is_none_and_a_price_of_nothing_is_one() -> None:
    assert TABLE.find("new") is None
    free = TABLE.find("nothing")
    assert free is not None
    assert free.cost(Usage(prompt=1, completion=1)) == 0.0


def test_a_price_for_an_endpoint_goes_before_that_of_the_model() -> None:
    assert TABLE.find("m", "cheap") == Price(input=1.0, output=1.0)
    assert TABLE.find("m", "elsewhere") == TABLE.find("m") == Price(input=2.0, output=8.0, cached_input=0.5)


def test_a_bound_counts_on_the_dearest_tokens() -> None:
    assert Price(input=2.0, cached_input=0.5, output=8.0).most(1_000_000, 100_000) == pytest.approx(2.8)
    assert Price(input=1.0, cached_input=3.0, output=0.0).most(1_000_000, 0) == pytest.approx(3.0)
