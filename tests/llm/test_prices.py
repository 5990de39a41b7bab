"""What tokens cost, and the packaged prices."""

import re
from pathlib import Path

import pytest

from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.llm.endpoints import Batching
from pytest_tfgrpo.llm.prices import LongPrompt, Price, PriceTable
from pytest_tfgrpo.suite.models_file import load_models

TABLE = PriceTable(
    prices={
        "m": Price(input=2.0, output=8.0, cached_input=0.5),
        "m@cheap": Price(input=1.0, output=1.0),
        "nothing": Price(input=0.0, output=0.0),
    }
)
PACKAGED = load_models(None).prices
LONG = Price(input=2.0, output=8.0, above=LongPrompt(prompt=1000, price=Price(input=4.0, output=12.0)))


def test_cached_tokens_have_their_own_price_and_reasoning_is_paid_as_completion() -> None:
    usage = Usage(prompt=1_000_000, completion=500_000, reasoning=400_000, cached=600_000)
    price = Price(input=2.0, output=8.0, cached_input=0.5)
    assert price.cost(usage) == pytest.approx(0.4 * 2 + 0.6 * 0.5 + 0.5 * 8)


def test_without_a_price_of_their_own_cached_tokens_cost_as_others_do() -> None:
    usage = Usage(prompt=1_000_000, completion=0, cached=10)
    assert Price(input=1.0, output=1.0).cost(usage) == pytest.approx(1.0)


def test_a_share_of_a_price_is_one_of_all_its_parts() -> None:
    half = LONG.times(0.5)
    assert half == Price(
        input=1.0, output=4.0, above=LongPrompt(prompt=1000, price=Price(input=2.0, output=6.0))
    )
    usage = Usage(prompt=100, completion=50, cached=70)
    price = Price(input=2.0, output=8.0, cached_input=0.5)
    assert price.times(0.25).cost(usage) == pytest.approx(price.cost(usage) / 4)


def test_an_unknown_price_is_none_and_a_price_of_nothing_is_one() -> None:
    assert TABLE.own("new", "") is None
    free = TABLE.own("nothing", "")
    assert free is not None
    assert free.cost(Usage(prompt=1, completion=1)) == 0.0


def test_a_price_for_an_endpoint_goes_before_that_of_the_model() -> None:
    assert TABLE.own("m", "cheap") == Price(input=1.0, output=1.0)
    assert TABLE.own("m", "elsewhere") == Price(input=2.0, output=8.0, cached_input=0.5)


def test_a_bound_counts_on_the_dearest_tokens() -> None:
    assert Price(input=2.0, cached_input=0.5, output=8.0).most(1_000_000, 100_000) == pytest.approx(2.8)
    assert Price(input=1.0, cached_input=3.0, output=0.0).most(1_000_000, 0) == pytest.approx(3.0)


def test_the_packaged_prices_are_dated_and_say_where_to_check_them() -> None:
    assert re.fullmatch(r"20\d\d-\d\d", PACKAGED.packaged["gpt-4o"].table.rpartition(" ")[2])
    for model, price in PACKAGED.packaged.items():
        assert price.source, model
        assert 0 < price.input <= price.output <= 1000, model
        assert price.cached_input is None or 0 < price.cached_input < price.input, model


def test_long_prompts_are_never_cheaper_than_short_ones() -> None:
    tiered = {model: price for model, price in PACKAGED.packaged.items() if price.above is not None}
    assert "gemini-2.5-pro" in tiered
    for model, price in tiered.items():
        assert price.above is not None
        assert price.above.price.input > price.input, model
        assert price.above.price.output > price.output, model
        assert (price.above.price.cached_input is None) is (price.cached_input is None), model


def test_a_dated_variant_is_listed_by_itself_and_no_name_is_guessed() -> None:
    assert PACKAGED.packaged.get("gpt-4o-2024-08-06") == PACKAGED.packaged.get("gpt-4o")
    assert PACKAGED.packaged.get("gpt-4o-2024-05-13") is None
    assert PACKAGED.packaged.get("gpt-4o-") is None
    assert PACKAGED.packaged.get("GPT-4o") is None
    assert not [model for model in PACKAGED.packaged if model.endswith("-latest")]


def test_all_tokens_of_a_call_with_a_long_prompt_cost_more() -> None:
    assert LONG.cost(Usage(prompt=1000, completion=100)) == pytest.approx((1000 * 2 + 100 * 8) / 1e6)
    assert LONG.cost(Usage(prompt=1001, completion=100)) == pytest.approx((1001 * 4 + 100 * 12) / 1e6)
    assert LONG.most(1001, 100) == pytest.approx((1001 * 4 + 100 * 12) / 1e6)
    assert LONG.most(10, 1) == pytest.approx((10 * 2 + 8) / 1e6)


def test_a_bound_of_a_long_prompt_holds_for_a_short_one_too() -> None:
    odd = Price(input=2.0, output=8.0, above=LongPrompt(prompt=10, price=Price(input=1.0, output=1.0)))
    assert odd.most(20, 10) == pytest.approx((20 * 2 + 10 * 8) / 1e6)


def test_ones_own_prices_replace_packaged_ones_whole(tmp_path: Path) -> None:
    file = tmp_path / "models.yaml"
    file.write_text("prices:\n  gpt-4o: {input: 1, output: 2, above: {prompt: 10, input: 3, output: 4}}\n")
    price = load_models(file).prices.own("gpt-4o", "")
    expected = Price(input=1, output=2, above=LongPrompt(prompt=10, price=Price(input=3, output=4)))
    assert price == expected


@pytest.mark.parametrize(("prompt", "usd"), [(1000, 0.0028), (1001, 0.005204)])
def test_the_most_that_a_call_can_cost_is_that_of_a_long_prompt_beyond_the_threshold(
    prompt: int, usd: float
) -> None:
    assert LONG.most(prompt, 100) == pytest.approx(usd)
    assert LONG.cost(Usage(prompt=prompt, completion=100)) == pytest.approx(usd)


@pytest.mark.parametrize(("window", "seconds"), [("24h", 86_400.0), ("2d", 172_800.0)])
def test_the_window_of_a_batch_is_in_hours_or_days(window: str, seconds: float) -> None:
    assert Batching(completion_window=window).window_s == seconds
