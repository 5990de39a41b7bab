"""Checks in place of others: each accepts a little more, or less."""

from typing import Any

import pytest

from pytest_tfgrpo.review.variants import ORDERS, looser, stricter


def wider(check: dict[str, Any], *right: str, replace: bool = False) -> list[dict[str, Any]]:
    return [dict(one.checks[0]) for one in looser([check], 0, right, (), replace=replace)]


def tighter(check: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(one.checks[0]) for one in stricter([check], [], ()) if not one.by_heart]


def test_calls_may_come_in_looser_or_stricter_orders_the_nearest_first() -> None:
    for n, order in enumerate(ORDERS):
        check = {"kind": "tool_calls", "calls": [], "order": order}
        assert [one["order"] for one in tighter(check)] == list(ORDERS[n + 1 :])
        assert [one["order"] for one in wider(check)] == list(reversed(ORDERS[:n]))
    for variants in (tighter, wider):
        assert variants({"kind": "tool_calls", "most": 3}) == []
        assert variants({"kind": "limits", "calls": 3}) == []


def test_a_pattern_ignores_case_once() -> None:
    first, *_ = wider({"kind": "regex", "pattern": "a", "flags": "s"}, "A")
    assert first["flags"] == "si"
    kinds = [one for one in wider({"kind": "regex", "pattern": "a", "flags": "i"}, "b") if "flags" in one]
    assert all(one["flags"] == "i" and one["pattern"] != "a" for one in kinds)


@pytest.mark.parametrize(
    ("right", "tolerance"),
    [(["10.2", "9.9"], 0.2), (["10"], None), (["many", "10.2"], None), (["5"], None)],
)
def test_a_number_has_the_tolerance_that_all_right_answers_need(
    right: list[str], tolerance: float | None
) -> None:
    found = [one["abs_tol"] for one in wider({"kind": "number", "value": 10}, *right) if "abs_tol" in one]
    assert found == ([] if tolerance is None else [pytest.approx(tolerance, rel=1e-6)])
    assert all(abs(float(text) - 10) <= found[0] for text in right if found)


@pytest.mark.parametrize(
    ("check", "right", "value"),
    [
        ({"kind": "exact", "value": "3"}, ["4 ", "4"], "4"),
        ({"kind": "exact", "value": "3"}, ["4", "5"], None),
        ({"kind": "number", "value": 3}, ["it is 4", "4.0"], 4),
        ({"kind": "number", "value": 3}, ["it is 4", "5"], None),
        ({"kind": "number", "value": 3}, ["four"], None),
    ],
)
def test_an_expected_answer_gives_way_to_one_that_people_agree_on(
    check: dict[str, Any], right: list[str], value: object
) -> None:
    def replaced(*, replace: bool) -> list[object]:
        return [
            one["value"]
            for one in wider(check, *right, replace=replace)
            if one.keys() == check.keys() and one["kind"] == check["kind"] and one["value"] != check["value"]
        ]

    assert replaced(replace=False) == []
    assert replaced(replace=True) == ([] if value is None else [value])


def test_a_negative_number_has_a_wider_tolerance_too() -> None:
    found = [one["abs_tol"] for one in wider({"kind": "number", "value": -10}, "-10.2") if "abs_tol" in one]
    assert found == [pytest.approx(0.2, rel=1e-6)]


def test_calls_without_an_order_are_those_in_order() -> None:
    check = {"kind": "tool_calls", "calls": []}
    assert [one["order"] for one in tighter(check)] == ["exact"]
    assert [one["order"] for one in wider(check)] == ["any_order"]


@pytest.mark.parametrize(("text", "kind"), [("4", int), ("4.5", float), ("1e300", float)])
def test_a_number_is_written_whole_where_it_is_exactly_so(text: str, kind: type) -> None:
    *_, replaced = (one for one in wider({"kind": "number", "value": 3}, text, replace=True) if len(one) == 2)
    assert (type(replaced["value"]), replaced["value"]) == (kind, float(text))
