"""Python's garbage collector during a run."""

import gc
from collections.abc import Iterator

import pytest

from pytest_tfgrpo.core.python.collector import EVERY, collecting_seldom


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """The thresholds of this process are as before after each test."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def run_that_fails() -> None:
    with collecting_seldom():
        assert gc.get_threshold() == (EVERY, 10, 10)
        raise KeyError("broken")


def test_collections_are_seldom_until_the_end_also_of_a_run_that_fails() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(KeyError, match="broken"):
        run_that_fails()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (EVERY + 1, 5, 5)])
def test_what_a_process_chose_that_is_as_seldom_stays(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    with collecting_seldom():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


def test_runs_side_by_side_leave_what_was_there_before() -> None:
    gc.set_threshold(700, 10, 10)
    first, second = collecting_seldom(), collecting_seldom()
    for step in (first.__enter__, second.__enter__, lambda: first.__exit__(None, None, None)):
        step()
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)
