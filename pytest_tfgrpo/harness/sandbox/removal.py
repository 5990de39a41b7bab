"""Removal: delete a folder that an agent wrote to, however deep, large or strange it is."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path

from pytest_tfgrpo.core.schema import short

LISTED = 10_000
"""Names of one folder that are held in memory at once."""
OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that open a folder, and nothing through a link."""


def never() -> bool:
    """Return False: a removal that takes as long as it takes."""
    return False


def remove(folder: Path, stop: Callable[[], bool] = never) -> str:
    """Delete `folder` with all that is in it; return why something is left, and nothing when all is gone.

    It follows no link and enters no mounted file system. A subfolder that is not empty moves up into `folder`
    before it is emptied, so that neither the depth nor the length of a path counts, and three descriptors
    suffice. Between two entries `stop` is asked whether to end early. Raises nothing.
    """
    try:
        parent = os.open(folder.parent, OPEN & ~os.O_NOFOLLOW)
    except OSError as error:
        return "" if error.errno == errno.ENOENT else _reason(folder.name, error)
    try:
        return _remove(folder.name, parent, stop)
    finally:
        os.close(parent)


def _remove(name: str, parent: int, stop: Callable[[], bool]) -> str:
    try:
        if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
            os.unlink(name, dir_fd=parent)
            return ""
        top = open_folder(name, parent)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _reason(name, error)
    removal = _Removal(top, stop)
    try:
        removal.run()
    finally:
        os.close(top)
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return removal.reason or _reason(name, error)
    return ""


def open_folder(name: str | Path, parent: int | None = None) -> int:
    """Return the descriptor of a folder that its owner can change; raises OSError, also for a link."""
    try:
        handle = os.open(name, OPEN, dir_fd=parent)
    except PermissionError:
        _unlock(name, parent)
        handle = os.open(name, OPEN, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(handle, mode | stat.S_IRWXU)
    except OSError:
        os.close(handle)
        raise
    return handle


def _unlock(name: str | Path, parent: int | None) -> None:
    """Give the owner of a folder all rights to it, through no link; raises OSError."""
    if sys.platform == "linux":  # which cannot change the mode of what might be a link by its name
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
        handle = os.open(name, flags, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)  # noqa: PTH101 - a descriptor, not a path
        finally:
            os.close(handle)
    else:
        os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)


class _Stopped(Exception):
    """The removal is to end early."""


class _Removal:
    """Empties one folder, `top`."""

    def __init__(self, top: int, stop: Callable[[], bool]) -> None:
        self._top = top
        self._stop = stop
        self._moved = f".{secrets.token_hex(8)}-"
        """Start of the names of what was moved up."""
        self._numbers = count()
        self._waiting: list[str] = []
        """Folders in `top` that are still to be emptied."""
        self.reason = ""
        """Why the first of what is left is left."""

    def run(self) -> None:
        try:
            self._empty(self._top)
            while self._waiting:
                self._remove_moved(self._waiting.pop())
        except _Stopped:
            self.reason = self.reason or "out of time"

    def _remove_moved(self, name: str) -> None:
        try:
            folder = open_folder(name, self._top)
            try:
                self._empty(folder)
            finally:
                os.close(folder)
            os.rmdir(name, dir_fd=self._top)
        except OSError as error:
            self._leave(name, error)

    def _empty(self, folder: int) -> None:
        """Delete what is in a folder or move it up, over and over: listing what changes may miss entries."""
        stuck: set[str] = set()
        while True:
            try:
                with os.scandir(folder) as entries:
                    news = (e for e in entries if e.name not in stuck and not e.name.startswith(self._moved))
                    found = [(e.name, e.is_dir(follow_symlinks=False)) for e in islice(news, LISTED)]
            except OSError as error:
                self._leave("", error)
                return
            if not found:
                return
            for name, is_folder in found:
                if self._stop():
                    raise _Stopped
                if not self._remove_entry(name, folder, is_folder):
                    stuck.add(name)

    def _remove_entry(self, name: str, folder: int, is_folder: bool) -> bool:
        try:
            if not is_folder:
                os.unlink(name, dir_fd=folder)
            else:
                self._remove_or_move(name, folder)
        except FileNotFoundError:
            return True
        except OSError as error:
            self._leave(name, error)
            return False
        return True

    def _remove_or_move(self, name: str, folder: int) -> None:
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return
        moved = f"{self._moved}{next(self._numbers)}"
        try:
            os.rename(name, moved, src_dir_fd=folder, dst_dir_fd=self._top)
        except PermissionError:  # a folder that cannot be written to cannot move either
            _unlock(name, folder)
            os.rename(name, moved, src_dir_fd=folder, dst_dir_fd=self._top)
        self._waiting.append(moved)

    def _leave(self, name: str, error: OSError) -> None:
        self.reason = self.reason or _reason(name, error)


def _reason(name: str, error: OSError) -> str:
    return f"{short(name)}: {error.strerror}" if name else str(error.strerror)
