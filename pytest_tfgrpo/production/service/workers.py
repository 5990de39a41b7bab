"""The roles of the loop in threads of their own, which take one step after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from pytest_tfgrpo.core.errors import describe
from pytest_tfgrpo.retry import backoff_s

REST_S = 0.2
"""Between steps when there was nothing to do."""
STOP_S = 45.0
"""How long a step may take once the roles are to stop: longer than a bus waits for its server."""


class LoopRole(Protocol):
    """A part of the loop that works through the bus, by itself."""

    def step(self) -> int:
        """Do some work and return how much was done; 0: there was none."""
        ...

    def close(self) -> None:
        """Let go of what is held; the next step may be another process's."""
        ...


class _Worker:
    def __init__(self, role: LoopRole, name: str) -> None:
        self.role = role
        self.name = name
        self.failing = False
        self.thread: threading.Thread | None = None


class Workers:
    """Threads that call ``step`` of each role until they are closed."""

    def __init__(self, roles: Sequence[LoopRole], report: Callable[[str], None]) -> None:
        """`report` is called from any of the threads with what a step raised; it should take repeats."""
        self._report = report
        self._stop = threading.Event()
        self._workers = [_Worker(role, getattr(role, "name", type(role).__name__.lower())) for role in roles]

    def start(self) -> None:
        """Start the threads."""
        for worker in self._workers:
            worker.thread = threading.Thread(
                target=self._work, args=(worker,), name=f"tfgrpo-{worker.name}", daemon=True
            )
            worker.thread.start()

    def states(self) -> dict[str, str]:
        """Return ``ok`` or ``failing`` by the role's name, as its last step was."""
        return {
            worker.name: "failing" if worker.failing or not _runs(worker) else "ok"
            for worker in self._workers
        }

    def close(self) -> None:
        """Let each role end its step, and close it; one whose step does not end is reported and left."""
        self._stop.set()
        until = time.monotonic() + STOP_S
        for worker in self._workers:
            if worker.thread is not None:
                worker.thread.join(max(0.0, until - time.monotonic()))
            if _runs(worker):
                self._report(f"the {worker.name} did not stop within {STOP_S:g} s, and is left")
                continue
            try:
                worker.role.close()
            except Exception as error:  # noqa: BLE001 - the other roles are to be closed too
                self._report(f"the {worker.name} did not close: {describe(error)}")

    def _work(self, worker: _Worker) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                done = worker.role.step()
            except Exception as error:  # noqa: BLE001 - a role outlives whatever one of its steps meets
                worker.failing = True
                self._report(f"the {worker.name} failed, and tries again: {describe(error)}")
                self._stop.wait(backoff_s(failures))
                failures += 1
                continue
            worker.failing = False
            failures = 0
            if not done:
                self._stop.wait(REST_S)


def _runs(worker: _Worker) -> bool:
    return worker.thread is not None and worker.thread.is_alive()
