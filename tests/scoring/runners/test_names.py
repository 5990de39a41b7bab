"""Names of tests and words of failures are fit for a file that people read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.scoring.runners.names import MAX_ID, MAX_LINE, case_id, first_line, worst
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome


@reaches("cut", "whole")
@given(
    st.text(max_size=300)
    | st.tuples(st.text(max_size=9), st.integers(0, MAX_ID)).map(lambda two: two[0] * two[1])
)
def test_an_id_is_one_line_that_can_be_encoded(name: str) -> None:
    text = case_id("a.test.js", name)
    reached("cut" if len(name) > MAX_ID else "whole")
    text.encode()
    assert len(text) <= MAX_ID
    assert len(text.splitlines()) == 1


def test_colours_and_control_characters_leave_a_failures_words() -> None:
    assert first_line("\n \x1b[31mExpected\x1b[0m\x00 4\nmore") == "Expected  4"
    assert first_line("Expected to be equal:\n\n5 !== 6\n") == "Expected to be equal: 5 !== 6"


def test_an_id_of_1000_characters_is_whole_and_a_longer_one_ends_in_a_digest() -> None:
    assert case_id("x" * MAX_ID) == "x" * MAX_ID
    one, other = (case_id("x" * MAX_ID + end) for end in "ab")
    assert one[: MAX_ID - 17] == other[: MAX_ID - 17] == "x" * (MAX_ID - 20) + "..."
    assert one != other


def test_of_a_long_line_500_characters_are_kept() -> None:
    assert first_line("x" * (MAX_LINE + 1)) == "x" * MAX_LINE


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ("passed failed skipped", "failed"),
        ("failed hung", "hung"),
        ("skipped passed", "passed"),
        ("skipped", "skipped"),
    ],
)
def test_tests_of_one_name_are_as_good_as_the_worst(found: str, outcome: str) -> None:
    assert worst(map(CaseOutcome, found.split())) is CaseOutcome(outcome)
