"""What the reporter drops of a failed test's traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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


class Text(str):
    """A text of another class, which says that it is none."""

    __class__ = property(lambda self: int)  # type: ignore[assignment]

    def __getitem__(self, place: object) -> str:
        raise AssertionError("the reporter called what code under test made")


class Bytes(bytes):
    def __getitem__(self, place: object) -> bytes:  # type: ignore[override]
        raise AssertionError("the reporter called what code under test made")


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("/proc/self/mem", True),
        (b"mem", True),
        (Text("/proc/self/mem"), True),
        (Bytes(b"/proc/1/mem"), True),
        ("/proc/self/maps", False),
        ("/proc/meminfo", False),
        ("a\0b", False),
        (Path("/proc/self/mem"), False),  # what opens a file makes a text of it first
    ],
    ids=range(8),
)
def test_the_memory_of_a_process_is_known_by_its_name_whatever_holds_that(name: object, memory: bool) -> None:
    assert pytest_reporter._is_memory(name) is memory


def test_links_to_memory_are_memory(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("first", "second", "loop", "other")]
    for link, target in zip(names, ("/proc/self/mem", names[0], names[2], "/proc/self/maps"), strict=True):
        link.symlink_to(target)
    assert [pytest_reporter._is_memory(str(name)) for name in names] == [True, True, True, False]
