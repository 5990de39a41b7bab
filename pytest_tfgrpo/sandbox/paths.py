"""Files named by hostile input: they must be plain files that stay in the folder they belong to."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from pytest_tfgrpo.core.files import JOURNAL, JOURNAL_START, RUNS
from pytest_tfgrpo.core.texts.named_values import short

FOLLOWING_NOTHING = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that open something to read it, and nothing through a link."""
FEW_FILES, FEW_BYTES = 4, 16_384
"""What the engine's own thread reads of a workspace: less than handing it to another thread costs."""
WALKED, DEEPEST_WALKED = 100_000, 100
DEEPEST = 32
"""Folders on the way to a file that is written; each costs a descriptor for a moment."""


def check_name(name: str) -> None:
    """Raise ValueError unless `name` is a plain relative path: no ``..``, no root, nothing unprintable."""
    plain = name.isprintable() and "\\" not in name and name not in ("", ".")
    path = PurePosixPath(name)
    if not plain or path.is_absolute() or ".." in path.parts or str(path) != name:
        raise ValueError(f"{short(name)} must be a plain relative path that stays in its folder")


def confined(folder: Path, name: str, max_bytes: int) -> Path:
    """Return where the file `name` of `folder` is.

    Raises ValueError when it leaves the folder (by its name or a link), is no regular file, or is too large.
    """
    check_name(name)
    try:
        real = (folder / name).resolve(strict=True)
        size = real.stat().st_size
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a loop of links"
        raise ValueError(
            f"{short(name)} cannot be read: {reason}; looked beside the file that names it"
        ) from None
    if not real.is_relative_to(folder.resolve()):
        raise ValueError(f"{short(name)} is a link that leaves its folder")
    if not real.is_file():
        raise ValueError(f"{short(name)} is not a regular file")
    if size > max_bytes:
        raise ValueError(f"{short(name)} has {size} bytes, more than {max_bytes}")
    return real


def holds_journal(folder: Path) -> bool:
    """Return whether `folder` is that of a run: it holds a journal of ours, at least the start of one."""
    try:
        handle = os.open(folder / JOURNAL, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return False
        start = os.read(handle, len(JOURNAL_START))
    finally:
        os.close(handle)
    return start == JOURNAL_START or (folder.parent.name == RUNS and JOURNAL_START.startswith(start))


def read_untrusted(folder: Path, name: str, max_bytes: int) -> bytes:
    """Return the bytes of the file `name` in a folder that an agent wrote to; no link on the way is followed.

    Raises ValueError as `confined` does, and FileNotFoundError when there is no such file.
    """
    with open_untrusted(folder, name, max_bytes) as file:
        return file.read(max_bytes)


def open_untrusted(folder: Path, name: str, max_bytes: int) -> BinaryIO:
    """Open the file `name` in a folder that an agent wrote to; as `read_untrusted`, and raises the same."""
    check_name(name)
    *parents, last = PurePosixPath(name).parts
    try:
        within = descend(folder, parents)
        try:
            # opening a pipe that nobody writes to would wait for ever
            handle = os.open(last, FOLLOWING_NOTHING | os.O_NONBLOCK, dir_fd=within)
        finally:
            os.close(within)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{short(name)} cannot be read without following links: {error.strerror}") from None
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and status.st_size <= max_bytes:
        return open(handle, "rb")  # noqa: PTH123 - a descriptor, not a path
    os.close(handle)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{short(name)} is not a regular file")
    raise ValueError(f"{short(name)} has {status.st_size} bytes, more than {max_bytes}")


def descend(folder: Path, names: Iterable[str]) -> int:
    """Return the descriptor of a folder below `folder`, of which few are held on the way; raises OSError."""
    at = os.open(folder, FOLLOWING_NOTHING | os.O_DIRECTORY)
    for name in names:
        try:
            below = os.open(name, FOLLOWING_NOTHING | os.O_DIRECTORY, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


def walk(folder: Path, skipped: Collection[str] = ()) -> Iterator[str]:
    """Yield the names of all that is no folder below a folder that an agent wrote to; follows no link.

    Folders called as in `skipped` are left out. Raises what `walk_entries` does, with at most WALKED.
    """
    for name, _, _ in walk_entries(
        folder, lambda _, entry: entry.name in skipped and entry.is_dir(follow_symlinks=False), WALKED
    ):
        yield name


def walk_entries(
    folder: Path, is_left_out: Callable[[str, os.DirEntry[str]], bool], most: int
) -> Iterator[tuple[str, os.DirEntry[str], int]]:
    """Yield name, entry and the descriptor of its folder of all that is no folder; follows no link.

    `is_left_out` takes the name of an entry and the entry. Raises ValueError where there are more than `most`
    entries or they lie deeper than DEEPEST_WALKED folders, OSError where a folder cannot be read.
    """
    waiting: list[tuple[str, ...]] = [()]
    room = most
    while waiting:
        parts = waiting.pop()
        if len(parts) > DEEPEST_WALKED:
            raise ValueError(f"there are folders more than {DEEPEST_WALKED} deep")
        within = descend(folder, parts)
        try:
            with os.scandir(within) as entries:
                for entry in entries:
                    room -= 1
                    if room < 0:
                        raise ValueError(f"there are more than {most} files and folders")
                    name = "/".join((*parts, entry.name))
                    if is_left_out(name, entry):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((*parts, entry.name))
                    else:
                        yield name, entry, within
        finally:
            os.close(within)


def few_files(folder: Path) -> list[tuple[str, bytes]]:
    """Return names and contents of all that is in a folder that an agent wrote to; follows no link.

    Raises ValueError where there are more than FEW_FILES, one has more than FEW_BYTES or is no plain file,
    and OSError where something cannot be read.
    """
    within = os.open(folder, FOLLOWING_NOTHING | os.O_DIRECTORY)
    try:
        with os.scandir(within) as entries:
            found = list(islice(entries, FEW_FILES + 1))
        if len(found) > FEW_FILES or not all(entry.is_file(follow_symlinks=False) for entry in found):
            raise ValueError("there is more than a few files")
        return [(entry.name, _few_bytes(entry.name, within)) for entry in found]
    finally:
        os.close(within)


def _few_bytes(name: str, within: int) -> bytes:
    handle = os.open(name, FOLLOWING_NOTHING | os.O_NONBLOCK, dir_fd=within)
    try:
        data = os.read(handle, FEW_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > FEW_BYTES:
        raise ValueError(f"{short(name)} is large")
    return data


def write_untrusted(folder: Path, name: str, data: bytes) -> None:
    """Write or overwrite the file `name` in a folder that an agent wrote to; follows no link.

    Folders on the way are made. Raises ValueError when the file would leave the folder or cannot be written.
    """
    check_name(name)
    *parents, last = PurePosixPath(name).parts
    if len(parents) > DEEPEST:
        raise ValueError(f"{short(name)} lies more than {DEEPEST} folders deep")
    draft = f".{uuid.uuid4().hex}"
    handles = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        for part in parents:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=handles[-1])
            handles.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | flags, dir_fd=handles[-1]))
        new = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags, 0o666, dir_fd=handles[-1])
        try:
            with open(new, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
                file.write(data)
            os.rename(draft, last, src_dir_fd=handles[-1], dst_dir_fd=handles[-1])
        except OSError:
            os.unlink(draft, dir_fd=handles[-1])
            raise
    except OSError as error:
        raise ValueError(
            f"{short(name)} cannot be written without following links: {error.strerror}"
        ) from None
    finally:
        for handle in handles:
            os.close(handle)
