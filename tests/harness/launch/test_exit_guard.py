"""The exit guard, where garbage collection ends runs that were given up in the middle of anything."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from support.abandoned import repeat_among_collections

from pytest_tfgrpo.harness.launch import exit_guard
from pytest_tfgrpo.harness.launch.exit_guard import guard_exits


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
