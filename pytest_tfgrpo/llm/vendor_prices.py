"""Prices of the package genai-prices (extra `prices`), which is kept up; the only file that imports it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING

from pytest_tfgrpo.llm.prices import LongPrompt, Price, PriceTable

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice, TieredPrices

PACKAGE = "genai-prices"


def price_at(prices: PriceTable, model: str, endpoint: str, base_url: str) -> Price | None:
    """Return what `model` costs at `endpoint`: by the user, else its vendor, else the packaged table."""
    return prices.own(model, endpoint) or vendor_price(model, base_url) or prices.packaged.get(model)


def vendor_price(model: str, base_url: str) -> Price | None:
    """Return today's price of `model` at the vendor whose API is at `base_url`.

    None where the package is not installed, knows no such vendor or model, or has no price for both kinds of
    tokens: another server may serve a model of the same name at another price.
    """
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    try:
        _, found = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return None
    listed = found.get_prices(datetime.now(UTC))
    tiers = [tier for p in _kinds(listed) if p is not None and not isinstance(p, Decimal) for tier in p.tiers]
    return _above(listed, sorted({tier.start for tier in tiers}))


def _above(listed: ModelPrice, starts: list[int], prompt: int = 0) -> Price | None:
    """Return the price of calls whose prompt is longer than `prompt` tokens, and than `starts` later."""
    fresh, answer, cached = (_at(price, prompt) for price in _kinds(listed))
    if fresh is None or answer is None:
        return None
    longer = _above(listed, starts[1:], starts[0]) if starts else None
    return Price(
        input=fresh,
        output=answer,
        cached_input=cached,
        above=None if longer is None else LongPrompt(prompt=starts[0], price=longer),
        table=f"{PACKAGE} {version(PACKAGE)}",
    )


def _kinds(listed: ModelPrice) -> tuple[Decimal | TieredPrices | None, ...]:
    return listed.input_mtok, listed.output_mtok, listed.cache_read_mtok


def _at(price: Decimal | TieredPrices | None, prompt: int) -> float | None:
    """Return what a million tokens cost where the prompt is longer than `prompt` tokens."""
    if price is None or isinstance(price, Decimal):
        return None if price is None else float(price)
    return float([price.base, *(tier.price for tier in price.tiers if tier.start <= prompt)][-1])
