"""Threads that certainly begin: also where Python ends one before its first line."""

import sys
import threading

import pytest

from pytest_tfgrpo.core.python.threads import start_thread


def test_a_thread_that_ends_before_its_first_line_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[object] = []
    lost: list[object] = []
    ran: list[str] = []

    def settrace(function: object) -> None:  # what a new thread calls before its first line
        if len(refused) < 2:
            refused.append(function)
            raise RuntimeError("another trace function is being installed")

    monkeypatch.setattr(sys, "settrace", settrace)
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    monkeypatch.setattr(threading, "_trace_hook", lambda *_: None)
    start_thread(lambda: ran.append(threading.current_thread().name), "one").join()
    assert (ran, len(refused), len(lost)) == (["one"], 2, 2)


@pytest.mark.parametrize("tracer", [None, lambda *_: None])
def test_a_thread_is_a_daemon_and_begins_once(monkeypatch: pytest.MonkeyPatch, tracer: object) -> None:
    monkeypatch.setattr(threading, "_trace_hook", tracer)
    ran: list[None] = []
    thread = start_thread(lambda: ran.append(None), "one")
    thread.join()
    assert (thread.daemon, len(ran)) == (True, 1)
