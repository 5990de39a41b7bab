"""Threads that a fixture leaves, without a run: those that have not started yet."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.plugin.leaked_threads import LeakedThreads


def test_a_thread_that_is_listed_before_it_has_started_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    threads = LeakedThreads(said.append)
    fixture: Any = SimpleNamespace(argname="server")
    setup = threads.pytest_fixture_setup(fixture)
    next(setup)
    begun = threading.Thread(name="begun")
    listed = [*threading.enumerate(), begun]
    monkeypatch.setattr(threading, "enumerate", lambda: listed)
    with pytest.raises(StopIteration):
        setup.send(None)
    threads.pytest_fixture_post_finalizer(fixture)
    assert said == []
