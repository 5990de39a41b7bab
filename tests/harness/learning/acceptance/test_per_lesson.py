"""Single changes: what its own dev scenarios say of one operation among many."""

from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_experience, make_group

from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.harness.learning.acceptance.parts import OperationSet
from pytest_tfgrpo.harness.learning.acceptance.per_lesson import Case, idle_or_harmful


def name(n: int) -> str:
    return make_experience(n).id


def added(n: int) -> OperationSet:
    return (Operation(kind="add", experience=make_experience(n)),)


def updated(n: int, old: int) -> OperationSet:
    return (Operation(kind="update", experience=make_experience(n), targets=(name(old),)),)


def removed(n: int) -> OperationSet:
    return (Operation(kind="remove", targets=(name(n),)),)


def case(after: list[int], *differences: float, before: tuple[int, ...] = (), room: bool = True) -> Case:
    return Case(
        before=tuple(map(name, before)), after=tuple(map(name, after)), differences=differences, room=room
    )


def named(cases: list[Case], units: list[OperationSet]) -> list[OperationSet]:
    return idle_or_harmful(cases, units, margin=0.02, alpha=0.2)


def test_a_new_lesson_that_helped_its_own_scenarios_stays() -> None:
    assert named([case([0], 1.0, 0.0, 0.0)], [added(0)]) == []


def test_a_new_lesson_that_did_nothing_where_it_could_have_is_named() -> None:
    assert named([case([0], 0.0, 0.0)], [added(0)]) == [added(0)]


def test_where_nothing_was_to_be_gained_nothing_need_be_shown() -> None:
    assert named([case([0], 0.0, 0.0, room=False)], [added(0)]) == []


def test_a_scenario_speaks_of_the_lesson_that_its_prompt_prefers() -> None:
    cases = [case([0, 1], 0.0, -1.0), case([1, 0], 1.0, 1.0)]
    assert named(cases, [added(0), added(1)]) == [added(0)]


def test_a_lesson_that_stands_first_nowhere_is_judged_where_it_stands_highest() -> None:
    cases = [case([0], 1.0, 1.0), case([0, 1], 0.0, 0.0)]
    assert named(cases, [added(0), added(1)]) == [added(1)]


def test_a_lesson_that_no_dev_scenario_sees_is_not_named() -> None:
    assert named([case([0], 1.0)], [added(0), added(1)]) == []
    assert named([], [added(0)]) == []


def test_a_revision_is_named_only_when_it_is_shown_to_be_worse() -> None:
    assert named([case([1], -1.0, 0.0, before=(0,))], [updated(1, 0)]) == []
    assert named([case([1], *[-1.0] * 5, before=(0,))], [updated(1, 0)]) == [updated(1, 0)]


def test_a_removal_answers_for_the_scenarios_that_lost_their_first_lesson() -> None:
    assert named([case([], *[-1.0] * 5, before=(0,))], [removed(0)]) == [removed(0)]


@given(st.lists(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), max_size=5), max_size=8))
def test_a_lesson_whose_scenarios_never_got_worse_is_named_only_for_having_done_nothing(
    rows: list[list[float]],
) -> None:
    cases = [case([0], *map(abs, row)) for row in rows]
    helped = any(any(row) for row in rows)
    assert named(cases, [added(0)]) == ([] if helped or not any(rows) else [added(0)])


def test_a_case_pairs_rollouts_of_one_seed_and_leaves_errors_out() -> None:
    found = Case.of(make_group([0.0, None, 1.0]), make_group([1.0, 1.0, 0.5]))
    assert found.differences == (1.0, -0.5)
    assert found.room
