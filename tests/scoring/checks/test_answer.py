"""Checks on the text of the answer: exact, contains, number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.scoring.numerals.reader import last_number


@pytest.mark.parametrize(
    ("answer", "params", "passed"),
    [
        ("3", {}, True), (" 3\n", {}, True), ("3.", {}, False), ("", {}, False),
        (" 3", {"strip": False}, False), ("3", {"strip": False}, True),
    ],
)  # fmt: skip
def test_exact_compares_the_whole_answer(judge, answer, params, passed):
    assert judge("exact", answer, value="3", **params).passed is passed


def test_white_space_around_the_expected_text_does_not_count_either(judge):
    assert judge("exact", "3", value=" 3\n").passed
    assert not judge("exact", "3", value=" 3\n", strip=False).passed


def test_exact_tells_letters_apart_unless_told_not_to(judge):
    assert not judge("exact", "STRASSE", value="straße").passed
    assert judge("exact", "STRASSE", value="straße", ignore_case=True).passed


def test_a_reason_shows_what_was_expected_and_the_start_of_what_came(judge):
    assert judge("exact", "4", value="3").reason == "expected '3', got '4'"
    reason = judge("exact", "x" * 1_000_000, value="3").reason
    assert reason.startswith("expected '3', got 'xxx")
    assert len(reason) < 200


def test_contains_wants_the_value_or_all_values(judge):
    assert judge("contains", "red and blue", value="red").passed
    assert judge("contains", "red and blue", values=["red", "blue"]).passed
    result = judge("contains", "red and blue", values=["red", "green"])
    assert result.reason == "expected to find 'green' in 'red and blue'"
    assert not judge("contains", "red and blue", values=["red", "blue", "green"]).passed
    assert not judge("contains", "42\u00a0km", values=["42 km", "43 km"]).passed


def test_of_many_values_that_are_absent_the_first_five_are_named(judge):
    reason = judge("contains", "x", values=list("abxcdefg")).reason
    assert reason == "expected to find 'a', 'b', 'c', 'd', 'e' in 'x'"
    quoted = judge("contains", "don’t", values=["don't", "other"]).reason
    assert quoted.endswith("differ only in the form of quotation marks, apostrophes or dashes")


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["{}", "it is {}.", "1, 2, {} m", "({}, so)"]),
)
def test_every_way_python_writes_a_number_is_read_back(number, frame):
    assert last_number(frame.format(repr(number))) == number


@pytest.mark.parametrize(
    ("answer", "params", "passed"),
    [
        ("100", {}, True), ("100.00000001", {}, True), ("100.0000005", {}, False), ("100.1", {}, False),
        ("100.1", {"abs_tol": 0.2}, True), ("99.9", {"abs_tol": 0.2}, True), ("101", {"rel_tol": 0.01}, True),
        ("101.1", {"rel_tol": 0.01}, False), ("105", {"rel_tol": 0.01, "abs_tol": 5}, True),
        ("150", {"rel_tol": 0.5}, True), ("190", {"rel_tol": 0.5}, False), ("50", {"rel_tol": 0.5}, True),
        ("1e999", {}, False), ("none", {}, False), ("100.00000001", {"rel_tol": 0}, False),
    ],
)  # fmt: skip
def test_a_number_passes_within_the_larger_tolerance(judge, answer, params, passed):
    assert judge("number", answer, value=100, **params).passed is passed
    assert judge("number", f"-{answer}", value=-100, **params).passed is passed


def test_a_number_that_is_too_far_off_is_told_with_its_tolerance(judge):
    reason = judge("number", "it is 103", value=100, abs_tol=2).reason
    assert reason == "expected 100 within 2, got 103.0 as the last number"


def test_a_number_that_cannot_be_read_for_certain_gets_no_credit_nor_does_its_opposite(judge):
    reason = (
        "expected 5; the last number, '5' cannot be read for certain: 'million' follows it, and words are not"
    )
    for negated in ({}, {"not": True}):
        result = judge("number", "5 million", value=5, **negated)
        assert not result.passed
        assert reason in result.reason


def test_a_number_too_large_for_arithmetic_is_refused_when_loaded(load):
    with pytest.raises(ScenarioError, match="is too large for a number"):
        load("number", value=10**400)
    with pytest.raises(ScenarioError, match=r"#/checks/0/abs_tol: .* is too large for a number"):
        load("number", value=1, abs_tol=10**400)


@pytest.mark.parametrize(
    ("kind", "params", "answers"),
    [
        ("exact", {"value": "3"}, ("3",)),
        ("contains", {"value": "a"}, ("a",)),
        ("contains", {"values": ["a", "b"]}, ("a", "b")),
        ("number", {"value": 1234}, ("1234", "1,234")),
        ("number", {"value": 1234.0}, ("1234.0", "1,234.0", "1234", "1,234")),
        ("number", {"value": 0.5}, ("0.5",)),
        ("regex", {"pattern": "abcd"}, ()),
    ],
)
def test_expected_answers_are_known_to_the_leakage_screen(load, kind, params, answers):
    assert KINDS[kind].answers(load(kind, **params)) == answers
