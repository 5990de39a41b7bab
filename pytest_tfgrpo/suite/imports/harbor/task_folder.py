"""The folder of a task, which somebody else wrote: no link in it is followed, nothing large is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, ArchiveProblem, check_link
from pytest_tfgrpo.sandbox.paths import descend, open_untrusted, walk

TEXT_MAX_BYTES = 1_000_000
FILES_MAX_BYTES = 200_000_000
"""Bytes of all files of a task that become parts of its scenario."""


class TaskProblem(ValueError):
    """A task that no scenario can stand for; the message says why."""


class TaskFolder:
    """The files of one task; everything raises TaskProblem, with the name of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._room = FILES_MAX_BYTES

    @property
    def name(self) -> str:
        """The name of the task: that of its folder."""
        return self.path.resolve().name

    def holds(self, name: str) -> bool:
        """Return whether there is something of a name, even a link that leads nowhere."""
        return os.path.lexists(self.path / name)

    def text(self, name: str) -> str:
        """Return the text of a file, line ends as they are."""
        data = self.data(name, TEXT_MAX_BYTES)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise TaskProblem(f"{name} is no UTF-8 text") from None

    def data(self, name: str, largest: int = FILES_MAX_BYTES) -> bytes:
        """Return the bytes of a file."""
        return self._read(name, largest)[0]

    def files(self, under: str) -> Mapping[str, ArchiveEntry]:
        """Return the files and links below a folder, by their names in it; none where it is missing."""
        return {name: self._entry(under, name) for name in self.names(under)}

    def names(self, under: str) -> list[str]:
        """Return the names of these, sorted."""
        if not self.holds(under):
            return []
        try:
            return sorted(walk(self.path / under))
        except (OSError, ValueError) as error:
            raise TaskProblem(f"{under}/: {_said(error)}") from None

    def _entry(self, under: str, name: str) -> ArchiveEntry:
        path = f"{under}/{name}"
        try:
            target = self._link(path)
        except OSError as error:
            raise TaskProblem(f"{under}/: {_said(error)}") from None
        if target is None:
            data, executable = self._read(path, FILES_MAX_BYTES)
            return ArchiveEntry(name=name, data=data, executable=executable)
        try:
            check_link(name, target)
        except ArchiveProblem as error:
            raise TaskProblem(f"{under}/: {error}") from None
        return ArchiveEntry(name=name, link=target)

    def _link(self, path: str) -> str | None:
        *parents, last = path.split("/")
        within = descend(self.path, parents)
        try:
            status = os.lstat(last, dir_fd=within)
            return os.readlink(last, dir_fd=within) if stat.S_ISLNK(status.st_mode) else None
        finally:
            os.close(within)

    def _read(self, name: str, largest: int) -> tuple[bytes, bool]:
        limit = min(largest, self._room)
        try:
            with open_untrusted(self.path, name, limit) as file:
                executable = bool(os.fstat(file.fileno()).st_mode & stat.S_IXUSR)
                data = file.read(limit)
        except FileNotFoundError:
            raise TaskProblem(f"it has no {name}") from None
        except (OSError, ValueError) as error:
            raise TaskProblem(_said(error)) from None
        self._room -= len(data)
        return data, executable


def _said(error: Exception) -> str:
    return f"{short(error.filename)}: {error.strerror}" if isinstance(error, OSError) else str(error)
