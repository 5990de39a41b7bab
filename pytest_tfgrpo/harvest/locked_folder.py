"""Temporary folders that are locked while they are in use, and removed when their process is gone."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_tfgrpo.sandbox.removal import remove

WORK, GIT = "tfgrpo-harvest-", "tfgrpo-history-"
"""How the folders of a harvest begin, and those through which it reads a repository."""


@contextmanager
def locked_folder(prefix: str) -> Iterator[Path]:
    """Make a private folder that goes in the end, and remove what killed processes left; raises OSError."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        _remove_left(left)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some file systems have no locks, and there nothing is removed
            fcntl.flock(handle, fcntl.LOCK_EX)  # who looks whether it is left has it for a moment
        yield folder
    finally:
        remove(folder)
        os.close(handle)


def _remove_left(folder: Path) -> None:
    """Remove a folder of this user that nobody has locked."""
    with suppress(OSError):
        status = folder.lstat()
        if status.st_uid != os.geteuid() or folder.is_symlink():
            return
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if any(folder.iterdir()):  # one that was made just now is empty
                remove(folder)
        finally:
            os.close(handle)
