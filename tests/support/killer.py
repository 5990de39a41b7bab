"""A pytest plugin that kills its process at a named point of a run, once; loaded with ``-p support.killer``.

``KILL`` is ``PLACE:N``, the N-th time that a place is reached; ``KILL_MARK`` a file that is made when it is.
A worker of xdist dies with its controller, which then leads a process group of its own. With ``KILL_BY=disk``
no file can grow from then on instead. Without ``KILL`` the file receives how often each place is reached.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.learning.library.experience_store import ExperienceStore
from pytest_tfgrpo.runs.journal import journal
from pytest_tfgrpo.runs.journal.journal import Journal

POINT = os.environ.get("KILL", "")
MARK = Path(os.environ.get("KILL_MARK", "mark"))
DELAY_S = float(os.environ.get("KILL_DELAY_S", "0"))
WRITE = vars(ExperienceStore)["_write"]
reached: Counter[str] = Counter()
patch = pytest.MonkeyPatch()


def at(place: str) -> bool:
    """Count a place; returns whether the end is here."""
    reached[place] += 1
    return f"{place}:{reached[place]}" == POINT and not MARK.exists()


def die() -> None:
    time.sleep(DELAY_S)
    MARK.touch()
    if os.environ.get("KILL_BY") == "disk":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        return
    if os.getpgid(0) == os.getppid() and "PYTEST_XDIST_WORKER" in os.environ:
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def reach(place: str) -> None:
    if at(place):
        die()


def append(self: Journal, event: str, data: Any, really: Any = Journal.append) -> None:
    reach(f"before {event}")
    if at(f"within {event}"):
        line = journal.encode(self.events + 1, event, data)
        os.write(self._file.fileno(), line[: len(line) // 2])
        die()
    really(self, event, data)
    reach(f"after {event}")
    reach("event")


def replace(self: Path, target: Path, really: Any = Path.replace) -> Path:
    reach(f"before {target.name}")
    result: Path = really(self, target)
    reach(f"after {target.name}")
    return result


def write(self: ExperienceStore, blob: bytes, really: Any = WRITE) -> None:
    reach("before store")
    if at("within store"):
        os.write(vars(self)["_fd"], blob[: len(blob) // 2])
        die()
    really(self, blob)
    reach("after store")


def fsync(fd: int, really: Any = os.fsync) -> None:
    reach("before fsync")
    really(fd)
    reach("after fsync")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and config.getoption("numprocesses", None):
        return  # the run is in the worker
    reached.clear()
    patch.setattr(Journal, "append", append)
    patch.setattr(Path, "replace", replace)
    patch.setattr(ExperienceStore, "_write", write)
    patch.setattr(os, "fsync", fsync)


def pytest_unconfigure(config: pytest.Config) -> None:
    patch.undo()
    if not POINT and reached:
        MARK.write_text(json.dumps(reached))
