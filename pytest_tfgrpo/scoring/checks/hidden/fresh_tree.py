"""The tree that hidden tests run on: what an agent made of its sources, and all else as it must be."""

from __future__ import annotations

import math
import os
import stat
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import WorkspaceArchive
from pytest_tfgrpo.sandbox.archives import (
    ArchiveEntry,
    ArchiveProblem,
    check_link,
    check_member,
    lay,
)
from pytest_tfgrpo.sandbox.bases import open_base
from pytest_tfgrpo.sandbox.differences import INSTALLED
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.scoring.checks.hidden.protected import is_protected, lies_in, shadows

MAX_FILES = 100_000
MAX_BYTES = 1_000_000_000
"""Bytes of all files that an agent leaves; more is no work on a project."""
DEEPEST = 100
VENV = "pyvenv.cfg"
"""Lies in a virtual environment; one that an agent made is no part of its work, whatever it is called."""
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
CHUNK = 1 << 20


class TooMuch(ValueError):
    """What an agent left is too large, too deep or too many to be checked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseTree:
    """What a check needs of the tree before the fix."""

    globs: tuple[str, ...]
    """Further paths that are protected."""
    protected: tuple[ArchiveEntry, ...]
    """Its protected files."""
    places: frozenset[str]
    """All its files and folders."""
    taken: frozenset[str]
    """Its other files: what an agent makes of them is taken, and their names need no look."""

    def without(self, removed: Collection[str]) -> BaseTree:
        """Return the tree without protected files and folders that a fix removes."""
        if not removed:
            return self
        kept = tuple(entry for entry in self.protected if not lies_in(entry.name, removed))
        return replace(self, protected=kept)


@lru_cache(maxsize=4)
def read_base(archive: WorkspaceArchive, globs: tuple[str, ...]) -> BaseTree:
    """Return what an archive has, kept for the next check; raises ArchiveProblem, OSError.

    The archive has the digest that the scenario names.
    """
    protected, places, taken = [], set[str](), set[str]()
    for entry in open_base(archive).entries.values():
        if is_protected(entry.name, globs):
            protected.append(entry)
        else:
            taken.add(entry.name)
        above = entry.name
        while above and above not in places:
            places.add(above)
            above = above.rpartition("/")[0]
    return BaseTree(globs=globs, protected=tuple(protected), places=frozenset(places), taken=frozenset(taken))


def make_tree(
    source: Path,
    target: Path,
    *,
    base: BaseTree,
    hidden: Iterable[ArchiveEntry],
    environment: BuiltEnvironment | None = None,
    deadline: float = math.inf,
) -> None:
    """Fill the empty folder `target`: the agent's files of `source`, protected ones from base and `hidden`.

    An agent's files that shadow modules of others are left out, as is what is no file. No link is followed.
    Raises TooMuch, also where it lasts until `deadline` by the monotonic clock, ArchiveProblem, OSError.
    """
    roots = environment.imports if environment is not None else ()
    rules = _Rules(base=base, names=foreign_modules(environment), roots=roots)
    _Copy(rules, target, deadline).run(source)
    protected: dict[str, ArchiveEntry] = {entry.name: entry for entry in base.protected}
    protected |= {entry.name: entry for entry in hidden}
    lay((protected[name] for name in sorted(protected)), target)


@dataclass(frozen=True, slots=True)
class _Rules:
    base: BaseTree
    names: frozenset[str]
    roots: tuple[str, ...]

    def skips_folder(self, path: str) -> bool:
        """Return whether nothing of a folder is taken: it is protected, or holds what is installed."""
        if path.rpartition("/")[2] in INSTALLED and path not in self.base.places:
            return True
        return is_protected(f"{path}/x", self.base.globs)

    def skips(self, path: str, packages: set[str]) -> bool:
        """Return whether an agent's file is left out."""
        if path in self.base.taken:
            return False
        if is_protected(path, self.base.globs) or not _plain(path):
            return True
        return shadows(path, self.names, packages, self.roots, self.base.places)


class _Copy:
    """Copies files by descriptors; an agent's links lead nowhere."""

    def __init__(self, rules: _Rules, target: Path, deadline: float) -> None:
        self._rules = rules
        self._target = target
        self._deadline = deadline
        self._packages: set[str] = set()
        self._files = MAX_FILES
        self._bytes = MAX_BYTES

    def run(self, source: Path) -> None:
        within = os.open(source, OPEN | os.O_DIRECTORY)
        try:
            self._folder(within, "", 0)
        finally:
            os.close(within)

    def _folder(self, within: int, path: str, depth: int) -> None:
        if depth > DEEPEST:
            raise TooMuch(f"there are folders more than {DEEPEST} deep")
        with os.scandir(within) as entries:
            found = sorted(islice(entries, self._files + 1), key=lambda entry: entry.name)
        if path and path not in self._rules.base.places and any(entry.name == VENV for entry in found):
            return
        if any(entry.name == "__init__.py" for entry in found):
            self._packages.add(path)
        made = None
        try:
            for entry in found:
                self._files -= 1
                if self._files < 0:
                    raise TooMuch(f"there are more than {MAX_FILES} files and folders")
                if time.monotonic() > self._deadline:
                    raise TooMuch("there are more files than can be copied in time")
                name = f"{path}/{entry.name}" if path else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not self._rules.skips_folder(name):
                        self._below(within, entry.name, name, depth)
                elif not self._rules.skips(name, self._packages):
                    made = self._make(path) if made is None else made
                    self._file(within, entry, name, made)
        finally:
            if made is not None:
                os.close(made)

    def _make(self, path: str) -> int:
        """Return the descriptor of a folder of the new tree, which is made."""
        folder = self._target / path
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder, OPEN | os.O_DIRECTORY)

    def _below(self, within: int, last: str, name: str, depth: int) -> None:
        try:
            below = os.open(last, OPEN | os.O_DIRECTORY, dir_fd=within)
        except OSError:  # the agent made it unreadable, or something else by now
            return
        try:
            self._folder(below, name, depth + 1)
        finally:
            os.close(below)

    def _file(self, within: int, entry: os.DirEntry[str], name: str, made: int) -> None:
        if entry.is_symlink():
            self._link(within, entry.name, name, made)
            return
        try:
            handle = os.open(entry.name, OPEN, dir_fd=within)
        except OSError:
            return
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return
            self._bytes -= status.st_size
            if self._bytes < 0:
                raise TooMuch(f"its files have more than {MAX_BYTES} bytes")
            mode = 0o777 if status.st_mode & stat.S_IXUSR else 0o666
            new = os.open(entry.name, NEW, mode, dir_fd=made)
            try:
                _pour(handle, new, status.st_size)
            finally:
                os.close(new)
        finally:
            os.close(handle)

    @staticmethod
    def _link(within: int, last: str, name: str, made: int) -> None:
        try:
            target = os.readlink(last, dir_fd=within)
            check_link(name, target)
            os.symlink(target, last, dir_fd=made)
        except (OSError, ValueError):
            return


def _pour(handle: int, new: int, size: int) -> None:
    """Copy what one file has, of `size` bytes as it was opened, into another."""
    room = min(size, CHUNK) + 1
    while chunk := os.read(handle, room):
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(new, rest) :]
        if len(chunk) < room:  # the end of a plain file
            return


def _plain(name: str) -> bool:
    """Return whether an archive could hold a file of this name."""
    try:
        check_member(name)
    except ArchiveProblem:
        return False
    return True


def foreign_modules(environment: BuiltEnvironment | None) -> frozenset[str]:
    """Return the top-level modules that a workspace must not stand in for."""
    if environment is not None and environment.python is not None:
        prefix = environment.python.parent.parent
        folders = tuple(str(folder) for folder in sorted(prefix.glob("lib/python3*/site-packages")))
    else:
        folders = tuple(place for place in sys.path if Path(place).name in ("site-packages", "dist-packages"))
    return frozenset(sys.stdlib_module_names) | _installed(folders)


@lru_cache(maxsize=64)
def _installed(folders: tuple[str, ...]) -> frozenset[str]:
    found = set[str]()
    for folder in folders:
        try:
            names = os.listdir(folder)  # noqa: PTH208 - names alone
        except OSError:
            continue
        found.update(name.partition(".")[0] for name in names if not name.endswith((".dist-info", ".pth")))
    return frozenset(found - {""})


def distinctive_lines(
    reference: Mapping[str, bytes], base: Mapping[str, bytes], most: int
) -> tuple[str, ...]:
    """Return up to `most` lines that files of a fix have and those of the base have not, the longest first.

    A line counts that has 12 characters or more, 6 of them letters or digits.
    """
    before = {row for data in base.values() for row in _rows(data)}
    found = dict.fromkeys(row for data in reference.values() for row in _rows(data) if row not in before)
    told = [row for row in found if len(row) >= 12 and sum(map(str.isalnum, row)) >= 6]
    return tuple(sorted(told, key=lambda row: (-len(row), row))[:most])


def _rows(data: bytes) -> list[str]:
    try:
        return [row.strip() for row in data.decode().splitlines()]
    except UnicodeDecodeError:
        return []
