"""The wake-up call, which may be set in the middle of itself."""

from __future__ import annotations

import sys
import threading

import pytest
from support.abandoned import repeat_among_collections

from pytest_tfgrpo.core.python.wakeup import WakeUp


def test_it_is_set_until_it_is_cleared() -> None:
    wake = WakeUp()
    assert not wake.wait(0)
    wake.set()
    wake.set()
    assert wake.wait(0)
    assert wake.wait(0)
    wake.clear()
    assert not wake.wait(0)


def test_it_wakes_a_thread_that_waits() -> None:
    wake, woken = WakeUp(), []
    thread = threading.Thread(target=lambda: woken.append(wake.wait(100)))
    thread.start()
    wake.set()
    thread.join(100)
    assert woken == [True]


@pytest.mark.parametrize("method", ["set", "wait", "clear"])
def test_it_may_be_set_while_it_is_set_waited_for_or_cleared(method: str) -> None:
    wake, calls = WakeUp(), []

    def interrupt(*_: object) -> None:  # at each call of a function, as garbage collection may
        if len(calls) < 5:
            calls.append(method)
            wake.set()

    def step() -> None:
        if method == "clear":
            wake.set()
        sys.setprofile(interrupt)
        try:
            getattr(wake, method)(*([0.001] if method == "wait" else []))
        finally:
            sys.setprofile(None)
            wake.set()

    repeat_among_collections(step, times=1, places=1)
    assert wake.wait(0)
    assert calls
