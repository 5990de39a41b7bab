"""Threads that certainly begin."""

from __future__ import annotations

import threading
from collections.abc import Callable

_LOOK_S = 0.01


def start_thread(target: Callable[[], object], name: str) -> threading.Thread:
    """Return a daemon thread that has begun to call `target`.

    Under coverage or a debugger, Python 3.11 ends a new thread before its first line if another one begins
    to be traced meanwhile and an audit hook is written in Python; nobody hears of it. It is started again.
    """
    if threading.gettrace() is None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread
    begun = threading.Event()

    def traced() -> None:
        begun.set()
        target()

    while True:
        thread = threading.Thread(target=traced, name=name, daemon=True)
        thread.start()
        while thread.is_alive() and not begun.wait(_LOOK_S):
            pass
        if begun.is_set():
            return thread
