"""A folder that becomes one tree after another, each time as fresh as new, and writes only what differs.

Tests may have changed any file in between. What the kernel keeps of each (its time of change cannot be set)
shows which are as they were written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import TypeAlias

from pytest_tfgrpo.sandbox.archives import ArchiveEntry, lay
from pytest_tfgrpo.sandbox.removal import remove

Tree: TypeAlias = Mapping[str, ArchiveEntry]
"""Files and links by name."""
FileState: TypeAlias = tuple[int, ...]


class WorkTree:
    """A folder of its own; used by one thread."""

    def __init__(self, folder: Path) -> None:
        """Take a folder that nobody else writes to; it is made by `become`."""
        self.folder = folder
        self._written: dict[str, tuple[ArchiveEntry, FileState]] = {}

    def become(self, tree: Tree) -> None:
        """Let the folder hold `tree` and nothing else; raises OSError, ArchiveProblem.

        Runs no test while it works. A file whose name is a folder of another gives way to that one.
        """
        folders = _folders(tree)
        wanted = {name: entry for name, entry in tree.items() if name not in folders}
        try:
            self._prepare()
            kept = self._keep(wanted, folders)
        except OSError:  # something that tests left cannot be looked at: all of it goes
            self._discard()
            self._prepare()
            kept = set()
        missing = [entry for name, entry in wanted.items() if name not in kept]
        self._written = {name: self._written[name] for name in kept}
        lay(missing, self.folder)
        self._written.update((entry.name, (entry, self._state(entry.name))) for entry in missing)

    def _prepare(self) -> None:
        if self.folder.is_symlink() or not self.folder.is_dir():
            self._discard()
            self.folder.mkdir(parents=True, mode=0o700)
        self.folder.chmod(0o700)

    def _discard(self) -> None:
        """Remove the folder; raises OSError where something stays."""
        self._written = {}
        if self.folder.is_symlink() or self.folder.is_file():
            self.folder.unlink()
        if reason := remove(self.folder):
            raise OSError(f"{self.folder} cannot be removed: {reason}")

    def _keep(self, wanted: Tree, folders: Set[str]) -> set[str]:
        """Remove all that `wanted` has not, or has otherwise; return the names of what stays."""
        kept, made = set(), _folders(self._written)
        for name, entry in self._found(folders & made):
            if entry.is_dir(follow_symlinks=False):
                if reason := remove(self.folder / name):
                    raise OSError(f"{self.folder / name} cannot be removed: {reason}")
            elif self._is_as_wanted(entry, wanted.get(name), self._written.get(name)):
                kept.add(name)
            else:
                (self.folder / name).unlink()
        return kept

    @staticmethod
    def _is_as_wanted(
        found: os.DirEntry[str], wanted: ArchiveEntry | None, known: tuple[ArchiveEntry, FileState] | None
    ) -> bool:
        if known is None or not (known[0] is wanted or known[0] == wanted):
            return False
        return known[1] == _seen(found.stat(follow_symlinks=False))

    def _found(self, folders: Set[str]) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yield what lies in the folder: files, links, and each folder that is not one of `folders`."""
        waiting = [""]
        while waiting:
            within = waiting.pop()
            with os.scandir(self.folder / within) as entries:
                found = list(entries)
            for entry in found:
                name = f"{within}/{entry.name}" if within else entry.name
                if name in folders and entry.is_dir(follow_symlinks=False):
                    (self.folder / name).chmod(0o700)
                    waiting.append(name)
                else:
                    yield name, entry

    def _state(self, name: str) -> FileState:
        return _seen((self.folder / name).lstat())


def _seen(status: os.stat_result) -> FileState:
    """Return what changes with any change of a file."""
    return (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _folders(names: Iterable[str]) -> set[str]:
    """Return all folders above some names."""
    found: set[str] = set()
    for name in names:
        at = name.rfind("/")
        while at > 0 and (above := name[:at]) not in found:
            found.add(above)
            at = above.rfind("/")
    return found
