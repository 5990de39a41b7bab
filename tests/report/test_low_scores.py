"""Scenarios of a plain run that are below the setting min_score."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_tfgrpo.report.blocks.low import SHOWN, low


def report(number: int, **settings: float) -> Any:
    rows = [{"scenario": f"s{n}", "mean": n / 100} for n in range(number)]
    epochs = [{"groups": 30, "mode": "eval"}, {"groups": 7, "mode": "train"}, {"groups": 12, "mode": "eval"}]
    return {"low": rows, "epochs": epochs, "settings": settings}


@pytest.mark.parametrize(
    ("number", "every", "shown", "more"),
    [
        (1, False, 1, ""),
        (SHOWN, False, SHOWN, ""),
        (SHOWN + 2, False, SHOWN, " and 2 more"),
        (SHOWN + 2, True, SHOWN + 2, ""),
    ],
)
def test_some_are_named_with_their_means_and_all_are_counted(
    number: int, every: bool, shown: int, more: str
) -> None:
    named = ", ".join(f"s{n} {n / 100:.3f}" for n in range(shown))
    text = low(report(number, min_score=0.5), every=every)
    assert text == f"{number} of 42 eval scenarios below min_score = 0.5: {named}{more}"


def test_without_the_setting_the_least_is_1_and_without_any_nothing_is_said() -> None:
    assert "below min_score = 1: s0 0.000" in low(report(1))
    assert low(report(0)) == ""
    nothing: Any = {}
    assert low(nothing) == ""
