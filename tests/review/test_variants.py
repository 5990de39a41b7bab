"""Checks in place of others: each accepts a little more, or less."""

import re
from typing import Any

import pytest

from pytest_tfgrpo.review.variants import LONGEST, ORDERS, looser, stricter


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


def added(checks: list[dict[str, Any]], wrong: list[str], *words: str) -> list[list[dict[str, Any]]]:
    return [[dict(check) for check in one.checks] for one in stricter(checks, wrong, words)]


def test_words_come_into_one_pattern_only_where_nothing_else_is_checked() -> None:
    town, river = ({"kind": "contains", "value": value} for value in ("Paris", "Seine"))
    assert [one for one in added([town], [], "Rome") if one[0].get("pattern", "").startswith("(?s)")]
    assert not [one for one in added([town, river], [], "Rome") if "(?s)" in str(one)]


def test_a_check_that_must_fail_is_not_made_stricter() -> None:
    assert added([{"kind": "contains", "value": "x", "not": True}], ["y" * 400]) == []


def test_answers_are_named_only_where_all_of_them_may_stand_in_a_check() -> None:
    check = {"kind": "regex", "pattern": "a"}
    long = "a" * 400
    assert added([check], ["a b", "a c"])[-1][1:] == [
        {"kind": "exact", "not": True, "value": "a b"},
        {"kind": "exact", "not": True, "value": "a c"},
    ]
    assert not [one for one in added([check], ["a b", long]) if len(one) > 1]
    assert any("b" in one["pattern"] for one in wider(check, "b"))
    assert not [one for one in wider(check, "b", long) if "|" in one["pattern"]]


@pytest.mark.parametrize(("value", "is_number"), [("42", True), ("42 euros", False), ("forty", False)])
def test_the_last_number_counts_only_where_a_number_alone_was_expected(value: str, is_number: bool) -> None:
    for kind, changed in (("contains", tighter), ("exact", wider)):
        found = changed({"kind": kind, "value": value})
        assert ("number" in [one["kind"] for one in found]) is is_number


def test_a_tolerance_is_taken_away_but_for_rounding_and_then_that_too() -> None:
    found = tighter({"kind": "number", "value": 10, "abs_tol": 2, "rel_tol": 0.1})
    assert [(one["abs_tol"], one["rel_tol"]) for one in found if "abs_tol" in one] == [(0, 1e-9), (0, 0)]


def test_each_of_several_texts_may_be_in_any_case() -> None:
    (found,) = (
        one for one in wider({"kind": "contains", "values": ["Paris", "Seine"]}, "x") if "flags" in one
    )
    assert found["pattern"] == r"\A(?=.*Paris)(?=.*Seine)"


def test_a_wider_tolerance_holds_the_answer_that_it_is_made_for() -> None:
    for n in range(1, 60):
        right = 1e8 + n * 0.1234567
        for one in wider({"kind": "number", "value": 1e8}, f"{right}"):
            assert one.get("abs_tol", 1e9) >= abs(float(f"{right}") - 1e8)


def test_a_text_as_long_as_the_limit_may_stand_in_a_check_and_without_blanks_around_it() -> None:
    check = {"kind": "regex", "pattern": "a"}
    for length, fits in ((LONGEST, True), (LONGEST + 1, False)):
        text = "a" * length
        named = {"kind": "exact", "not": True, "value": text}
        assert (added([check], [text + "\n", text])[-1][1:] == [named]) is fits
        replaced = wider({"kind": "exact", "value": "3"}, text, replace=True)
        assert ({"kind": "exact", "value": text} in replaced) is fits


def test_all_words_and_all_answers_of_people_are_accepted_as_well() -> None:
    variants = looser([{"kind": "contains", "value": "a"}], 0, ["b c", "d"], ["b", "d"], replace=False)
    patterns = [one.checks[0]["pattern"] for one in variants]
    assert patterns[-2:] == [r"a|(?<!\w)b(?!\w)|(?<!\w)d(?!\w)", r"a|\A\s*b c\s*\Z|\A\s*d\s*\Z"]


@pytest.mark.parametrize(
    ("value", "pattern"), [("a(b)", r"(?<!\w)a\(b\)"), ("(b)c", r"\(b\)c(?!\w)"), ("a", r"(?<!\w)a(?!\w)")]
)
def test_a_word_ends_where_letters_do(value: str, pattern: str) -> None:
    assert tighter({"kind": "contains", "value": value})[0]["pattern"] == pattern


@pytest.mark.parametrize(
    ("answer", "is_found"),
    [("so 10 it is", True), ("10.", True), ("10 %", True), ("10%", False), ("10.5", False), ("-10", False)],
)
def test_a_number_anywhere_is_that_number_and_no_part_of_another(answer: str, is_found: bool) -> None:
    (pattern,) = (one["pattern"] for one in wider({"kind": "number", "value": 10}, "x") if "pattern" in one)
    assert bool(re.search(pattern, answer)) is is_found
