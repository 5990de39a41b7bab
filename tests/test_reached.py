"""Properties that name the branches they must reach."""

from collections.abc import Iterator

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.reached import RUNS, reached, reaches

quick = settings(max_examples=15, database=None)


def test_a_property_passes_whose_examples_reach_each_branch() -> None:
    @reaches("even", "odd")
    @quick
    @given(st.integers())
    def both(n: int) -> None:
        reached("even" if n % 2 == 0 else "odd")

    both()


def test_a_property_fails_by_the_name_of_the_branch_that_no_example_reached() -> None:
    runs = []

    @reaches("small", "large", "huge")
    @quick
    @given(st.lists(st.integers(), max_size=3))
    def vacuous(drawn: list[int]) -> None:
        runs.append(drawn)
        reached("small")
        if reached("large", len(drawn) > 3):
            raise ValueError("it is never here")
        reached("huge", False)

    with pytest.raises(AssertionError, match="no example reached 'large', 'huge': draw what does"):
        vacuous()
    assert len(runs) <= RUNS * 15


def test_a_branch_that_one_run_misses_may_be_reached_by_the_next() -> None:
    runs = []

    @reaches("late")
    @quick
    @given(st.integers())
    def late(n: int) -> None:
        runs.append(n)
        reached("late", len(runs) == 40)

    late()
    assert 40 <= len(runs) <= 45


@pytest.fixture
def repeatable() -> Iterator[None]:
    """Draw as a run without ``--faults`` does."""
    before = settings.get_current_profile_name()
    settings.load_profile("quick")
    yield
    settings.load_profile(before)


@pytest.mark.usefixtures("repeatable")
def test_each_run_draws_other_examples_and_they_are_the_same_the_next_time() -> None:
    drawn: list[int] = []

    @reaches("never")
    @settings()
    @given(st.integers(0, 10**9))
    def never(n: int) -> None:
        drawn.append(n)
        reached("never", False)

    with pytest.raises(AssertionError, match="'never'"):
        never()
    first = drawn.copy()
    assert len(set(first)) > RUNS * 10
    drawn.clear()
    with pytest.raises(AssertionError, match="'never'"):
        never()
    assert drawn == first


def test_a_failure_is_that_of_the_property_shrunk_as_without_a_branch() -> None:
    @reaches("never")
    @quick
    @given(st.integers(0, 1000))
    def fails(n: int) -> None:
        reached("never", False)
        assert n < 7, f"{n} is too large"

    with pytest.raises(AssertionError, match="7 is too large"):
        fails()


def test_each_run_of_a_property_counts_its_own_branches() -> None:
    draws = iter([True])

    @reaches("once")
    @settings(quick, max_examples=1, phases=[Phase.generate])
    @given(st.none())
    def once(_: None) -> None:
        reached("once", next(draws, False))

    once()
    with pytest.raises(AssertionError, match="'once'"):
        once()


def test_a_branch_that_the_property_does_not_name_is_a_mistake() -> None:
    @reaches("one")
    @quick
    @given(st.none())
    def other(_: None) -> None:
        reached("two")

    with pytest.raises(LookupError, match="names 'two'"):
        other()
    with pytest.raises(LookupError, match="names 'one'"):
        reached("one")


def test_branches_are_named_above_given() -> None:
    with pytest.raises(TypeError, match="above @given"):
        reaches("one")(lambda: None)


@reaches("named")
@given(st.booleans())
@pytest.mark.parametrize("word", ["a", "b"])
def test_pytest_runs_such_a_property_as_any_other(word: str, flag: bool) -> None:
    assert word in "ab"
    reached("named", flag)


class TestMethods:
    @reaches("true")
    @given(st.booleans())
    def test_a_method_has_branches_too(self, flag: bool) -> None:
        reached("true", flag)
