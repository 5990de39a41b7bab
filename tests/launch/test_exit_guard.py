"""The exit guard, where garbage collection ends runs that were given up in the middle of anything."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from support.abandoned import repeat_among_collections

from pytest_tfgrpo.launch import exit_guard
from pytest_tfgrpo.launch.exit_guard import guard_exits


class EndingAnother(list[Callable[[str], None]]):
    """The runs that go on; one that was given up ends just before the next is added."""

    another = guard_exits()

    def append(self, tell: Callable[[str], None]) -> None:
        if self:
            self.another.__exit__(None, None, None)
        super().append(tell)


def test_a_run_is_guarded_though_another_one_that_was_given_up_ends_while_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exit_guard, "_tellers", EndingAnother())
    really, guarded = os._exit, []

    def step() -> None:
        EndingAnother.another.__enter__()
        with guard_exits():
            guarded.append(os._exit is not really)

    repeat_among_collections(step, times=1, places=1)
    assert guarded == [True]
    assert os._exit is really


def test_each_way_to_end_a_process_at_once_is_guarded_while_a_run_goes_on_and_is_itself_again() -> None:
    ways = ("_exit", "execv", "execve")
    before = [getattr(os, name) for name in ways]
    with guard_exits():
        assert [getattr(os, name).really for name in ways] == before
    assert [getattr(os, name) for name in ways] == before


@pytest.mark.parametrize("name", ["execv", "execve", "_exit"])
def test_whatever_was_called_the_process_is_left_with_the_code(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    codes: list[int] = []
    for way in ("execv", "execve"):
        monkeypatch.setattr(os, way, lambda *_: None)
    monkeypatch.setattr(os, "_exit", codes.append)
    with guard_exits(lambda text: None):
        getattr(os, name)(*((7,) if name == "_exit" else ("true", ["true"])))
    assert codes[0] == exit_guard.CODE


@pytest.mark.parametrize(
    ("name", "ours", "runs", "left"),
    [("_exit", 0, 1, [3, 7]), ("execv", 0, 1, [3]), ("_exit", 1, 1, [7]), ("_exit", 0, 0, [7])],
)
def test_an_end_in_the_middle_of_a_run_is_told_and_has_a_code_of_its_own(
    name: str, ours: int, runs: int, left: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, told = list[int](), list[str]()
    tellers = [told.append, lambda text: 1 / 0, told.append] if runs else []
    monkeypatch.setattr(exit_guard, "_tellers", tellers)

    def end(code: int) -> None:
        ended.append(code)

    end.really = end  # type: ignore[attr-defined]
    monkeypatch.setattr(os, "_exit", end)
    really: Callable[..., object] = end if name == "_exit" else lambda *_: None
    exit_guard._guard(name, really, os.getpid() + ours)(7)
    assert ended == left
    expected = 2 if runs and not ours else 0
    assert len(told) == expected
    for text in told:
        assert text.startswith(f"tfgrpo: {__file__}:")
        assert text.endswith(f" called os.{name}(7) before the run had ended; leaving with exit code 3")
        assert "(test_an_end_in_the_middle" in text


def test_who_calls_through_the_standard_library_is_named() -> None:
    assert exit_guard._caller().endswith("(test_who_calls_through_the_standard_library_is_named)")
