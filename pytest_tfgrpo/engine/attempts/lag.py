"""Lag: finds out whether a coroutine of the agent blocks the event loop, which makes others wait."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

BEAT_S = 0.25
"""How often the loop shows that it runs, and how often that is looked at."""
LAG_S = 1.0
"""A loop that has not run its timers for so long is looked into."""
PACKAGE = f"{Path(__file__).parents[2]}/"
ACTORS = f"{PACKAGE}actors/"


@contextmanager
def watching_lag(warn: Callable[[str], None]) -> Iterator[None]:
    """Call `warn` once, on the loop, with the function that kept it from running for `LAG_S`; costs a thread.

    The stack of the loop's thread is looked at only while it lags, and blames only functions of an agent.
    """
    watch = _Watch(asyncio.get_running_loop(), warn)
    threading.Thread(target=watch.look, name="tfgrpo-lag", daemon=True).start()
    watch.beat()
    try:
        yield
    finally:
        watch.done.set()


class _Watch:
    def __init__(self, loop: asyncio.AbstractEventLoop, warn: Callable[[str], None]) -> None:
        self._loop = loop
        self._warn = warn
        self._thread = threading.get_ident()
        self._beaten_at = time.monotonic()
        self.done = threading.Event()

    def beat(self) -> None:
        """Show that the loop runs, and will."""
        self._beaten_at = time.monotonic()
        if not self.done.is_set():
            self._loop.call_later(BEAT_S, self.beat)

    def look(self) -> None:
        """Look at the loop until it is done, or somebody was found who blocks it twice in a row."""
        suspect: CodeType | None = None
        while not self.done.wait(BEAT_S):
            lag_s = time.monotonic() - self._beaten_at
            code = self._agent() if lag_s > LAG_S else None
            if code is not None and code is suspect:
                self._loop.call_soon_threadsafe(self._warn, _sentence(code, lag_s))
                return
            suspect = code

    def _agent(self) -> CodeType | None:
        """Return the agent's function that the loop's thread is in, the outermost one; None for others."""
        frame = sys._current_frames().get(self._thread)
        found: CodeType | None = None
        while frame is not None:
            if _is_called_by_actor(frame):
                found = frame.f_code
            frame = frame.f_back
        return found


def _is_called_by_actor(frame: FrameType) -> bool:
    above = frame.f_back
    outside = not frame.f_code.co_filename.startswith(PACKAGE)
    return outside and above is not None and above.f_code.co_filename.startswith(ACTORS)


def _sentence(code: CodeType, lag_s: float) -> str:
    return (
        f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno}) blocked the event loop for "
        f"{lag_s:.1f} s, so that rollouts wait for each other; await what it waits for, or make it a plain "
        "function, which runs in a thread of its own"
    )
