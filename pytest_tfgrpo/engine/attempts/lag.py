"""Lag: finds out whether a coroutine of the agent blocks the event loop, which makes others wait."""

from __future__ import annotations

import asyncio
import linecache
import re
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from pytest_tfgrpo.core.texts.text import line

BEAT_S = 0.25
"""How often the loop shows that it runs, and how often that is looked at."""
LAG_S = 1.0
"""A loop that has not run its timers for so long is looked into."""
SAMPLE_S = 0.05
"""How often a loop that is late is looked at."""
SOURCE = 120
"""Characters of a line of code that are shown."""
LIBRARIES = tuple({f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_CLIENT = re.compile(r"(?:httpx\.)?(?:Async)?Client\(|(?:Async)?(?:Azure)?(?:OpenAI|Anthropic)\(")
"""What coroutines block the loop with most often."""
PACKAGE = f"{Path(__file__).parents[2]}/"
ACTORS = f"{PACKAGE}actors/"


class Blocker(NamedTuple):
    """What the loop's thread was in when it was looked at."""

    code: CodeType
    """The agent's function."""
    file: str
    line: int
    """Where the innermost code of the project was."""
    called: str
    """What of a library that had called; empty for none."""


@contextmanager
def watching_lag(warn: Callable[[str], None]) -> Iterator[None]:
    """Call `warn` once, on the loop, with the function that kept it from running for `LAG_S`; costs a thread.

    The stack of the loop's thread is looked at only while it lags, and blames only functions of an agent, at
    the line of the agent's own code that they were in most often.
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
        """Look at the loop until it is done, or somebody was found who blocks it twice in a row.

        From half of LAG_S on it is looked at each SAMPLE_S, and the line found most often is named.
        """
        seen: list[Blocker] = []
        while not self.done.wait(SAMPLE_S if seen else BEAT_S):
            lag_s = time.monotonic() - self._beaten_at
            blocker = self._agent() if lag_s > LAG_S / 2 else None
            if blocker is None or (seen and blocker.code is not seen[0].code):
                seen.clear()
            if blocker is not None:
                seen.append(blocker)
            if lag_s > LAG_S and len(seen) > 1:
                (most, _), *_ = Counter(seen).most_common(1)
                self._loop.call_soon_threadsafe(self._warn, _sentence(most, lag_s))
                return

    def _agent(self) -> Blocker | None:
        """Return the agent's function that the loop's thread is in, the outermost one; None for others."""
        frame = sys._current_frames().get(self._thread)
        inner: Blocker | None = None
        found: Blocker | None = None
        called = ""
        while frame is not None:
            code = frame.f_code
            here = Blocker(code, code.co_filename, frame.f_lineno, called)
            called_by_actor = _is_called_by_actor(frame)
            if inner is None and (_is_own(code) or called_by_actor):  # below may be a program of the project
                inner = here
            if called_by_actor:
                found = here
            called = code.co_qualname
            frame = frame.f_back
        return found if found is None or inner is None else inner._replace(code=found.code)


def _is_called_by_actor(frame: FrameType) -> bool:
    above = frame.f_back
    outside = not frame.f_code.co_filename.startswith(PACKAGE)
    return outside and above is not None and above.f_code.co_filename.startswith(ACTORS)


def _is_own(code: CodeType) -> bool:
    """Return whether code is written in the project, and not installed, frozen or made by a library."""
    name = code.co_filename
    return not name.startswith((PACKAGE, *LIBRARIES, "<"))


def _sentence(blocker: Blocker, lag_s: float) -> str:
    called = f", in {blocker.called}" if blocker.called else ""
    source = linecache.getline(blocker.file, blocker.line)
    shown = f": {line(source, SOURCE)}" if source.strip() else ""
    client = _CLIENT.search(source)
    advice = (
        f"make the client once, at import: each {client[0]}...) loads certificates"
        if client
        else "await what it waits for, or make it a plain function, which runs in a thread of its own"
    )
    return (
        f"{blocker.code.co_qualname} blocked the event loop for {lag_s:.1f} s, so that rollouts wait for "
        f"each other, at {blocker.file}:{blocker.line}{called}{shown}; {advice}"
    )
