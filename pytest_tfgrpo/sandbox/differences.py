"""Differences: how a folder that an agent wrote to differs from the files that it was made of."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, ArchiveProblem, check_link, check_member
from pytest_tfgrpo.sandbox.bases import GIT
from pytest_tfgrpo.sandbox.paths import FOLLOWING_NOTHING, WALKED, walk_entries

CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
"""Folders that programs make again."""
INSTALLED = CACHES | {".venv", ".tox", ".nox", "node_modules"}
"""What is further left out of a project: what was installed to work on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDifference:
    """A file or link that is new, other or gone."""

    name: str
    """Path in the folder."""
    entry: ArchiveEntry | None = None
    """What it is now; None: it is gone, or has a `problem`."""
    problem: str = ""
    """Why it cannot be kept: it is a pipe, a link that leaves the folder, unreadable or large."""


def differences(
    folder: Path, base: Mapping[str, ArchiveEntry], skipped: Callable[[str], bool], max_bytes: int
) -> Iterator[FileDifference]:
    """Yield the differences, those that are gone last; no link is followed, and no time of a file trusted.

    `skipped` is called for each folder and link: whether to leave it out. One file has at most `max_bytes`.
    Raises ValueError where there are far too many entries or they lie too deep, OSError where a folder cannot
    be read.
    """
    seen: set[str] = set()

    def is_skipped(name: str, entry: os.DirEntry[str]) -> bool:
        asked = entry.is_dir(follow_symlinks=False) or entry.is_symlink() or "/" not in name
        return asked and skipped(name)

    for name, entry, within in walk_entries(folder, is_skipped, WALKED + 2 * len(base)):
        seen.add(name)
        found = _difference(name, base.get(name), entry, within, max_bytes)
        if found is not None:
            yield found
    yield from (FileDifference(name=name) for name in base if name not in seen and not _under(name, skipped))


def is_left_out(base: Mapping[str, ArchiveEntry], links: Mapping[str, Path]) -> Callable[[str], bool]:
    """Return what is left out of a project made of `base`: its repository, and what can be installed again.

    `links` are names that were put beside the project, and stay what they are.
    """
    own = {part for name in base for part in name.split("/")[:-1] if part in INSTALLED}
    left = INSTALLED - own

    def skipped(name: str) -> bool:
        return name == GIT or name in links or name.rpartition("/")[2] in left

    return skipped


def _under(name: str, skipped: Callable[[str], bool]) -> bool:
    parts = name.split("/")
    return any(skipped("/".join(parts[:count])) for count in range(1, len(parts)))


def _difference(
    name: str, was: ArchiveEntry | None, entry: os.DirEntry[str], within: int, max_bytes: int
) -> FileDifference | None:
    try:
        if entry.is_symlink():
            now = ArchiveEntry(name=name, link=os.readlink(entry.name, dir_fd=within))
        else:
            largest = max(max_bytes, 0 if was is None else len(was.data))
            now = _read(name, entry.name, within, largest)
        if now == was:
            return None
        check_member(name)
        if now.link is not None:
            check_link(name, now.link)
        if len(now.data) > max_bytes:
            raise ValueError(f"{short(name)} has {len(now.data)} bytes, more than {max_bytes}")
    except (OSError, ValueError, ArchiveProblem) as error:
        return FileDifference(name=name, problem=str(error))
    return FileDifference(name=name, entry=now)


def _read(name: str, last: str, within: int, max_bytes: int) -> ArchiveEntry:
    """Return a plain file; raises ValueError for another or a larger one, OSError."""
    # opening a pipe that nobody writes to would wait for ever
    handle = os.open(last, FOLLOWING_NOTHING | os.O_NONBLOCK, dir_fd=within)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{short(name)} is not a regular file")
        if status.st_size > max_bytes:
            raise ValueError(f"{short(name)} has {status.st_size} bytes, more than {max_bytes}")
        data = os.read(handle, status.st_size) if status.st_size else b""
        if len(data) != status.st_size:
            raise ValueError(f"{short(name)} changed while it was read")
    finally:
        os.close(handle)
    return ArchiveEntry(name=name, data=data, executable=bool(status.st_mode & stat.S_IXUSR))
