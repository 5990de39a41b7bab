from typing import Any

import pytest
from support.completers import ScriptedCompleter

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.llm.limits.budget import require_affordable


def model(cost_usd: float | None = 0.01, *, paid: bool = True) -> ScriptedCompleter:
    completer = ScriptedCompleter(lambda _: "x", name="openai:new@lab", cost_usd=cost_usd)
    completer.paid = paid  # type: ignore[misc]
    return completer


def check(completer: ScriptedCompleter, **settings: Any) -> None:
    require_affordable([completer], {"budget_usd": None, "budget_tokens": None} | settings)


def test_a_budget_that_no_price_can_keep_is_refused_with_how_to_add_the_price() -> None:
    with pytest.raises(SettingError, match=r"the price of 'new@lab' is unknown") as caught:
        check(model(None), budget_usd=5.0)
    assert "(prices: {'new@lab': {input: 2.5, output: 10}})," in str(caught.value)


def test_a_budget_smaller_than_one_call_is_refused() -> None:
    with pytest.raises(SettingError, match=r"budget_usd is 0.005, but one call .* may cost \$0.01;"):
        check(model(), budget_usd=0.005)
    with pytest.raises(SettingError, match=r"budget_tokens is 100, but one call .* may use 120;"):
        check(model(), budget_tokens=100)


@pytest.mark.parametrize(
    ("completer", "settings"),
    [
        (model(), {"budget_usd": 0.01, "budget_tokens": 120}),
        (model(None), {"budget_tokens": 120}),
        (model(None), {}),
        (model(None, paid=False), {"budget_usd": 0.0}),
    ],
)
def test_what_can_be_kept_passes(completer: ScriptedCompleter, settings: dict[str, Any]) -> None:
    check(completer, **settings)
