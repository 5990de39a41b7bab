"""Whether a budget can be kept at all: what is asked before the first call is paid for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.records import Json
from pytest_tfgrpo.harness.printable import line, money
from pytest_tfgrpo.llm.protocol import Completer, Message, Request

SHORTEST = Request(messages=(Message(role="user", content=""),), temperature=0.0)
"""No call of a run can use less than this one."""


def require_affordable(models: Iterable[Completer], settings: Mapping[str, Json]) -> None:
    """Raise SettingError where a budget cannot be kept: a price is unknown, or one call may use more."""
    for model in models:
        if model.paid:
            bound = model.bound(SHORTEST)
            _require_price(model, bound["usd"], settings)
            _require_room(model, bound["tokens"], settings)


def _require_price(model: Completer, usd: float | None, settings: Mapping[str, Json]) -> None:
    budget = settings["budget_usd"]
    if budget is None:
        return
    if usd is None:
        name = line(model.name, 200).partition(":")[2]
        raise SettingError(
            f"budget_usd is {budget:g}, but the price of {name!r} is unknown, so that it cannot be kept; add "
            "it to the file of the setting models, in US dollars per million tokens "
            f"(prices: {{{name!r}: {{input: 2.5, output: 10}}}}), or set budget_tokens instead"
        )
    if usd > budget:
        raise SettingError(
            f"budget_usd is {budget:g}, but one call of {line(model.name, 200)!r} may cost {money(usd)}; "
            "raise it, or lower max_tokens"
        )


def _require_room(model: Completer, tokens: float | None, settings: Mapping[str, Json]) -> None:
    budget = settings["budget_tokens"]
    if budget is not None and tokens is not None and tokens > budget:
        raise SettingError(
            f"budget_tokens is {budget}, but one call of {line(model.name, 200)!r} may use {tokens:g}; "
            "raise it, or lower max_tokens"
        )
