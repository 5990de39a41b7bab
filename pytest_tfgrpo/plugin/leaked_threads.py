"""Threads that a fixture or its agent starts and leaves running: each fixture is named once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

import pytest

GRACE_S = 0.2
"""How long a thread may take to end after what started it was torn down."""
OURS = ("tfgrpo", "asyncio_", "asyncio-waitpid-")
"""Starts of the names of the engine's own threads."""


class LeakedThreads:
    """Looks at the threads around fixtures, where no agent runs beside that could start some."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """`warn` is told of the first thread that a fixture leaves."""
        self._warn = warn
        self._started: dict[str, set[threading.Thread]] = {}
        """Threads by the fixture whose set-up they began in, and are not of one that it needs."""
        self._known: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Note what threads the set-up of a fixture starts."""
        before = set(threading.enumerate())
        try:
            return (yield)
        finally:
            found = {t for t in set(threading.enumerate()) - before if not t.name.startswith(OURS)}
            if found:
                self._started.setdefault(fixturedef.argname, set()).update(found)

    @pytest.hookimpl(trylast=True)
    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """Say which of them outlive it."""
        name = fixturedef.argname
        for thread in self._started.pop(name, ()):
            if name in self._known:
                return
            with suppress(RuntimeError):  # `enumerate` lists a thread before it has started
                thread.join(GRACE_S)
            if thread.is_alive():
                self._known.add(name)
                who = "an agent of a fixture" if name == "rollout" else f"the fixture {name!r}"
                self._warn(
                    f"{who} leaves the thread {thread.name!r} running after its tear-down, and perhaps more; "
                    "end and join it there"
                )
