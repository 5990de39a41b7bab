"""Files that decide which tests run: whether a run changed one, as its tests can write to their folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TypeAlias

from pytest_tfgrpo.scoring.runners.protocol import SuiteRequest

CONFIGURATION = ("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml",
                 "tox.ini", "setup.cfg")  # fmt: skip
"""What pytest reads in the folder of a test and in those above it."""

_State: TypeAlias = "tuple[int, ...] | None"


class DecidingFiles:
    """The files of the tests and what configures them, as they were before the first process.

    A module that the tests import could write others in their place, to be read by what is collected after
    it or by the next process. No program can set the time that the kernel keeps of a change, so one that
    puts the old content back is seen as well.
    """

    def __init__(self, request: SuiteRequest) -> None:
        """Look at the files of a request."""
        self._tree = request.tree
        self._before = {name: self._state(name) for name in sorted(set(_names(request)))}

    def changed(self) -> str:
        """Return what is wrong with the files now; "" if nothing is."""
        for name, before in self._before.items():
            if self._state(name) != before:
                return f"{name!r} was written while the tests ran"
        return ""

    def _state(self, name: str) -> _State:
        try:
            status = (self._tree / name).stat()
        except (OSError, ValueError):
            return None
        return (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _names(request: SuiteRequest) -> Iterator[str]:
    yield from request.files
    folders = {PurePosixPath(request.command.folder)}
    folders |= {above for name in request.files for above in PurePosixPath(name).parents}
    folders |= {above for below in folders for above in below.parents}
    for folder in folders:
        yield from (str(folder / name) for name in CONFIGURATION)
