"""The rule of acceptance: two readings where there are errors, and no verdict on what was not measured."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import make_group

from pytest_tfgrpo.harness.learning.acceptance.rule import AcceptanceRule, Pairs

SAFE = AcceptanceRule(name="safe", margin=0.02)
STRICT = AcceptanceRule(name="strict", margin=0.02)
Credits = Sequence[float | None]


def pairs(before: Sequence[Credits], after: Sequence[Credits], *, unchanged: int = 0) -> Pairs:
    def groups(rows: Sequence[Credits]) -> dict[str, object]:
        return {f"d{n:03}": make_group(list(row), scenario_id=f"d{n:03}") for n, row in enumerate(rows)}

    return Pairs.of(unchanged, groups(before), groups(after))  # type: ignore[arg-type]


def test_the_difference_is_over_all_scenarios_also_those_with_one_prompt_under_both() -> None:
    ruling = SAFE.judge(pairs([[1, 1]] * 10, [[0, 1]] * 10, unchanged=30))
    assert ruling.reading.difference == pytest.approx(-0.125)


@pytest.mark.parametrize(("lost", "accepted"), [(0, True), (1, True), (12, False)])
def test_safe_rejects_what_is_shown_to_be_worse_by_more_than_the_margin(lost: int, accepted: bool) -> None:
    found = pairs([[1.0]] * 40, [[0.0]] * lost + [[1.0]] * (40 - lost))
    assert SAFE.judge(found).accepted is accepted


@pytest.mark.parametrize(("won", "accepted"), [(0, False), (1, False), (12, True)])
def test_strict_accepts_what_is_shown_to_be_better(won: int, accepted: bool) -> None:
    found = pairs([[0.0]] * 40, [[1.0]] * won + [[0.0]] * (40 - won))
    assert STRICT.judge(found).accepted is accepted


def test_a_part_of_a_rejected_library_loses_the_benefit_of_the_doubt() -> None:
    found = pairs([[0.5]] * 40, [[1.0]] * 11 + [[0.0]] * 14 + [[0.5]] * 15)
    assert SAFE.judge(found).accepted
    assert not SAFE.judge(found, factor=3, doubted=True).accepted


def test_errors_of_the_library_tried_speak_against_it_in_one_of_two_readings() -> None:
    found = pairs([[1, 1, 1, 1]] * 40, [[1, 1, None, None]] * 40)
    ruling = SAFE.judge(found)
    assert (ruling.accepted, ruling.reading.errors) == (False, "as 0")
    assert ruling.reading.difference == pytest.approx(-0.5)


def test_errors_of_the_library_in_force_do_not_help_the_one_that_is_tried() -> None:
    found = pairs([[0.5, None]] * 40, [[0.5, 0.5]] * 40)
    assert not STRICT.judge(found).accepted
    assert STRICT.judge(found).reading.errors == "excluded"


@pytest.mark.parametrize(
    ("changed", "errors", "unchanged", "measured"),
    [(40, 0, 0, True), (40, 20, 0, True), (40, 21, 0, False), (2, 2, 100, False), (30, 11, 0, False)],
)
def test_what_errors_leave_too_little_of_is_not_measured(
    changed: int, errors: int, unchanged: int, measured: bool
) -> None:
    after: list[Credits] = [[None]] * errors + [[1.0]] * (changed - errors)
    assert pairs([[1.0]] * changed, after, unchanged=unchanged).measured is measured


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=20, max_size=30),
    st.integers(min_value=1, max_value=3),
)
def test_a_correction_only_makes_it_harder_to_show_anything(
    rows: list[tuple[float, float]], factor: int
) -> None:
    found = pairs([[a] for a, _ in rows], [[b] for _, b in rows])
    plain, corrected = STRICT.judge(found), STRICT.judge(found, factor=factor)
    assert plain.accepted or not corrected.accepted
    assert SAFE.judge(found, factor=factor).accepted or not SAFE.judge(found).accepted
    assert SAFE.judge(found).accepted or not SAFE.judge(found, factor=factor, doubted=True).accepted
