"""What the reporter drops of a failed test's traceback."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_tfgrpo.scoring.runners.python import pytest_reporter


def below(depth: int, called: Callable[[], None]) -> None:
    if depth:
        below(depth - 1, called)
    else:
        called()


def failed_test() -> None:
    below(1, other)


def other() -> None:
    raise ValueError("why")


@pytest.mark.parametrize("depth", [0, 3])
def test_of_the_frames_below_a_test_one_is_left_by_which_pytest_finds_it(depth: int) -> None:
    with pytest.raises(ValueError, match="why") as caught:
        below(depth, failed_test)
    pytest_reporter._cut(caught, failed_test.__code__)
    names = [entry.frame.code.name for entry in caught.traceback]
    assert names == ["below", "failed_test", "below", "below", "other"]


def test_a_traceback_without_the_test_stays_whole() -> None:
    with pytest.raises(ValueError, match="why") as caught:
        below(2, other)
    every = len(caught.traceback)
    pytest_reporter._cut(caught, failed_test.__code__)
    pytest_reporter._cut(caught, None)
    assert len(caught.traceback) == every == 5
