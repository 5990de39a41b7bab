"""Write files into a folder that others wrote to: nothing is written through a link."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.sandbox.removal import OPEN, open_folder, remove_in

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeWriter:
    """Puts files and links below a folder; what stands in their way is removed.

    Use it as a context manager. Names are checked before (`archives.check_member`): relative, without ``..``.
    """

    def __init__(self, folder: Path) -> None:
        """Open the folder, which may hold what an agent left; raises OSError."""
        self._top = os.open(folder, OPEN)
        self._at = ""
        """The folder of the last entry: entries come sorted, so the next one mostly has the same."""
        self._within = self._top

    def __enter__(self) -> TreeWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        os.close(self._top)

    def file(self, name: str, data: bytes, *, executable: bool) -> None:
        """Write a file, 0o755 or 0o644 less the mask of the process; raises OSError."""
        within, last = self._enter(name)
        mode = 0o777 if executable else 0o666
        try:
            handle = os.open(last, NEW_FILE, mode, dir_fd=within)
        except FileExistsError:
            _clear(last, within)
            handle = os.open(last, NEW_FILE, mode, dir_fd=within)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
        finally:
            os.close(handle)

    def link(self, name: str, target: str) -> None:
        """Make a symbolic link; raises OSError."""
        within, last = self._enter(name)
        try:
            os.symlink(target, last, dir_fd=within)
        except FileExistsError:
            _clear(last, within)
            os.symlink(target, last, dir_fd=within)

    def delete(self, name: str) -> None:
        """Remove a file, link or folder; nothing happens where there is none. Raises OSError."""
        *parents, last = name.split("/")
        self._leave()
        within = os.dup(self._top)
        try:
            for part in parents:
                try:
                    below = os.open(part, OPEN, dir_fd=within)
                except OSError:  # no folder: there is no such file, and a link on the way leads elsewhere
                    return
                os.close(within)
                within = below
            _clear(last, within)
        finally:
            os.close(within)

    def _enter(self, name: str) -> tuple[int, str]:
        """Return the descriptor of the folder of `name`, which is made, and the last part of the name."""
        folder, _, last = name.rpartition("/")
        if folder != self._at:
            self._leave()
            for part in folder.split("/") if folder else ():
                below = _folder(part, self._within)
                self._leave()
                self._within = below
            self._at = folder
        return self._within, last

    def _leave(self) -> None:
        if self._within != self._top:
            os.close(self._within)
        self._within, self._at = self._top, ""


def _folder(name: str, within: int) -> int:
    """Return the descriptor of a folder, made where there is none or something else."""
    try:
        return open_folder(name, within)
    except FileNotFoundError:
        pass
    except OSError:
        _clear(name, within)
    os.mkdir(name, dir_fd=within)
    return os.open(name, OPEN, dir_fd=within)


def _clear(name: str, within: int) -> None:
    if reason := remove_in(name, within):
        raise OSError(f"{short(name)} cannot be replaced: {reason}")
