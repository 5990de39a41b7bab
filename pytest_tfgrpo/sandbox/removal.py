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

from pytest_tfgrpo.core.texts.named_values import short

FEW = 8
"""Files of a folder that is deleted faster than another thread is woken."""
LISTED = 10_000
"""Names of one folder that are held in memory at once."""
NO_FOLDER = (errno.ENOTDIR, errno.ELOOP)
"""What opening something else as a folder gives."""
NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)
OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that open a folder, and nothing through a link."""


def never() -> bool:
    """Return False: a removal that takes as long as it takes."""
    return False


def remove(folder: Path, stop: Callable[[], bool] = never) -> str:
    """Delete `folder` with all that is in it; return why something is left, and nothing when all is gone.

    It follows no link and enters no mounted file system. A subfolder that is not empty moves up into `folder`
    before it is emptied, so that neither the depth nor the length of a path counts, and three descriptors
    suffice. Between two entries `stop` is called: whether to end early. Raises nothing.
    """
    try:
        parent = os.open(folder.parent, OPEN & ~os.O_NOFOLLOW)
    except OSError as error:
        return "" if error.errno == errno.ENOENT else _reason(folder.name, error)
    try:
        return remove_in(folder.name, parent, stop)
    finally:
        os.close(parent)


def remove_few(folder: Path) -> bool:
    """Delete `folder` if it holds nothing but a few files; return whether it is gone. Raises nothing."""
    try:
        handle = os.open(folder, OPEN)
        try:
            with os.scandir(handle) as entries:
                found = list(islice(entries, FEW + 1))
            if len(found) > FEW or any(entry.is_dir(follow_symlinks=False) for entry in found):
                return False
            for entry in found:
                os.unlink(entry.name, dir_fd=handle)
        finally:
            os.close(handle)
        folder.rmdir()
    except OSError:
        return False
    return True


def remove_in(name: str, parent: int, stop: Callable[[], bool] = never) -> str:
    """Delete what is called `name` in the folder with the descriptor `parent`; as `remove`."""
    try:
        top = open_folder(name, parent)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _unlink(name, parent) if error.errno in NO_FOLDER else _reason(name, error)
    try:
        return _Removal(top, stop).run(name, parent)
    finally:
        os.close(top)


def _unlink(name: str, parent: int) -> str:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _reason(name, error)
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
    """Deletes one folder, `top`. Each call of the kernel costs the other threads of a run their turn."""

    def __init__(self, top: int, stop: Callable[[], bool]) -> None:
        self._top = top
        self._stop = stop
        self._moved = ""
        """Start of the names of what was moved up."""
        self._numbers = count()
        self._waiting: list[str] = []
        """Folders in `top` that are still to be removed."""
        self._left = ""
        """Why the first of what is left is left."""

    def run(self, name: str, parent: int) -> str:
        """Return why something is left, nothing when all is gone."""
        try:
            self._remove_folder(name, parent, self._top)
        except FileNotFoundError:
            pass
        except _Stopped:
            return self._left or "out of time"
        except OSError as error:
            self._leave(name, error)
        return self._left

    def _remove_moved(self, name: str) -> None:
        try:
            folder = open_folder(name, self._top)
            try:
                self._remove_folder(name, self._top, folder)
            finally:
                os.close(folder)
        except OSError as error:
            self._leave(name, error)

    def _remove_folder(self, name: str, parent: int, folder: int) -> None:
        """Empty and delete a folder, over and over: listing what changes may miss entries."""
        stuck: set[str] = set()
        while self._empty(folder, stuck):
            while folder == self._top and self._waiting:
                self._remove_moved(self._waiting.pop())
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError as error:
                if error.errno not in NOT_EMPTY:
                    raise
            else:
                return
        os.rmdir(name, dir_fd=parent)

    def _empty(self, folder: int, stuck: set[str]) -> bool:
        """Delete what is in a folder or move it up; return whether there was anything that is not stuck."""
        with os.scandir(folder) as entries:
            news = (e for e in entries if e.name not in stuck and not self._is_moved(e.name))
            found = [(e.name, e.is_dir(follow_symlinks=False)) for e in islice(news, LISTED)]
        for name, is_folder in found:
            if self._stop():
                raise _Stopped
            if not self._remove_entry(name, folder, is_folder):
                stuck.add(name)
        return bool(found)

    def _is_moved(self, name: str) -> bool:
        return bool(self._moved) and name.startswith(self._moved)

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
            if error.errno not in NOT_EMPTY:
                raise
        else:
            return
        self._moved = self._moved or f".{secrets.token_hex(8)}-"
        moved = f"{self._moved}{next(self._numbers)}"
        try:
            os.rename(name, moved, src_dir_fd=folder, dst_dir_fd=self._top)
        except PermissionError:  # a folder that cannot be written to cannot move either
            _unlock(name, folder)
            os.rename(name, moved, src_dir_fd=folder, dst_dir_fd=self._top)
        self._waiting.append(moved)

    def _leave(self, name: str, error: OSError) -> None:
        self._left = self._left or _reason(name, error)


def _reason(name: str, error: OSError) -> str:
    return f"{short(name)}: {error.strerror}" if name else str(error.strerror)
