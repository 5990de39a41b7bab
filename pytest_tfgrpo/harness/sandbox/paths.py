"""Files named by hostile input: they must be plain files that stay in the folder they belong to."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.core.schema import short

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


def read_untrusted(folder: Path, name: str, max_bytes: int) -> bytes:
    """Return the bytes of the file `name` in a folder that an agent wrote to; no link on the way is followed.

    Raises ValueError as `confined` does, and FileNotFoundError when there is no such file.
    """
    check_name(name)
    *parents, last = PurePosixPath(name).parts
    handles: list[int] = []

    def step(part: str | Path, flag: int) -> None:
        within = handles[-1] if handles else None
        handles.append(os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flag, dir_fd=within))

    try:
        step(folder, os.O_DIRECTORY)
        for part in parents:
            step(part, os.O_DIRECTORY)
        step(last, os.O_NONBLOCK)  # opening a pipe that nobody writes to would wait for ever
        status = os.fstat(handles[-1])
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{short(name)} is not a regular file")
        if status.st_size > max_bytes:
            raise ValueError(f"{short(name)} has {status.st_size} bytes, more than {max_bytes}")
        with open(handles.pop(), "rb") as file:  # noqa: PTH123 - a descriptor, not a path
            return file.read(max_bytes)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{short(name)} cannot be read without following links: {error.strerror}") from None
    finally:
        for handle in handles:
            os.close(handle)


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
