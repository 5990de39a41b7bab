"""Prices that a package keeps up, and what goes before them."""

import sys
from dataclasses import dataclass
from decimal import Decimal

import pytest
from genai_prices import data_snapshot as snapshots
from genai_prices import types

from pytest_tfgrpo.llm.prices import LongPrompt, Price, PriceTable, price_uses
from pytest_tfgrpo.llm.vendor_prices import price_at, vendor_price

OPENAI = "https://api.openai.com/v1"
PACKAGED = Price(input=7.0, output=9.0, table="the packaged table of 2026-08")


def tiered(base: str, *tiers: tuple[int, str]) -> object:
    return types.TieredPrices(
        base=Decimal(base), tiers=[types.Tier(start=start, price=Decimal(price)) for start, price in tiers]
    )


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vendor's list with three models."""
    found = {
        "plain": types.ModelPrice(
            input_mtok=Decimal("2"), output_mtok=Decimal("8"), cache_read_mtok=Decimal(".5")
        ),
        "tiers": types.ModelPrice(
            input_mtok=tiered("1", (1000, "2"), (5000, "4")), output_mtok=tiered("3", (1000, "6"))
        ),
        "half": types.ModelPrice(input_mtok=Decimal("2")),
    }
    provider = types.Provider(
        id="openai",
        name="OpenAI",
        api_pattern=r"https://api\.openai\.com",
        models=[
            types.ModelInfo(id=name, match=types.ClauseEquals(equals=name), prices=price)
            for name, price in found.items()
        ],
    )
    snapshot = snapshots.DataSnapshot(providers=[provider], from_auto_update=False)
    monkeypatch.setattr(snapshots, "_custom_snapshot", snapshot)


@pytest.mark.usefixtures("listed")
def test_a_vendors_price_is_read_with_its_steps_for_long_prompts() -> None:
    assert vendor_price("plain", OPENAI) == Price(input=2.0, output=8.0, cached_input=0.5)
    beyond = Price(input=4.0, output=6.0)
    longer = Price(input=2.0, output=6.0, above=LongPrompt(prompt=5000, price=beyond))
    assert vendor_price("tiers", OPENAI) == Price(
        input=1.0, output=3.0, above=LongPrompt(prompt=1000, price=longer)
    )


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("model", "base_url"),
    [("half", OPENAI), ("unheard-of", OPENAI), ("plain", "http://127.0.0.1:8000/v1"), ("plain", "")],
)
def test_where_the_vendor_is_another_or_says_too_little_nothing_is_guessed(model: str, base_url: str) -> None:
    assert vendor_price(model, base_url) is None


@pytest.mark.usefixtures("listed")
def test_your_own_price_goes_first_then_the_vendors_then_the_packaged_one() -> None:
    own = Price(input=1.0, output=1.0, table="models.yaml")
    everything = {"plain": PACKAGED, "unheard-of": PACKAGED}
    table = PriceTable(prices={"plain@here": own}, packaged=everything)
    assert price_at(table, "plain", "here", OPENAI) == own
    found = price_at(table, "plain", "there", OPENAI)
    assert found is not None
    assert (found.input, found.table.split()[0]) == (2.0, "genai-prices")
    assert price_at(table, "unheard-of", "there", OPENAI) == PACKAGED
    assert price_at(table, "nothing", "there", OPENAI) is None


@pytest.mark.usefixtures("listed")
def test_without_the_package_the_packaged_price_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    assert price_at(PriceTable(packaged={"plain": PACKAGED}), "plain", "", OPENAI) == PACKAGED


def test_the_package_itself_knows_a_common_model() -> None:
    price = vendor_price("gpt-4o-mini", OPENAI)
    assert price is not None
    assert 0 < price.input < price.output


@dataclass
class Model:
    name: str
    paid: bool
    price: Price | None


def test_a_run_keeps_which_table_each_paid_model_was_counted_by() -> None:
    models = [
        Model("b", True, PACKAGED),
        Model("a", True, PACKAGED),
        Model("c", False, PACKAGED),
        Model("d", True, None),
    ]
    assert [(use.model, use.table) for use in price_uses(models)] == [
        ("a", PACKAGED.table),
        ("b", PACKAGED.table),
    ]
